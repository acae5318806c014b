//! Measures of volume: goodput, throughput, share, utilisation, drops, retransmissions, completion,
//! power.

use super::{Flows, NotMeasurable, because};
use crate::view::{FlowView, LinkView, RunView, Span, Window};
use knee_scenario::Statistic;

impl Flows<'_, '_> {
    /// Goodput, bit/s: `8 * sum of (D(e) - D(b)) / (max e - min b)`, where D are the payload bytes
    /// delivered in order to the receiver's application.
    pub(crate) fn goodput(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let bytes = sum_over(&active, |flow, span| flow.delivered_in(span));
        Ok(8.0 * bytes / joint_seconds(&active))
    }

    /// Throughput, bit/s: `8 * sum of h (S(e) - S(b)) / (max e - min b)`, where S are the payload
    /// bytes sent, retransmissions included, and h the IP bytes of a full segment over its payload.
    pub(crate) fn throughput(&self) -> Result<f64, NotMeasurable> {
        let active = self.active()?;
        let bytes =
            sum_over(&active, |flow, span| flow.record.header_overhead * flow.sent_in(span));
        Ok(8.0 * bytes / joint_seconds(&active))
    }

    /// Share, `0..=1`: bytes that these flows delivered over those that all flows delivered, each
    /// over its own span.
    pub(crate) fn share(&self) -> Result<f64, NotMeasurable> {
        let all = Flows::find(self.run, "*", self.window)?;
        let own = sum_over(&self.active()?, |flow, span| flow.delivered_in(span));
        let total = sum_over(&all.active()?, |flow, span| flow.delivered_in(span));
        ratio(own, total, "nothing was delivered")
    }

    /// Retransmitted over sent payload bytes, after the warm-up:
    /// `sum of (R(e) - R(b)) / sum of (S(e) - S(b))`.
    pub(crate) fn retransmit_ratio(&self) -> Result<f64, NotMeasurable> {
        retransmitted(&self.active()?)
    }

    /// Retransmit ratio from each flow's start to the end of its warm-up.
    pub(crate) fn retransmit_ratio_startup(&self) -> Result<f64, NotMeasurable> {
        let warmup = self.run.warmup.as_nanos();
        if warmup == 0 {
            return because("the scenario has no warm-up");
        }
        self.over_life(|span| Span { end: span.end.min(span.begin.saturating_add(warmup)), ..span })
    }

    /// Retransmit ratio from each flow's start to its end. Like the start-up ratio, it ignores the
    /// window.
    pub(crate) fn retransmit_ratio_total(&self) -> Result<f64, NotMeasurable> {
        self.over_life(|span| span)
    }

    fn over_life(&self, part: impl Fn(Span) -> Span) -> Result<f64, NotMeasurable> {
        let lives = self.members.iter();
        let lives: Vec<_> = lives.filter_map(|flow| Some((*flow, part(flow.life()?)))).collect();
        retransmitted(&lives)
    }

    /// Completion time, seconds: mean over the flows from the start to the acknowledgement of the
    /// last byte. Infinite if one was cut off.
    pub(crate) fn completion_time(&self) -> Result<f64, NotMeasurable> {
        if self.members.iter().any(|flow| flow.record.size_bytes == 0) {
            return because(format!("{} transfers without an end", self.target));
        }
        let times = self.members.iter().map(|flow| {
            let time = flow.record.completion_ns;
            time.map_or(f64::INFINITY, |time| time as f64 / 1e9)
        });
        self.unless_interrupted(times.sum::<f64>() / self.members.len() as f64)
    }

    /// Fails if the value is infinite and the run was interrupted: the event might still have
    /// occurred.
    pub(super) fn unless_interrupted(&self, value: f64) -> Result<f64, NotMeasurable> {
        if value.is_infinite() && self.run.records.interrupted {
            return because("the run was interrupted before it happened");
        }
        Ok(value)
    }

    /// Kleinrock's power, normalised: `u / d`, which is 1 at the knee. u is the fraction of the
    /// paths' capacity that the flows used ([`Flows::capacity_share`]); d is the mean RTT over the
    /// base RTT. (Kleinrock, "Power and deterministic rules of thumb for probabilistic problems in
    /// computer communications", 1979.)
    pub(crate) fn power(&self) -> Result<f64, NotMeasurable> {
        let stretch = self.relative_rtt()?.statistic(Statistic::Mean);
        Ok(self.capacity_share()? / stretch)
    }
}

impl LinkView<'_> {
    /// Utilisation, `0..=1`: IP bytes that the link sent between b and e, including parts of
    /// packets, over those that its rate would have allowed.
    pub(crate) fn utilisation(
        &self,
        run: &RunView<'_>,
        window: Window,
    ) -> Result<f64, NotMeasurable> {
        let span = self.span(run, window)?;
        let used = self.counted_in(span, |row| row.used_bytes);
        let capacity = self.counted_in(span, |row| row.capacity_bytes);
        let reason = format!("link {} has no rate to be used", self.name);
        ratio(used, capacity, &reason)
    }

    /// Packets dropped by queue, AQM or policer between b and e, rounded.
    pub(crate) fn drops(&self, run: &RunView<'_>, window: Window) -> Result<f64, NotMeasurable> {
        let span = self.span(run, window)?;
        Ok(self.counted_in(span, |row| row.dropped_packets).round())
    }
}

fn sum_over(flows: &[(&FlowView<'_>, Span)], value: impl Fn(&FlowView<'_>, Span) -> f64) -> f64 {
    flows.iter().map(|(flow, span)| value(flow, *span)).sum()
}

/// Returns the time from the earliest start to the latest end.
fn joint_seconds(flows: &[(&FlowView<'_>, Span)]) -> f64 {
    let begin = flows.iter().map(|(_, span)| span.begin).min();
    let end = flows.iter().map(|(_, span)| span.end).max();
    let (begin, end) = (begin.unwrap_or(0), end.unwrap_or(0));
    Span { begin, end }.seconds()
}

fn retransmitted(flows: &[(&FlowView<'_>, Span)]) -> Result<f64, NotMeasurable> {
    let again = sum_over(flows, |flow, span| flow.retransmitted_in(span));
    let sent = sum_over(flows, |flow, span| flow.sent_in(span));
    ratio(again, sent, "nothing was sent")
}

pub(super) fn ratio(part: f64, whole: f64, reason: &str) -> Result<f64, NotMeasurable> {
    if whole > 0.0 { Ok(part / whole) } else { because(reason) }
}
