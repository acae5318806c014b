//! Makes a scenario from recorded links, so that the laboratory can show how another scheduler or
//! controller would have done.
//!
//! A link shows what it carried, not what it could have carried. In a second in which it carried at
//! least half of its maximum, or in which its RTT had grown by half and 5 ms (a standing queue),
//! what it carried counts as its rate; in any other second the rate is that of the last such
//! second. A direction that never carried 200 kbit/s has no rate in the scenario. The delay is half
//! the lowest RTT each direction, because one end cannot tell the two apart (RFC 5905 has clocks for
//! that). Loss is known only for the direction in which the recorded end sends.

use super::series::{Course, Direction, courses, direction};
use super::snapshot::{STEP, Snapshot};
use crate::settings::WINDOW;
use knee_units::printable;
use std::collections::BTreeMap;
use std::fmt::Write;

/// Shots per second.
const SECOND: usize = (1000 / STEP.as_millis()) as usize;
/// A direction that never carried this much says nothing about its rate, bit/s.
const TELLING_BPS: f64 = 200e3;
/// Relative difference up to which rates count as equal.
const SAME: f64 = 0.1;
/// Bytes of IP for each byte of QUIC packets that fill Ethernet's frames over IPv4; over IPv6 it is
/// 1.4 % more.
const HEADERS: f64 = 1500.0 / 1472.0;
/// Shares of loss below this are attributed to queues.
const LOSS_LEAST: f64 = 0.001;
/// Minimum size of a buffer, bytes.
const BUFFER_LEAST: f64 = 64e3;

/// Maximum length of a link's name. A scenario allows 64 characters, and "-there" follows.
const NAME_MAX: usize = 40;

/// Gives each link a name that scenarios allow, such as `eth0_100` for `eth0.100`, and no two links
/// the same.
pub fn make_names_usable(snapshots: &mut [Snapshot]) {
    let mut given: BTreeMap<String, String> = BTreeMap::new();
    for link in snapshots.iter_mut().flat_map(|snapshot| &mut snapshot.links) {
        if !given.contains_key(&link.name) {
            let usable = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let letters = link.name.chars().take(NAME_MAX);
            let mut name: String = letters.map(|c| if usable(c) { c } else { '_' }).collect();
            if name.is_empty() {
                name.push_str("link");
            }
            let numbered = (2..).map(|number| format!("{name}_{number}"));
            let mut all = std::iter::once(name.clone()).chain(numbered);
            let is_free = |name: &String| !given.values().any(|other| other == name);
            given.insert(link.name.clone(), all.find(is_free).unwrap_or_default());
        }
        link.name.clone_from(&given[&link.name]);
    }
}

/// Returns the scenario of a recording, whose names are usable.
pub fn scenario_text(snapshots: &[Snapshot]) -> String {
    let courses = courses(snapshots);
    let main = direction(&courses);
    let other = if main == Direction::Out { Direction::In } else { Direction::Out };
    let end_s = snapshots.last().map_or(0.0, |snapshot| snapshot.time_ns as f64 / 1e9);
    let first = snapshots.first().cloned().unwrap_or_default();
    let mut text = String::new();
    let peer = if first.peer.is_empty() { String::new() } else { format!(", {}", first.peer) };
    let name = format!("Links as recorded{peer}");
    let name = toml::Value::from(&*printable(&name, |_| false));
    let _ = writeln!(text, "name = {name}");
    let _ = writeln!(text, "duration = \"{} ms\"", (end_s * 1e3).ceil().max(1000.0));
    // QUIC's, not those of Multipath TCP, whose window grows as data arrives in order.
    let window = WINDOW >> 20;
    let _ = writeln!(text, "\n[transport]\nacks = \"quic\"\nreceive_window = \"{window} MiB\"");
    let mut names = Vec::new();
    for (name, course) in &courses {
        let delay_us = course.min_rtt_ns() / 2000;
        for (suffix, direction) in [("there", main), ("back", other)] {
            let _ = writeln!(text, "\n[link.{name}-{suffix}]");
            let _ = writeln!(text, "delay = \"{delay_us} us\"");
            write_rate(&mut text, course, direction);
            if let (Direction::Out, Some(loss)) = (direction, loss(course)) {
                let _ = writeln!(text, "loss = \"{:.2} %\"", loss * 100.0);
            }
        }
        let _ = writeln!(text, "\n[path.{name}]");
        let _ = writeln!(text, "forward = [\"{name}-there\"]\nreverse = [\"{name}-back\"]");
        let absences = absences(snapshots, course);
        if !absences.is_empty() {
            let _ = writeln!(text, "absent = [{}]", absences.join(", "));
        }
        names.push(format!("\"{name}\""));
    }
    let _ = writeln!(text, "\n[[flow]]\nname = \"evening\"\ncc = {}", written(&first.controller));
    // Only a flow with `paths` knows that its path is absent.
    if let [name] = &names[..]
        && !text.contains("\nabsent = ")
    {
        let _ = writeln!(text, "path = {name}");
    } else {
        let _ = writeln!(
            text,
            "paths = [{}]\nscheduler = {}",
            names.join(", "),
            written(&first.scheduler)
        );
    }
    text
}

/// Returns a controller or scheduler as a scenario has it; an end of an earlier version tells its
/// name without quotes.
fn written(selection: &str) -> String {
    if selection.starts_with(['"', '{']) {
        selection.to_owned()
    } else {
        format!("\"{selection}\"")
    }
}

/// Returns for each second what it carried, bit/s, and the highest smoothed RTT, ns.
fn seconds(course: &Course, direction: Direction) -> Vec<(f64, u64)> {
    let carried = course.carried(direction);
    let whole = carried.len().saturating_sub(1) / SECOND;
    let second = |number: usize| {
        let (from, to) = (number * SECOND, (number + 1) * SECOND);
        let bits = (carried[to] - carried[from]) as f64 * 8.0 * HEADERS;
        let span = STEP.as_secs_f64() * SECOND as f64;
        let rtt = course.snapshots[from..to].iter().flatten().map(|link| link.srtt_ns).max();
        (bits / span, rtt.unwrap_or(0))
    };
    (0..whole).map(second).collect()
}

/// Returns the rate in each second, or `None` if nothing shows it.
fn rates(course: &Course, direction: Direction) -> Option<Vec<f64>> {
    let seconds = seconds(course, direction);
    let most = seconds.iter().map(|(rate, _)| *rate).fold(0.0, f64::max);
    if most < TELLING_BPS {
        return None;
    }
    let standing = course.min_rtt_ns() * 3 / 2 + 5_000_000;
    let telling = |(rate, rtt): &(f64, u64)| {
        *rate >= most / 2.0 || (*rtt >= standing && *rate >= TELLING_BPS / 10.0)
    };
    let first = seconds.iter().find(|second| telling(second)).map_or(most, |(rate, _)| *rate);
    let each = seconds.iter().scan(first, |last, second| {
        if telling(second) {
            *last = second.0;
        }
        Some(*last)
    });
    Some(each.collect())
}

fn write_rate(text: &mut String, course: &Course, direction: Direction) {
    let Some(rates) = rates(course, direction) else { return };
    let mut steps: Vec<(usize, f64)> = Vec::new();
    for (second, rate) in rates.iter().enumerate() {
        let differs = |(_, last): &(usize, f64)| (rate - last).abs() > SAME * last;
        if steps.last().is_none_or(differs) {
            steps.push((second, *rate));
        }
    }
    let kbit = |rate: f64| (rate / 1e3).round().max(1.0);
    let step = |(second, rate): &(usize, f64)| {
        format!("{{ at = \"{second} s\", rate = \"{} kbit/s\" }}", kbit(*rate))
    };
    let _ = match &steps[..] {
        [(_, rate)] => writeln!(text, "rate = \"{} kbit/s\"", kbit(*rate)),
        steps => {
            let steps: Vec<String> = steps.iter().map(step).collect();
            writeln!(text, "rate = [{}]", steps.join(", "))
        }
    };
    // The longest queue seen, at the rate of its second.
    let seen = seconds(course, direction);
    let queued = seen
        .iter()
        .map(|(rate, rtt)| rtt.saturating_sub(course.min_rtt_ns()) as f64 / 1e9 * rate / 8.0);
    let buffer = queued.fold(BUFFER_LEAST, f64::max);
    let _ = writeln!(text, "buffer = \"{} kB\"", (buffer / 1e3).ceil());
}

/// Returns the share of packets lost, or `None` if queues explain it.
fn loss(course: &Course) -> Option<f64> {
    let last = |counts: Vec<u64>| counts.last().copied().unwrap_or(0) as f64;
    let (sent, lost) = (last(course.count(|link| link.sent)), last(course.count(|link| link.lost)));
    let part = lost / sent.max(1.0);
    (sent > 0.0 && part >= LOSS_LEAST).then_some(part.min(0.99))
}

/// Returns the spans in which the link was down or silent.
fn absences(snapshots: &[Snapshot], course: &Course) -> Vec<String> {
    let mut spans = Vec::new();
    let mut since = None;
    let there =
        course.snapshots.iter().map(|link| link.as_ref().is_some_and(|link| !link.is_silent));
    for (snapshot, is_there) in snapshots.iter().zip(there) {
        let at_ms = snapshot.time_ns / 1_000_000;
        match (since, is_there) {
            (None, false) => since = Some(at_ms),
            (Some(from), true) => {
                spans.push(format!("{{ from = \"{from} ms\", until = \"{at_ms} ms\" }}"));
                since = None;
            }
            _ => {}
        }
    }
    spans.extend(since.map(|from| format!("{{ from = \"{from} ms\" }}")));
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::snapshot::LinkSnapshot;

    #[test]
    fn links_and_peers_of_any_name_are_recorded() {
        let names = ["eth0.100", "eth0_100", "wlan\"0", "a b", "", "dot=[]", "eth0*100"];
        let link = |name: &&str| LinkSnapshot {
            name: (*name).to_owned(),
            min_rtt_ns: 20_000_000,
            ..LinkSnapshot::default()
        };
        let snapshot = |number: u64| Snapshot {
            time_ns: number * 100_000_000,
            peer: "Ann's \"laptop\"\\\n".to_owned(),
            controller: "\"bbr\"".to_owned(),
            scheduler: "\"minrtt\"".to_owned(),
            links: names.iter().map(link).collect(),
            ..Snapshot::default()
        };
        let mut snapshots: Vec<Snapshot> = (0..20).map(snapshot).collect();
        make_names_usable(&mut snapshots);
        let text = scenario_text(&snapshots);
        let scenario = crate::record::scenario(&text).unwrap_or_else(|why| panic!("{why}: {text}"));
        assert_eq!(scenario.paths.len(), names.len(), "{text}");
        for link in &snapshots[0].links {
            assert!(scenario.paths.iter().any(|path| path.name == link.name), "{}", link.name);
        }
        assert_eq!(snapshots[0].links[0].name, "eth0_100");
        assert_eq!(snapshots[0].links[1].name, "eth0_100_2");
        assert!(scenario.name.contains("Ann's \"laptop\""), "{}", scenario.name);
    }
}
