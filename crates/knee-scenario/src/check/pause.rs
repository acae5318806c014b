//! Back-pressure: links that ask those before them to pause.

use super::queue::Place;
use crate::file::{LinkFile, PauseFile};
use crate::model::{Link, Path, Reverse};
use crate::read::{At, Named, Optional};
use crate::source::Reading;
use crate::tree::Span;
use knee_link::{Aqm, Buffer, Pause, RateModel};
use knee_units::Fraction;

/// Segments that the queue must hold where it asks for a pause: one that finds it empty never waits.
const SEGMENTS_MIN: u64 = 2;

/// Checks the lengths of the queue at which a link asks for a pause and for its end.
pub(super) fn check(
    file: &LinkFile,
    (buffer, aqm): (Buffer, &Aqm),
    place: &Place<'_>,
    reading: &mut Reading<'_>,
) -> Option<Pause> {
    let At { value: PauseFile { at, until }, span } = file.pause.at()?;
    // A link without a rate is reported with its other keys.
    if place.rate.is_none_or(|rate| *rate == RateModel::Unlimited) || file.buffer.is_broken() {
        return None;
    }
    let (first, last) = (at.get()?.get(), until.get()?.get());
    if last >= first {
        let (at, until) = (Fraction::new(first), Fraction::new(last));
        let message = format!("a pause ends at {until} of the buffer, and begins at {at}");
        reading.problem(*span, message, "write an until below at");
        return None;
    }
    if *aqm != Aqm::DropTail {
        let help = "remove aqm, or remove pause";
        reading.problem(*span, "a link that asks for pauses drops nothing early", help);
    }
    let limit = match buffer {
        Buffer::Unlimited => {
            let help = "write a size, such as buffer = \"64 kB\"";
            reading.problem(*span, "a queue without a limit never fills", help);
            return None;
        }
        Buffer::Bytes(limit) | Buffer::Packets(limit) => limit,
    };
    let part = |part: f64| part * limit as f64;
    let pause = Pause { at: part(first).ceil() as u64, until: part(last).floor() as u64 };
    let segment = if matches!(buffer, Buffer::Packets(_)) { 1 } else { place.mtu };
    if pause.at < SEGMENTS_MIN * segment {
        let message = format!("{} of the buffer is less than two segments", Fraction::new(first));
        reading.problem(*span, message, "write a larger buffer");
    }
    Some(pause)
}

/// Marks the links that others ask to pause; reports those that cannot.
pub(super) fn check_before(
    files: &Named<LinkFile>,
    paths: &[&Path],
    links: &mut [Link],
    reading: &mut Reading<'_>,
) {
    let span = |link: usize| match &files.0[link].1 {
        Optional::Given(file) => file.value.pause.span().unwrap_or(file.span),
        _ => Span::default(),
    };
    let asks = |links: &[Link], link: usize| links[link].config.pause.is_some();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    for path in paths {
        let back: &[usize] = match &path.reverse {
            Reverse::Delay(_) => &[],
            Reverse::Links(back) => back,
        };
        for (way, row) in [("path", &path.forward[..]), ("the way back of path", back)] {
            if let Some(first) = row.first().filter(|first| asks(links, **first)) {
                let name = &links[*first].name;
                let message = format!(
                    "\"{name}\" is the first link of {way} \"{}\": none before it could pause",
                    path.name
                );
                let help = format!("add the sending host's own link, as in [\"host\", \"{name}\"]");
                reading.problem(span(*first), message, help);
            }
            let pairs = row.windows(2).filter(|pair| asks(links, pair[1]));
            edges.extend(pairs.map(|pair| (pair[0], pair[1])));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    for (before, link) in &edges {
        if let Some((problem, help)) = cannot_pause(&links[*before]) {
            let (name, asking) = (&links[*before].name, &links[*link].name);
            let message = format!("\"{asking}\" asks \"{name}\" to pause, which {problem}");
            reading.problem(span(*link), message, help);
        }
        links[*before].config.pausable = true;
    }
    if let Some(circle) = circle(links.len(), &edges) {
        let names: Vec<String> =
            circle.iter().map(|link| format!("\"{}\"", links[*link].name)).collect();
        let message = format!("{} pauses {}", names.join(" pauses "), names[0]);
        let help = "remove pause from one of them: each could wait for the other for ever";
        reading.problem(span(circle[0]), message, help);
    }
}

/// Why a link cannot pause, and what to write instead.
fn cannot_pause(link: &Link) -> Option<(&'static str, &'static str)> {
    let config = &link.config;
    if config.rate == RateModel::Unlimited {
        return Some((
            "has no rate, so that nothing waits in it",
            "add rate = \"100 Mbit/s\" there",
        ));
    }
    if config.device.is_some() {
        return Some(("has a device queue", "remove device there"));
    }
    if config.aqm != Aqm::DropTail && !config.aqm.decides_on_leaving() {
        let problem = "has an AQM that needs to know on entry how long a packet will wait";
        return Some((
            problem,
            "write aqm = \"codel\", \"fq-codel\" or \"dualpi2\" there, or none",
        ));
    }
    None
}

/// Returns a circle of links that pause one another, each followed by one that it asks, if there is
/// any. `edges` are pairs of a link that is asked and one that asks it. Takes time in proportion to
/// their number.
fn circle(links: usize, edges: &[(usize, usize)]) -> Option<Vec<usize>> {
    let mut asks = vec![Vec::new(); links];
    let mut askers = vec![0_usize; links];
    for (before, link) in edges {
        asks[*link].push(*before);
        askers[*before] += 1;
    }
    // Those that nobody asks are in no circle, nor are those that only such ask.
    let mut free: Vec<usize> = (0..links).filter(|link| askers[*link] == 0).collect();
    while let Some(link) = free.pop() {
        for before in &asks[link] {
            askers[*before] -= 1;
            if askers[*before] == 0 {
                free.push(*before);
            }
        }
    }
    let mut asker = vec![None; links];
    for (before, link) in edges.iter().filter(|(_, link)| askers[*link] > 0) {
        asker[*before] = Some(*link);
    }
    // From asked to asking, until one comes again.
    let mut at = (0..links).find(|link| askers[*link] > 0)?;
    let (mut way, mut place) = (Vec::new(), vec![None; links]);
    while place[at].is_none() {
        place[at] = Some(way.len());
        way.push(at);
        at = asker[at]?;
    }
    let mut circle = way.split_off(place[at]?);
    circle.reverse();
    let first = (0..circle.len()).min_by_key(|place| circle[*place])?;
    circle.rotate_left(first);
    Some(circle)
}
