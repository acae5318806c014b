//! A responsive source: additive increase, one halving per round trip on a drop
//! or a mark. It exercises AQMs without the detail of a transport.

use super::Named;
use knee_link::{DropReason, Link};
use knee_units::Time;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Results for each packet and each second of a run.
#[derive(Default)]
pub struct Outcome {
    /// Time of delivery and queueing delay of each packet.
    pub delays: Vec<(Time, Time)>,
    /// Bytes delivered, by flow.
    pub bytes: Vec<u64>,
    /// Times of drops by AQM or queue.
    pub drops: Vec<(Time, DropReason)>,
    pub marks: usize,
}

impl Outcome {
    /// Returns the queueing delays from `from` on, ascending, in milliseconds.
    pub fn sorted_delays_ms(&self, from: Time) -> Vec<f64> {
        let late = self.delays.iter().filter(|(at, _)| *at >= from);
        let mut delays: Vec<f64> = late.map(|(_, delay)| delay.as_millis_f64()).collect();
        delays.sort_by(f64::total_cmp);
        delays
    }

    pub fn mean_delay_ms(&self, from: Time) -> f64 {
        let delays = self.sorted_delays_ms(from);
        delays.iter().sum::<f64>() / delays.len() as f64
    }

    pub fn percentile_ms(&self, from: Time, share: f64) -> f64 {
        let delays = self.sorted_delays_ms(from);
        delays[(share * (delays.len() - 1) as f64) as usize]
    }
}

struct Flow {
    window: f64,
    in_flight: u32,
    /// Signals about packets sent before this one belong to the last halving.
    deaf_to: usize,
}

/// A notification to a source: time, flow, packet, and whether it is congestion.
type News = Reverse<(Time, usize, usize, bool)>;

struct Run<'a> {
    link: &'a mut Link<Named>,
    base_rtt: Time,
    flows: Vec<Flow>,
    sent: Vec<Time>,
    news: BinaryHeap<News>,
    outcome: Outcome,
    ecn_capable: bool,
}

/// Lets `flows` sources of 1500-byte packets share a link for `duration`. An
/// acknowledgement, or the notification of a loss, reaches the source one base
/// RTT after the packet was sent, plus its queueing delay.
pub fn share(
    link: &mut Link<Named>,
    flows: usize,
    base_rtt: Time,
    ecn_capable: bool,
    duration: Time,
) -> Outcome {
    let flow = || Flow { window: 10.0, in_flight: 0, deaf_to: 0 };
    let mut run = Run {
        link,
        base_rtt,
        flows: (0..flows).map(|_| flow()).collect(),
        sent: vec![],
        news: BinaryHeap::new(),
        outcome: Outcome { bytes: vec![0; flows], ..Outcome::default() },
        ecn_capable,
    };
    for flow in 0..flows {
        run.fill(Time::from_millis(flow as u64), flow);
    }
    loop {
        let heard = run.news.peek().map_or(Time::MAX, |news| news.0.0);
        let now = heard.min(run.link.next_time());
        if now >= duration {
            return run.outcome;
        }
        if run.link.next_time() == now {
            run.poll(now);
        } else if let Some(Reverse((_, flow, number, congestion))) = run.news.pop() {
            run.hear(now, flow, number, congestion);
        }
    }
}

impl Run<'_> {
    fn poll(&mut self, now: Time) {
        if let Some(packet) = self.link.poll(now) {
            let flow = packet.flow as usize;
            // The link's own delay is part of the base RTT.
            let queueing = (now - self.sent[packet.number]).saturating_sub(self.base_rtt / 2);
            self.outcome.delays.push((now, queueing));
            self.outcome.bytes[flow] += u64::from(packet.size);
            self.outcome.marks += usize::from(packet.marked);
            self.news.push(Reverse((now + self.base_rtt / 2, flow, packet.number, packet.marked)));
        }
        self.note_dropped();
    }

    fn note_dropped(&mut self) {
        while let Some((at, reason, packet)) = self.link.take_dropped() {
            self.lost(at, reason, &packet);
        }
    }

    fn lost(&mut self, at: Time, reason: DropReason, packet: &Named) {
        self.outcome.drops.push((at, reason));
        self.news.push(Reverse((at + self.base_rtt, packet.flow as usize, packet.number, true)));
    }

    fn hear(&mut self, now: Time, index: usize, number: usize, congestion: bool) {
        let next = self.sent.len();
        let flow = &mut self.flows[index];
        flow.in_flight -= 1;
        if !congestion {
            flow.window += 1.0 / flow.window;
        } else if number >= flow.deaf_to {
            flow.window = (flow.window / 2.0).max(1.0);
            flow.deaf_to = next;
        }
        self.fill(now, index);
    }

    fn fill(&mut self, now: Time, index: usize) {
        while f64::from(self.flows[index].in_flight) < self.flows[index].window.floor() {
            self.flows[index].in_flight += 1;
            let (number, flow) = (self.sent.len(), index as u64);
            self.sent.push(now);
            let ecn_capable = self.ecn_capable;
            let packet = Named { number, size: 1500, flow, ecn_capable, marked: false };
            if let Err((reason, packet)) = self.link.send(now, packet) {
                self.lost(now, reason, &packet);
            }
            self.note_dropped();
        }
    }
}
