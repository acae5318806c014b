//! Random islands in which much happens at once to a short path with a small queue.

use super::Island;
use super::draw::Draw;

/// Draws one or two paths of 1 to 40 ms, and flows over them.
pub(super) fn island(prefix: &str, duration_ms: u32, draw: &mut Draw) -> Island {
    let mut island = Island::default();
    let paths = draw.between(1, 2);
    for path in 0..paths {
        let delay_us = draw.between(500, 20_000);
        island.tables.push(forward(prefix, path, delay_us, duration_ms, draw));
        island.tables.push(back(prefix, path, delay_us, duration_ms, draw));
        island.tables.push(format!(
            "[path.{prefix}-p{path}]\nforward = [\"{prefix}-w{path}\"]\n\
             reverse = [\"{prefix}-b{path}\"]\n"
        ));
    }
    for number in 0..draw.between(1, 3) {
        island.tables.push(flow(prefix, number, paths, draw));
    }
    island
}

/// The link that carries the data.
fn forward(prefix: &str, path: u32, delay_us: u32, duration_ms: u32, draw: &mut Draw) -> String {
    let rate = draw.between(300, 6000);
    let mut table = format!(
        "[link.{prefix}-w{path}]\nrate = \"{rate} kbit/s\"\ndelay = \"{delay_us} us\"\n\
         buffer = \"{} packets\"\n",
        draw.between(2, 20)
    );
    if !draw.one_in(3) {
        let late_ms = draw.of(&[1, 5, 20, 100, 400]);
        let amount = for_a_while("amount", "0 ms", &format!("{late_ms} ms"), duration_ms, draw);
        table += &format!("jitter = {{ reorder = true, {amount} }}\n");
    }
    if !draw.one_in(3) {
        let percent = draw.of(&[1, 3, 10, 30, 60, 90]);
        let loss = for_a_while("loss", "0 %", &format!("{percent} %"), duration_ms, draw);
        table += &format!("{loss}\n");
    }
    if draw.one_in(3) {
        table += &format!("down = [{}]\n", span(duration_ms, draw));
    }
    if draw.one_in(3) {
        table += &format!("hold = [{}]\n", span(duration_ms, draw));
    }
    if draw.one_in(4) {
        let (part, burst) = (draw.between(20, 120), draw.between(3, 30));
        table += &format!(
            "policer = {{ rate = \"{} kbit/s\", burst = \"{burst} kB\" }}\n",
            rate * part / 100
        );
    }
    table
}

/// The link that carries the ACKs, which may lose most of them and deliver the others together.
fn back(prefix: &str, path: u32, delay_us: u32, duration_ms: u32, draw: &mut Draw) -> String {
    let mut table = format!("[link.{prefix}-b{path}]\ndelay = \"{delay_us} us\"\n");
    if draw.one_in(2) {
        let percent = draw.of(&[5, 30, 80, 95]);
        let loss = for_a_while("loss", "0 %", &format!("{percent} %"), duration_ms, draw);
        table += &format!("{loss}\n");
    }
    if draw.one_in(2) {
        let (every_ms, first_ms) = (draw.between(5, 120), draw.between(1, duration_ms / 2));
        let holds = (0..draw.between(1, 20)).map(|number| {
            let from_ms = first_ms + number * every_ms;
            format!("{{ from = \"{from_ms} ms\", until = \"{} ms\" }}", from_ms + every_ms - 1)
        });
        table += &format!("hold = [{}]\n", holds.collect::<Vec<_>>().join(", "));
    }
    table
}

/// A value that changes for a part of the run, or, one time in four, from then on.
fn for_a_while(key: &str, calm: &str, storm: &str, duration_ms: u32, draw: &mut Draw) -> String {
    let from_ms = draw.between(1, duration_ms / 2);
    let until_ms = from_ms + draw.between(1, duration_ms / 3);
    let step = |at_ms: u32, value: &str| format!("{{ at = \"{at_ms} ms\", {key} = \"{value}\" }}");
    let mut steps = vec![step(0, calm), step(from_ms, storm)];
    if !draw.one_in(4) {
        steps.push(step(until_ms, calm));
    }
    format!("{key} = [{}]", steps.join(", "))
}

/// A time span of at most a third of the run.
fn span(duration_ms: u32, draw: &mut Draw) -> String {
    let from_ms = draw.between(1, duration_ms / 2);
    let until_ms = from_ms + draw.between(1, duration_ms / 3);
    format!("{{ from = \"{from_ms} ms\", until = \"{until_ms} ms\" }}")
}

fn flow(prefix: &str, number: u32, paths: u32, draw: &mut Draw) -> String {
    let mut table = format!(
        "[[flow]]\nname = \"{prefix}-f{number}\"\ncc = \"{}\"\n",
        draw.of(&crate::controllers())
    );
    match paths == 2 && draw.one_in(3) {
        true => table += &format!("paths = [\"{prefix}-p0\", \"{prefix}-p1\"]\n"),
        false => table += &format!("path = \"{prefix}-p{}\"\n", draw.between(0, paths - 1)),
    }
    table += &workload(draw);
    if draw.one_in(3) {
        table += &format!("ack_every = {}\n", draw.of(&[1, 4, 20]));
    }
    if draw.one_in(6) {
        table += "acks = \"quic\"\n";
    }
    if draw.one_in(6) {
        table += &format!("receive_window = \"{} kB\"\n", draw.between(3, 100));
    }
    table
}

/// Half of the flows are limited by their application for a part of the time.
fn workload(draw: &mut Draw) -> String {
    match draw.between(0, 5) {
        0 | 1 => format!(
            "workload = {{ bursts = {{ size = \"{} B\", pause = \"{} ms\" }} }}\n",
            draw.between(1, 60_000),
            draw.between(1, 400)
        ),
        2 => format!(
            "workload = {{ mix = {{ arrival_interval = \"{} ms\", sizes = {{ median = \"4 kB\", \
             sigma = 1.0, max = \"100 kB\" }} }} }}\n",
            draw.between(20, 200)
        ),
        _ => String::new(),
    }
}
