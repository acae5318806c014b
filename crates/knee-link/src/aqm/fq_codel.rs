//! FQ-CoDel, RFC 8290: a CoDel queue for each hash of a flow, served by
//! deficit round robin, queues that just became busy first.

use super::codel::CodelState;
use super::discipline::{Held, Ledger, Waiting, is_within};
use crate::config::{Buffer, FqCodel};
use crate::{DropReason, Packet};
use std::collections::VecDeque;

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
    /// Bytes that it may still send in this turn; negative: overdrawn.
    deficit: i64,
    /// In the list of new or old queues.
    listed: bool,
}

impl<P: Packet> FqCodelState<P> {
    pub fn new(settings: FqCodel) -> FqCodelState<P> {
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
    pub fn enqueue(&mut self, held: Held<P>, buffer: Buffer, ledger: &mut Ledger<P>) {
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
    }

    /// Half of the longest queue, from its head.
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

    /// Section 4.2.
    pub fn dequeue(&mut self, ledger: &mut Ledger<P>) -> Option<Held<P>> {
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
            // A new queue that ran empty goes through the old ones first, so
            // that it cannot starve them by coming back at once.
            if is_new && !self.old.is_empty() {
                self.old.push_back(index);
            } else {
                flow.listed = false;
            }
        }
    }

    /// Any packet, to empty the queue.
    pub fn remove(&mut self) -> Option<P> {
        let held = self.flows.iter_mut().find_map(|flow| flow.queue.pop())?;
        self.bytes -= u64::from(held.packet.size());
        self.packets -= 1;
        Some(held.packet)
    }

    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn packets(&self) -> u64 {
        self.packets
    }
}
