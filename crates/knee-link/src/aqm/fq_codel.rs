//! FQ-CoDel, RFC 8290: a CoDel queue for each flow hash, served by deficit
//! round robin, with queues that just became busy first.

use super::codel::{Codel, CodelState, INTERVAL, TARGET};
use super::discipline::{Held, Ledger, Queue, Waiting, is_within};
use super::registry::{AqmEntry, Build, Marks};
use super::{Aqm, Settings};
use crate::config::{Buffer, RateModel};
use crate::{DropReason, Packet};
use knee_units::Bytes;
use knee_units::registry::{Kind, Parameter};
use rand_chacha::ChaCha8Rng;
use std::collections::VecDeque;

pub(super) const ENTRY: AqmEntry = AqmEntry {
    name: "fq-codel",
    summary: "RFC 8290: a CoDel queue for each hash of a flow, served in turns.",
    source: "RFC 8290",
    parameters: &[
        TARGET,
        INTERVAL,
        Parameter {
            name: "flows",
            kind: Kind::Count { min: 1, max: 65_536 },
            default: "1024",
            summary: "number of queues",
        },
        Parameter {
            name: "quantum",
            kind: Kind::Size { min: Bytes::new(1), max: Bytes::new(1 << 20) },
            default: "1514 B",
            summary: "what a queue may send in a turn",
        },
    ],
    presets: &[],
    build: Build {
        marks: Marks::WhereAsked,
        make: |settings, place| {
            let quantum = settings.size("quantum").map_or(0, Bytes::get);
            Ok(Aqm::FqCodel(FqCodel {
                codel: Codel::of(settings, place),
                flows: settings.count("flows"),
                // At most one mebibyte, as declared.
                quantum: quantum as u32,
            }))
        },
    },
};

/// FQ-CoDel (RFC 8290). A packet always enters; if that overflows the buffer,
/// packets are dropped from the head of the longest queue.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FqCodel {
    /// The CoDel of each queue.
    pub codel: Codel,
    /// Number of queues, 1024.
    pub flows: u32,
    /// Bytes that a queue may send per turn, 1514.
    pub quantum: u32,
}

impl Settings for FqCodel {
    fn assert_possible(&self) {
        assert!(self.flows > 0 && self.quantum > 0, "FQ-CoDel has queues and a quantum");
    }

    fn log(&self) -> String {
        self.codel.log_as("fq-codel")
    }
}

/// Packets dropped at once from the longest queue (section 4.1).
const DROP_BATCH: u32 = 64;

pub(crate) struct FqCodelState<P> {
    settings: FqCodel,
    flows: Box<[FlowQueue<P>]>,
    /// Queues that became busy and have not used up their first quantum.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: u64,
    packets: u64,
}

struct FlowQueue<P> {
    queue: Waiting<P>,
    codel: CodelState,
    /// Bytes that it may still send in this turn; negative if overdrawn.
    deficit: i64,
    /// Whether it is in the list of new or old queues.
    listed: bool,
}

impl<P: Packet> Queue<P> for FqCodelState<P> {
    type Settings = FqCodel;

    fn new(settings: &FqCodel, _: &RateModel, _: impl FnOnce() -> ChaCha8Rng) -> FqCodelState<P> {
        let settings = *settings;
        let flow = || FlowQueue {
            queue: Waiting::default(),
            codel: CodelState::default(),
            deficit: 0,
            listed: false,
        };
        FqCodelState {
            settings,
            flows: (0..settings.flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            packets: 0,
        }
    }

    /// Section 4.1.
    fn enqueue(
        &mut self,
        held: Held<P>,
        buffer: Buffer,
        ledger: &mut Ledger<'_, P>,
    ) -> Result<(), P> {
        self.bytes += u64::from(held.packet.size());
        self.packets += 1;
        let index = (held.packet.flow_hash() % u64::from(self.settings.flows)) as u32;
        let flow = &mut self.flows[index as usize];
        flow.queue.push(held);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = i64::from(self.settings.quantum);
            self.new.push_back(index);
        }
        while !is_within(buffer, self.bytes, self.packets) {
            self.drop_from_longest(ledger);
        }
        Ok(())
    }

    /// Section 4.2.
    fn dequeue(&mut self, ledger: &mut Ledger<'_, P>) -> Option<Held<P>> {
        loop {
            let is_new = !self.new.is_empty();
            let list = if is_new { &mut self.new } else { &mut self.old };
            let index = *list.front()?;
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += i64::from(self.settings.quantum);
                list.pop_front();
                self.old.push_back(index);
                continue;
            }
            let (bytes, packets) = (flow.queue.bytes(), flow.queue.packets());
            let head = flow.codel.dequeue(&self.settings.codel, &mut flow.queue, ledger);
            self.bytes -= bytes - flow.queue.bytes();
            self.packets -= packets - flow.queue.packets();
            if let Some(held) = head {
                flow.deficit -= i64::from(held.packet.size());
                return Some(held);
            }
            list.pop_front();
            // A new queue that ran empty joins the old ones first, so that it
            // cannot starve them by returning immediately.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    fn remove(&mut self) -> Option<P> {
        let held = self.flows.iter_mut().find_map(|flow| flow.queue.pop())?;
        self.bytes -= u64::from(held.packet.size());
        self.packets -= 1;
        Some(held.packet)
    }

    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn packets(&self) -> u64 {
        self.packets
    }
}

impl<P: Packet> FqCodelState<P> {
    /// Drops half of the longest queue, from its head.
    #[cold]
    fn drop_from_longest(&mut self, ledger: &mut Ledger<P>) {
        let longest = self.flows.iter_mut().max_by_key(|flow| flow.queue.bytes());
        let queue = &mut longest.expect("there is a queue: checked when built").queue;
        let half = queue.bytes() / 2;
        for _ in 0..DROP_BATCH {
            let Some(held) = queue.pop() else { break };
            self.bytes -= u64::from(held.packet.size());
            self.packets -= 1;
            ledger.drop(DropReason::Queue, held.packet);
            if queue.bytes() <= half {
                break;
            }
        }
    }
}
