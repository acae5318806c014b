//! Describes the result of a run in one sentence.

use knee_present::words::{capitalised, counted, in_words, listed, number, percent, rate, time_us};
use knee_record::{FlowSummary, Summary, Verdict};

/// Jain's index above which a split counts as even, and below which as uneven: two flows at 3 to 2
/// have 0.96, at 3 to 1 they have 0.8.
const EVEN: f64 = 0.96;
const UNEVEN: f64 = 0.8;

/// Describes which flows delivered how much, how well, and at what cost.
pub(crate) fn result(summary: &Summary) -> String {
    let Some(goodput) = summary.measures.goodput_bps.filter(|&bps| bps > 0.0) else {
        return nothing(summary);
    };
    let mut parts = vec![format!("{} {}", capitalised(&who(summary)), filling(goodput, summary))];
    parts.extend(sharing(summary));
    parts.extend(delay(summary));
    let sentence = format!("{}; {}.", parts.join(", "), price(summary));
    match summary.verdict {
        Verdict::Valid => sentence,
        Verdict::Degraded => format!("{sentence} The run has a reservation, see below."),
        Verdict::Invalid => format!("This run is invalid, see below. {sentence}"),
    }
}

fn nothing(summary: &Summary) -> String {
    match summary.flows.len() {
        0 => "This run has no flow.".to_string(),
        flows => format!("{} delivered nothing.", capitalised(&counted(flows, "flow"))),
    }
}

/// Number of transfers of a flow that began after the warm-up; `None` if it has another workload.
fn transfers(flow: &FlowSummary) -> Option<usize> {
    flow.all_transfers().map(|all| all.finished + all.cut_off)
}

/// Returns `two bbr flows and one cubic flow`, or `2500 transfers under bbr` if all flows are mixes.
fn who(summary: &Summary) -> String {
    let mixes = summary.flows.iter().map(|flow| Some((flow.cc.as_str(), transfers(flow)?)));
    if let Some(mixes) = mixes.collect::<Option<Vec<(&str, usize)>>>() {
        return transfers_in_words(&mixes);
    }
    let mut groups: Vec<(&str, usize)> = Vec::new();
    for flow in &summary.flows {
        match groups.iter_mut().find(|(cc, _)| *cc == flow.cc) {
            Some((_, count)) => *count += 1,
            None => groups.push((&flow.cc, 1)),
        }
    }
    if groups.len() > 4 {
        return format!(
            "{} under {} controllers",
            counted(summary.flows.len(), "flow"),
            groups.len()
        );
    }
    let named = |(cc, count): &(&str, usize)| counted(*count, &format!("{cc} flow"));
    listed(&groups.iter().map(named).collect::<Vec<_>>())
}

/// Describes how much the flows deliver and, if they share a path, the fraction of the possible
/// delivery. The path's rate is not given with the fraction: the fraction also counts data in
/// flight at the start, so that more than the path's rate can be delivered.
fn filling(goodput: f64, summary: &Summary) -> String {
    let absolute = rate(Some(goodput));
    let of_mixes = summary.flows.iter().all(|flow| flow.transfers.is_some());
    let person = if of_mixes { "" } else { third_person(summary.flows.len()) };
    let share = summary.measures.capacity_share.filter(|_| share_a_path(summary));
    match share {
        Some(_) => {
            format!("deliver{person} {absolute}, {} of what the path could deliver", percent(share))
        }
        None => format!("deliver{person} {absolute}"),
    }
}

/// Counts transfers by controller.
fn transfers_in_words(mixes: &[(&str, usize)]) -> String {
    let mut of: Vec<(&str, usize)> = Vec::new();
    for (cc, transfers) in mixes {
        match of.iter_mut().find(|(name, _)| name == cc) {
            Some((_, count)) => *count += transfers,
            None => of.push((cc, *transfers)),
        }
    }
    let all: usize = of.iter().map(|(_, transfers)| transfers).sum();
    match of.len() {
        1..=4 => {
            let named = |(cc, count): &(&str, usize)| format!("{count} transfers under {cc}");
            listed(&of.iter().map(named).collect::<Vec<_>>())
        }
        controllers => format!("{all} transfers under {controllers} controllers"),
    }
}

fn third_person(flows: usize) -> &'static str {
    if flows == 1 { "s" } else { "" }
}

/// Returns whether all flows use the same path.
pub(crate) fn share_a_path(summary: &Summary) -> bool {
    let first = summary.flows.first().map(|flow| &flow.path);
    summary.flows.iter().all(|flow| Some(&flow.path) == first)
}

/// Describes how the flows share the path, between controllers or among equals.
fn sharing(summary: &Summary) -> Option<String> {
    if summary.flows.len() < 2 {
        return None;
    }
    if let Some(shares) = shares_of_two(summary) {
        return Some(shares);
    }
    let jain = summary.measures.jain?;
    let manner = match jain {
        jain if jain >= EVEN => "evenly shared",
        jain if jain >= UNEVEN => "unevenly shared",
        _ => "very unevenly shared",
    };
    Some(format!("{manner} (Jain's index {})", number(Some(jain))))
}

/// Returns the shares of the bytes if there are exactly two controllers. Goodputs alone would
/// overrate flows that are measured for a shorter time.
fn shares_of_two(summary: &Summary) -> Option<String> {
    let first = &summary.flows.first()?.cc;
    let other = &summary.flows.iter().find(|flow| flow.cc != *first)?.cc;
    if summary.flows.iter().any(|flow| flow.cc != *first && flow.cc != *other) {
        return None;
    }
    let of = |cc: &str| -> f64 {
        let members = summary.flows.iter().filter(|flow| flow.cc == cc);
        let measured_us = |flow: &FlowSummary| flow.end_us - flow.start_us - summary.warmup_us;
        members.filter_map(|flow| Some(flow.goodput_bps? * measured_us(flow))).sum()
    };
    let share = of(first) / (of(first) + of(other));
    share.is_finite().then(|| {
        format!(
            "{first} taking {:.0} % of it and {other} {:.0} %",
            share * 100.0,
            (1.0 - share) * 100.0
        )
    })
}

/// Describes the median RTT and the part of it that is queueing delay, which on several paths is
/// different for each.
fn delay(summary: &Summary) -> Option<String> {
    let rtt = summary.measures.rtt_us?.p50;
    let queue = summary.measures.queueing_delay_us.map(|spread| spread.p50);
    let one_path = summary.flows.iter().all(|flow| flow.scheduler.is_none());
    let queue = queue.filter(|&queue| queue >= 0.01 * rtt);
    Some(match queue {
        _ if !one_path => format!("at a median round trip of {}", time_us(Some(rtt))),
        Some(queue) => format!(
            "at a median round trip of {}, of which {} is queue",
            time_us(Some(rtt)),
            time_us(Some(queue))
        ),
        None => format!("at a median round trip of {}, without a queue", time_us(Some(rtt))),
    })
}

fn price(summary: &Summary) -> String {
    let timeouts: u64 = summary.flows.iter().map(|flow| flow.timeouts).sum();
    let again = match summary.measures.retransmit_ratio {
        None | Some(0.0) => "nothing was retransmitted".to_string(),
        ratio => format!("{} of the bytes were retransmitted", percent(ratio)),
    };
    match timeouts {
        0 => again,
        timeouts => {
            let plural = if timeouts == 1 { "" } else { "s" };
            format!("{again}, with {} timeout{plural}", in_words(timeouts as usize))
        }
    }
}
