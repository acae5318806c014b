//! Packets at the far end of a link: neither early nor late, in order, and marked only if the
//! discipline marks.

use super::Link;
use super::aqm::Watch;
use super::books::{Finding, Owner};
use super::service::WORK_PER_BYTE;
use crate::report::Rule;

/// What the ECN field of a packet says.
#[derive(Clone, Copy)]
pub struct Ecn {
    pub capable: bool,
    pub marked: bool,
}

impl Link {
    /// Processes a packet that reached the far end.
    pub fn leave(&mut self, time: u64, name: u64, ecn: Ecn, findings: &mut Vec<Finding>) {
        self.left += 1;
        self.check_order(name, findings);
        if self.chooses() && !self.is_opaque() {
            self.order.push_back(name);
        }
        self.settle(time, Some(name), findings);
        if self.is_opaque() {
            self.check_rate(time, name, findings);
        } else {
            self.advance(u64::MAX, Some(name), findings);
        }
        self.check_time(time, name, findings);
        if self.offers.get(name).waits() && self.next_begin().is_none() {
            // It left a link that never serves again, which is reported as early unless it is paused.
            if self.pauses.end(time.max(1)).is_some() {
                let text = "left although the link was paused".to_string();
                findings.push(Finding::new(Rule::Pause, text));
            }
            self.stop_waiting(name);
        }
        self.check_mark(name, ecn, findings);
        self.last_leave = time;
        self.offers.get_mut(name).has_left = true;
        self.offers.forget(self.next);
    }

    /// Checks the order: packets of a link that keeps order leave in order; if the link chooses,
    /// those of one flow do.
    fn check_order(&mut self, name: u64, findings: &mut Vec<Finding>) {
        if self.head.reorder {
            return;
        }
        if self.chooses() {
            let offer = self.offers.get(name);
            // RFC 9331, section 5.1: a packet marked CE is queued apart from the ECT(0) packets of
            // its flow.
            let apart = offer.marked && matches!(self.watch, Watch::DualPi2 { .. });
            return self.check_order_of((offer.owner, apart), name, findings);
        }
        let first = self.offers.first();
        let overtaken = (first..name).find(|other| {
            let other = self.offers.get(*other);
            other.is_inside() && !other.excused
        });
        let Some(overtaken) = overtaken else { return };
        let line = self.offers.get(overtaken).line;
        let text = format!("left while the packet of line {line} entered earlier is still inside");
        findings.push(Finding::new(Rule::Fifo, text));
        (overtaken..name).for_each(|other| self.offers.get_mut(other).excused = true);
    }

    fn check_order_of(&mut self, owner: (Owner, bool), name: u64, findings: &mut Vec<Finding>) {
        const KEPT: usize = 1024;
        let last = self.last_left.insert(owner, name);
        if last.is_some_and(|last| last > name) {
            let text = "left after a packet of its flow that entered later".to_string();
            findings.push(Finding::new(Rule::Fifo, text));
        }
        if self.last_left.len() > KEPT {
            let first = self.offers.first();
            self.last_left.retain(|_, last| *last >= first);
        }
    }

    fn check_time(&mut self, time: u64, name: u64, findings: &mut Vec<Finding>) {
        let offer = self.offers.get(name);
        let alone = self.alone(offer.time, offer.bytes);
        let Some((departure, earliest)) = offer.served() else {
            if time < alone.unwrap_or(u64::MAX) {
                findings.push(self.early(time, offer.time, offer.bytes));
            }
            return;
        };
        let (from, until) = self.arrival(departure, earliest);
        if time < from {
            let early = alone.is_none_or(|alone| time < alone);
            findings.push(if early {
                self.early(time, offer.time, offer.bytes)
            } else {
                let text = format!("left {} ns before what the rate allows", from - time);
                Finding::new(Rule::Rate, text)
            });
        } else if time > until && !offer.excused {
            let text = format!("left {} ns after rate and delay let it", time - until);
            findings.push(Finding::new(Rule::Late, text));
        } else if self.head.reorder && self.head.hold.is_empty() && !offer.excused {
            let most = self.jitter_at(departure);
            findings.extend(self.lateness.take(time - from, most, &self.head));
        }
    }

    /// Returns the earliest and latest arrival of a packet that departs at `departure`.
    fn arrival(&self, departure: u64, earliest: u64) -> (u64, u64) {
        if self.head.reorder {
            let late = earliest.saturating_add(self.jitter_at(departure));
            return (self.released(earliest), self.released(late));
        }
        let plain = departure.saturating_add(self.delay_at(departure));
        let late = plain.saturating_add(self.jitter_at(departure));
        (self.released(self.last_leave.max(plain)), self.released(self.last_leave.max(late)))
    }

    /// Returns the propagation delay at `departure`.
    pub(super) fn delay_at(&self, departure: u64) -> u64 {
        at(&self.head.delay, departure)
    }

    /// Returns the maximum jitter at `departure`.
    fn jitter_at(&self, departure: u64) -> u64 {
        at(&self.head.jitter, departure)
    }

    /// Returns when an arrival is delivered, which is later if it falls into a hold.
    fn released(&self, arrival: u64) -> u64 {
        let span = self.head.hold.iter().find(|(from, until)| (*from..*until).contains(&arrival));
        span.map_or(arrival, |(_, until)| *until)
    }

    /// Returns the earliest time at which a packet could leave if it were alone.
    fn alone(&self, entered: u64, bytes: u64) -> Option<u64> {
        let work = self.service.work(entered) + u128::from(bytes) * WORK_PER_BYTE;
        let departure = entered.max(self.service.when(work)?);
        let delay = if self.is_opaque() || self.head.delay.len() > 1 {
            self.head.delay_min()
        } else {
            self.delay_at(departure)
        };
        Some(self.released(departure + delay))
    }

    /// Checks the rate of a link whose order and service are unknown: between any two packets that
    /// leave, no more leaves than the rate allows, plus the range of the delay and the largest
    /// packet.
    fn check_rate(&mut self, time: u64, name: u64, findings: &mut Vec<Finding>) {
        let bytes = self.offers.get(name).bytes;
        self.largest = self.largest.max(bytes);
        let work = |time: u64| self.service.work(time);
        let (slow, fast) = (self.head.delay_max(), self.head.delay_min());
        let departed = time.saturating_sub(fast);
        let served = work(departed) - work(self.last_leave.saturating_sub(fast));
        self.excess = (self.excess + u128::from(bytes) * WORK_PER_BYTE).saturating_sub(served);
        self.range = self.range.max(work(departed) - work(time.saturating_sub(slow)));
        let given = self.range + u128::from(self.largest) * WORK_PER_BYTE;
        if self.excess > given {
            let more = self.excess.div_ceil(WORK_PER_BYTE);
            findings.push(Finding::new(
                Rule::Rate,
                format!("{more} bytes more left than the rate allows"),
            ));
            self.excess = 0;
        }
    }

    fn early(&self, time: u64, entered: u64, bytes: u64) -> Finding {
        let spent = time.saturating_sub(entered);
        let text = format!(
            "{bytes} bytes that entered at {entered} ns left after {spent} ns, less than their \
             transmission and the delay take"
        );
        Finding::new(Rule::Early, text)
    }

    fn check_mark(&self, name: u64, ecn: Ecn, findings: &mut Vec<Finding>) {
        let offer = self.offers.get(name);
        let Ecn { capable, marked } = ecn;
        let text = match (marked && !offer.marked, marked) {
            // What the AQM made of it cannot be told any more.
            _ if self.head.ecn_bleached && !capable => return,
            _ if self.head.ecn_bleached => "kept an ECN codepoint that the link clears",
            _ if capable != offer.ecn_capable => "is not as capable of ECN as it was",
            (true, _) if !offer.ecn_capable => "was marked though it is not capable of ECN",
            (true, _) if !offer.may_mark && !self.is_opaque() => {
                "was marked by an AQM without a cause"
            }
            (_, false) if offer.marked => "lost its mark",
            (_, false) if offer.must_mark => "was not marked beyond the threshold",
            _ => return,
        };
        findings.push(Finding::new(Rule::Mark, text.to_string()));
    }

    /// Checks at the end of the log the drops that nothing follows, and that nothing is inside that
    /// should have left.
    pub(super) fn check_stuck(&mut self, time: u64, findings: &mut Vec<Finding>) {
        findings.extend(self.lateness.judge(&self.head));
        // Which packet is in service may be unknown; a drop until then is judged nevertheless.
        if !self.advance(time, None, findings) {
            return;
        }
        self.check_late_drops(time.saturating_add(1), findings);
        if self.chooses() {
            return;
        }
        let stuck = self.offers.iter().filter(|offer| offer.is_inside() && !offer.excused);
        // If order is kept, no packet arrives before the one ahead of it.
        let mut ahead = 0;
        let late = stuck.filter_map(|offer| {
            let (departure, earliest) = offer.served()?;
            let (_, until) = self.arrival(departure, earliest);
            ahead = if self.head.reorder { until } else { until.max(ahead) };
            (ahead < time).then_some((offer.line, offer.time, ahead))
        });
        if let Some((line, entered, until)) = late.min_by_key(|(.., until)| *until) {
            let text = format!("should have left at {until} ns and is still inside");
            findings.push(Finding::new(Rule::Late, text).at(line, entered));
        }
    }
}

/// Returns the value in force at `time`.
pub(super) fn at(steps: &[(u64, u64)], time: u64) -> u64 {
    steps[steps.partition_point(|(from, _)| *from <= time) - 1].1
}
