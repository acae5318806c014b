//! A sender compared with a naive scoreboard, over a toy network that loses,
//! delays, reorders and duplicates segments and ACKs according to a plan. After
//! every ACK, timer and transmission both must agree on what is in flight,
//! delivered, marked lost and retransmitted, and the timer must not be later than
//! the timeout; in the end everything must have arrived.
//!
//! The same 5,000 cases each time. `PROPTEST_CASES=100000 PROPTEST_RNG_SEED=2
//! cargo test --workspace --test it scoreboard::` runs more and different ones; a
//! million take two minutes.

mod naive;
mod receiver;

use crate::recovery::controller::Halving;
use crate::recovery::notation::SEGMENT;
use knee_cc::Recovery;
use knee_transport::{Ack, AckDetails, Config, Segment, Sender, Transmit};
use knee_units::Time;
use naive::{Acknowledgement, Micros, Naive, View};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use receiver::Receiver;
use std::collections::BTreeMap;

/// What the network does to a packet; packets beyond the list are not lost.
#[derive(Clone, Copy, Debug, Default)]
struct Fate {
    lost: bool,
    twice: bool,
    delay_ms: u8,
}

#[derive(Clone, Debug)]
struct Plan {
    segments: u64,
    runt_bytes: u64,
    window: u64,
    reacts: bool,
    data: Vec<Fate>,
    acks: Vec<Fate>,
}

enum Event {
    Segment(Segment),
    Ack(Acknowledgement),
}

/// One-way delay, without the delay from a packet's fate.
const DELAY: Micros = 20_000;

struct Network<'a> {
    plan: &'a Plan,
    now: Micros,
    sender: Sender,
    receiver: Receiver,
    naive: Naive,
    events: BTreeMap<(Micros, u64), Event>,
    entered: u64,
    sent: usize,
    acknowledged: usize,
}

fn time(at: Micros) -> Time {
    Time::from_micros(at)
}

impl<'a> Network<'a> {
    fn new(plan: &'a Plan) -> Network<'a> {
        let controller = Halving::new(plan.window, plan.reacts, None);
        let mut sender = Sender::new(&Config::default(), controller);
        sender.write(plan.segments * SEGMENT + plan.runt_bytes);
        let start = 1_000_000;
        assert!(matches!(sender.poll_transmit(time(start)), Transmit::Segment(_)), "the SYN");
        let now = start + 2 * DELAY;
        let syn = Ack { syn: true, timestamp_echo: start as u32, ..Ack::default() };
        sender.on_ack(time(now), &syn, None);
        Network {
            plan,
            now,
            sender,
            receiver: Receiver::default(),
            naive: Naive::default(),
            events: BTreeMap::new(),
            entered: 0,
            sent: 0,
            acknowledged: 0,
        }
    }

    fn view(&self) -> View {
        let counters = self.sender.counters();
        View {
            in_recovery: self.sender.recovery() == Recovery::Recovery,
            in_loss: self.sender.recovery() == Recovery::Loss,
            recoveries: counters.recoveries,
            timeouts: counters.timeouts,
            undone: counters.spurious_recoveries,
            min_rtt_ns: self.sender.rtt().minimum().as_nanos(),
            srtt_ns: self.sender.rtt().smoothed().as_nanos(),
            rto_ns: self.sender.rtt().rto().as_nanos(),
        }
    }

    fn run(&mut self) {
        self.poll();
        let mut steps = 0;
        while !self.sender.is_complete() {
            steps += 1;
            assert!(steps < 20_000, "it never ends");
            let next_event = self.events.keys().next().map_or(Micros::MAX, |key| key.0);
            let timer = self.sender.timer().as_nanos().div_ceil(1000);
            assert!(next_event.min(timer) < Micros::MAX, "nothing will ever happen");
            if timer <= next_event {
                self.now = timer.max(self.now);
                self.on_timer();
            } else {
                self.on_event();
            }
            self.poll();
        }
        assert_eq!(u64::from(self.receiver.next), self.plan.segments + u64::from(self.runt()));
    }

    fn runt(&self) -> bool {
        self.plan.runt_bytes > 0
    }

    fn on_event(&mut self) {
        let ((at, _), event) = self.events.pop_first().expect("there is one");
        self.now = at;
        match event {
            Event::Segment(segment) => {
                let ack = self.receiver.on_segment(segment.number, u64::from(segment.timestamp));
                let fate = self.plan.acks.get(self.acknowledged).copied().unwrap_or_default();
                self.acknowledged += 1;
                self.enter(fate, || Event::Ack(ack.clone()));
            }
            Event::Ack(ack) => self.on_ack(&ack),
        }
    }

    fn enter(&mut self, fate: Fate, event: impl Fn() -> Event) {
        if fate.lost {
            return;
        }
        let at = self.now + DELAY + u64::from(fate.delay_ms) * 1000;
        for copy in 0..1 + u64::from(fate.twice) {
            self.entered += 1;
            self.events.insert((at + copy * 700, self.entered), event());
        }
    }

    fn on_ack(&mut self, ack: &Acknowledgement) {
        let mut details = AckDetails { duplicate: ack.duplicate, ..AckDetails::default() };
        for (slot, block) in ack.blocks.iter().enumerate() {
            details.sack[slot] = *block;
            details.sack_count += 1;
        }
        let any = details != AckDetails::default();
        let short = Ack { number: ack.number, timestamp_echo: ack.echo as u32, ..Ack::default() };
        let before = self.view();
        self.sender.on_ack(time(self.now), &short, any.then_some(&details));
        let after = self.view();
        self.naive.on_ack(self.now, ack, before, after);
        self.compare("after an ACK");
    }

    fn on_timer(&mut self) {
        let before = self.view();
        self.sender.on_timer(time(self.now));
        let after = self.view();
        let first = self.poll_once();
        let probe = first.as_ref().is_some_and(|(_, probe)| *probe);
        if after.timeouts > before.timeouts {
            self.naive.on_timeout(self.now, before, after);
        } else if !probe {
            self.naive.on_reordering_timer(self.now, before, after);
        }
        // Neither a probe nor the segment that timed out (RFC 6298, section 5.4) needs room.
        let timed_out = after.timeouts > before.timeouts;
        if let Some((segment, probe)) = first {
            self.on_sent(segment, probe, timed_out);
        }
        self.compare("after a timer");
    }

    fn poll(&mut self) {
        while let Some((segment, probe)) = self.poll_once() {
            self.on_sent(segment, probe, false);
        }
    }

    /// Returns what is sent, and whether it is a probe.
    fn poll_once(&mut self) -> Option<(Segment, bool)> {
        let probes = self.sender.counters().probes;
        match self.sender.poll_transmit(time(self.now)) {
            Transmit::Segment(segment) => Some((segment, self.sender.counters().probes > probes)),
            _ => None,
        }
    }

    fn on_sent(&mut self, segment: Segment, probe: bool, timed_out: bool) {
        let rto_ns = self.view().rto_ns;
        if segment.retransmission {
            let expected =
                if probe { Some(self.naive.next - 1) } else { self.naive.lowest_to_send_again() };
            assert_eq!(Some(segment.number), expected, "sent again, probe: {probe}");
            self.naive.on_again(self.now, segment.number, rto_ns);
        } else {
            assert_eq!(segment.number, self.naive.next, "new");
            self.naive.on_new(self.now, u64::from(segment.len), rto_ns);
        }
        if probe {
            self.naive.on_probe(self.now, segment.retransmission, rto_ns);
        } else if !timed_out {
            assert!(self.naive.in_flight() <= self.sender.window(), "beyond the window");
        }
        self.compare("after a transmission");
        let fate = self.plan.data.get(self.sent).copied().unwrap_or_default();
        self.sent += 1;
        self.enter(fate, || Event::Segment(segment));
    }

    fn compare(&self, when: &str) {
        let (naive, sender) = (&self.naive, &self.sender);
        let counters = sender.counters();
        let found = [
            u64::from(sender.first()),
            sender.in_flight(),
            sender.delivered(),
            counters.lost_bytes,
            counters.retransmitted_bytes,
        ];
        let expected = [
            u64::from(naive.first),
            naive.in_flight(),
            naive.delivered_bytes,
            naive.lost_bytes,
            naive.resent_bytes,
        ];
        let what = "first outstanding, and bytes in flight, delivered, lost and sent again";
        assert_eq!(found, expected, "{what}, {when}, at {} us: {:#?}", self.now, naive);
        let timer = sender.timer();
        let outstanding = !naive.segments.is_empty();
        // This network rounds timers up to a microsecond.
        let latest_ns = naive.timeout_by_ns().max(self.now * 1000);
        assert!(
            !outstanding || timer.as_nanos() <= latest_ns,
            "{when}, at {} us: the timer runs until {timer:?}: {naive:#?}",
            self.now
        );
    }
}

/// Usually nothing happens; sometimes a packet is lost, late or duplicated.
fn fate(lost: u32, late: u32) -> impl Strategy<Value = Fate> {
    prop_oneof![
        20 => Just(Fate::default()),
        lost => Just(Fate { lost: true, ..Fate::default() }),
        late => (1..60_u8).prop_map(|delay_ms| Fate { delay_ms, ..Fate::default() }),
        1 => Just(Fate { delay_ms: 255, ..Fate::default() }),
        1 => (0..30_u8).prop_map(|delay_ms| Fate { twice: true, delay_ms, ..Fate::default() }),
    ]
}

fn plan() -> impl Strategy<Value = Plan> {
    (1..8_u32, 1..8_u32).prop_flat_map(|(lost, late)| {
        let data = prop::collection::vec(fate(lost, late), 0..150);
        let acks = prop::collection::vec(fate(lost, late), 0..150);
        (1..90_u64, 0..2_u64, 2..30_u64, any::<bool>(), data, acks).prop_map(
            |(segments, runt, window, reacts, data, acks)| Plan {
                segments,
                runt_bytes: runt * 700,
                window,
                reacts,
                data,
                acks,
            },
        )
    })
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(5_000),
        failure_persistence: None,
        rng_seed: match std::env::var("PROPTEST_RNG_SEED").ok().and_then(|n| n.parse().ok()) {
            Some(seed) => RngSeed::Fixed(seed),
            None => RngSeed::Fixed(1),
        },
        ..ProptestConfig::default()
    })]

    #[test]
    fn sender_and_naive_scoreboard_agree(plan in plan()) {
        Network::new(&plan).run();
    }
}
