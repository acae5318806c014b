//! Random links and paths.

use super::Island;
use super::draw::Draw;

/// The links of a path.
pub(super) struct RandomPath {
    forward: Vec<u32>,
    /// Empty for a pure delay.
    reverse: Vec<u32>,
}

impl RandomPath {
    pub fn draw(limited: &[bool], draw: &mut Draw) -> RandomPath {
        let links = limited.len() as u32;
        let mut forward = row(links, draw);
        if forward.iter().all(|link| !limited[*link as usize]) {
            forward.insert(0, 0);
        }
        RandomPath { forward, reverse: if draw.one_in(3) { row(links, draw) } else { Vec::new() } }
    }

    pub fn leads_over(&self, link: u32) -> bool {
        self.forward.contains(&link) || self.reverse.contains(&link)
    }
}

/// Some links in ascending order, at least one.
fn row(links: u32, draw: &mut Draw) -> Vec<u32> {
    let first = draw.between(0, links - 1);
    (first..links).filter(|link| *link == first || draw.one_in(3)).collect()
}

pub(super) struct Kind {
    /// Whether it has a rate, and so a queue.
    pub limited: bool,
    /// Whether a path uses it, so that it has a bandwidth-delay product.
    pub used: bool,
}

pub(super) fn link(
    island: &mut Island,
    name: &str,
    kind: &Kind,
    duration_ms: u32,
    draw: &mut Draw,
) {
    let mut table = format!("[link.{name}]\n");
    if kind.limited {
        table += &rate(island, name, duration_ms, draw);
        table += &buffer(kind.used, draw);
        let aqm = aqm(draw);
        let late = ["codel\"", "dualpi2\""].iter().any(|name| aqm.contains(name));
        table += &aqm;
        if late && draw.one_in(2) {
            table += &device(draw);
        }
    }
    table += &delay(duration_ms, draw);
    table += &loss(island, name, duration_ms, draw);
    if draw.one_in(5) {
        let (amount, reorder) = (draw.between(1, 15), draw.one_in(2));
        let amount = match draw.one_in(3) {
            true => format!(
                "[{{ at = \"0 s\", amount = \"{amount} ms\" }}, \
                 {{ at = \"{} ms\", amount = \"{} ms\" }}]",
                draw.between(1, duration_ms),
                draw.between(0, 15)
            ),
            false => format!("\"{amount} ms\""),
        };
        let share = if draw.one_in(2) { String::new() } else { share(draw) };
        table += &format!("jitter = {{ amount = {amount}, reorder = {reorder}{share} }}\n");
    }
    if draw.one_in(7) {
        let (rate, burst) = (draw.between(200, 4000), draw.between(2, 40));
        table += &format!("policer = {{ rate = \"{rate} kbit/s\", burst = \"{burst} kB\" }}\n");
    }
    if draw.one_in(5) {
        table += &format!("down = [{}]\n", span(duration_ms, false, draw));
    }
    if draw.one_in(6) {
        table += &format!("hold = [{}]\n", span(duration_ms, false, draw));
    }
    if draw.one_in(4) {
        table += &circuit_breaker(draw);
    }
    if draw.one_in(5) {
        table += "ecn_bleached = true\n";
    }
    island.tables.push(table);
}

/// One that trips easily.
fn circuit_breaker(draw: &mut Draw) -> String {
    let (interval_ms, intervals) = (draw.of(&[600, 1000, 1234]), draw.between(1, 3));
    let reset = match draw.one_in(2) {
        true => {
            format!(", reset_after = \"{} ms\"", interval_ms * intervals + draw.between(0, 500))
        }
        false => String::new(),
    };
    format!(
        "circuit_breaker = {{ interval = \"{interval_ms} ms\", loss = \"{} %\", \
         intervals = {intervals}{reset} }}\n",
        draw.of(&[0, 5, 20])
    )
}

/// Share of the packets that are late.
fn share(draw: &mut Draw) -> String {
    format!(", share = \"{} %\"", draw.between(0, 100))
}

/// A time span, possibly without end.
fn span(duration_ms: u32, open: bool, draw: &mut Draw) -> String {
    let from = if draw.one_in(4) { 0 } else { draw.between(1, duration_ms) };
    if open && draw.one_in(4) {
        return format!("{{ from = \"{from} ms\" }}");
    }
    let until = from + draw.between(1, duration_ms / 2);
    format!("{{ from = \"{from} ms\", until = \"{until} ms\" }}")
}

fn rate(island: &mut Island, name: &str, duration_ms: u32, draw: &mut Draw) -> String {
    let (first, then) = (draw.between(150, 6000), draw.between(0, 6000));
    let (at, back) = (draw.between(1, duration_ms), draw.between(1, duration_ms));
    match draw.between(0, 7) {
        0 | 1 => format!(
            "rate = [{{ at = \"0 s\", rate = \"{first} kbit/s\" }}, \
             {{ at = \"{at} ms\", rate = \"{then} kbit/s\" }}, \
             {{ at = \"{} ms\", rate = \"{first} kbit/s\" }}]\n",
            at + back
        ),
        2 => {
            let file = format!("{name}.trace");
            island.files.push((file.clone(), trace(draw)));
            format!("rate = {{ trace = \"{file}\" }}\n")
        }
        _ => format!("rate = \"{first} kbit/s\"\n"),
    }
}

/// Packet opportunities in ms, some simultaneous, with occasional gaps.
fn trace(draw: &mut Draw) -> String {
    let (mut at, mut text) = (0, String::new());
    for _ in 0..draw.between(20, 300) {
        at += if draw.one_in(25) { draw.between(50, 250) } else { draw.between(0, 12) };
        text += &format!("{}\n", at.max(1));
    }
    text
}

fn buffer(used: bool, draw: &mut Draw) -> String {
    let size = match draw.between(0, if used { 4 } else { 2 }) {
        0 => format!("{} packets", draw.between(1, 100)),
        1 => format!("{} kB", draw.between(2, 150)),
        2 => "unlimited".to_string(),
        // Less might not hold a segment; the default always does.
        3 => format!("{} BDP", draw.between(27, 80)),
        _ => return String::new(),
    };
    format!("buffer = \"{size}\"\n")
}

fn device(draw: &mut Draw) -> String {
    match draw.one_in(2) {
        true => format!("device = \"{} packets\"\n", draw.between(1, 30)),
        false => format!("device = \"{} kB\"\n", draw.between(1, 30)),
    }
}

fn aqm(draw: &mut Draw) -> String {
    let aqm = if draw.one_in(2) { draw.between(0, 5) } else { 6 };
    let ecn = draw.one_in(2);
    match aqm {
        0 => format!("aqm = {{ name = \"threshold\", delay = \"{} ms\" }}\n", draw.between(1, 30)),
        1 => format!(
            "aqm = {{ name = \"red\", min_threshold = \"{} kB\", max_threshold = \"{} kB\" }}\n\
             ecn = {ecn}\n",
            draw.between(2, 10),
            draw.between(12, 50)
        ),
        2 => format!("aqm = \"codel\"\necn = {ecn}\n"),
        3 => format!(
            "aqm = {{ name = \"fq-codel\", flows = {} }}\necn = {ecn}\n",
            draw.of(&[2, 8, 1024])
        ),
        4 => format!("aqm = \"pie\"\necn = {ecn}\n"),
        5 => "aqm = \"dualpi2\"\n".to_string(),
        _ => String::new(),
    }
}

fn delay(duration_ms: u32, draw: &mut Draw) -> String {
    // Whole milliseconds produce simultaneous events on several links.
    let one = |draw: &mut Draw| match draw.between(0, 2) {
        0 => format!("{} us", draw.between(1000, 60_000)),
        _ => format!("{} ms", draw.of(&[2, 5, 10, 20, 40])),
    };
    let (first, then, at) = (one(draw), one(draw), draw.between(1, duration_ms));
    if draw.one_in(5) {
        return format!(
            "delay = [{{ at = \"0 s\", delay = \"{first}\" }}, \
             {{ at = \"{at} ms\", delay = \"{then}\" }}]\n"
        );
    }
    format!("delay = \"{first}\"\n")
}

fn loss(island: &mut Island, name: &str, duration_ms: u32, draw: &mut Draw) -> String {
    let percent = draw.between(1, 10);
    match draw.between(0, 8) {
        8 => format!(
            "loss = [{{ at = \"0 s\", loss = \"{percent} %\" }}, {{ at = \"{} ms\", \
             loss = {{ every = {} }} }}]\n",
            draw.between(1, duration_ms),
            draw.between(5, 200)
        ),
        0 => format!("loss = \"{percent} %\"\n"),
        1 => format!("loss = {{ super_packets = \"{percent} %\" }}\n"),
        2 => format!("loss = {{ every = {} }}\n", draw.between(5, 200)),
        3 => format!(
            "loss = {{ good_to_bad = \"{percent} %\", bad_to_good = \"{} %\" }}\n",
            draw.between(10, 60)
        ),
        4 => {
            let file = format!("{name}.lost");
            let packets = 20 + draw.between(0, 200);
            let lost = (0..packets).map(|_| if draw.one_in(15) { '1' } else { '0' });
            // The first packet is never lost, or nothing might get through.
            let record = std::iter::once('0').chain(lost).collect();
            island.files.push((file.clone(), record));
            format!("loss = {{ file = \"{file}\" }}\n")
        }
        _ => String::new(),
    }
}

pub(super) fn path(
    prefix: &str,
    path: usize,
    way: &RandomPath,
    duration_ms: u32,
    draw: &mut Draw,
) -> String {
    let list = |links: &[u32]| {
        let names: Vec<String> = links.iter().map(|link| format!("\"{prefix}-l{link}\"")).collect();
        names.join(", ")
    };
    let mut table = format!("[path.{prefix}-p{path}]\nforward = [{}]\n", list(&way.forward));
    if way.reverse.is_empty() {
        table += &format!("reverse_delay = \"{} ms\"\n", draw.of(&[2, 5, 10, 20, 40]));
    } else {
        table += &format!("reverse = [{}]\n", list(&way.reverse));
    }
    if draw.one_in(3) {
        table += &format!("absent = [{}]\n", span(duration_ms, true, draw));
    }
    if draw.one_in(3) {
        table += &format!("tunnel = \"{prefix}-t{}\"\n", draw.between(0, 1));
    }
    table
}
