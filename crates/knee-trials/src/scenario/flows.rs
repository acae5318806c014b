//! Random flows and workloads.

use super::Island;
use super::draw::Draw;

/// The last two require exactly two paths.
const SCHEDULERS: [&str; 11] = [
    "minrtt",
    "minrtt-penalising",
    "round-robin",
    "redundant",
    "opportunistic-redundant",
    "sctc",
    "ecf",
    "blest",
    "capacity",
    "daps",
    "dems",
];
/// Its readings.
const SCTC: [&str; 4] = [
    "\"sctc\"",
    "{ name = \"sctc\", plan = true }",
    "{ name = \"sctc\", cycle = true }",
    "{ name = \"sctc\", cycle = true, send_buffer = true }",
];
const CONTROLLERS: [&str; 20] = [
    "reno",
    "reno",
    "reno",
    "cubic",
    "cubic",
    "cubic",
    "bbr",
    "bbr-low-delay",
    "bbr3",
    "bbr3-linux",
    "lia",
    "olia",
    "balia",
    "dctcp",
    "vegas",
    "prague",
    "copa",
    "ledbat++",
    "vivace",
    "remycc",
];

pub(super) fn flow(
    island: &mut Island,
    prefix: &str,
    flow: u32,
    paths: u32,
    duration_ms: u32,
    draw: &mut Draw,
) {
    let name = format!("{prefix}-f{flow}");
    let mut table = format!("[[flow]]\nname = \"{name}\"\ncc = \"{}\"\n", draw.of(&CONTROLLERS));
    table += &way(island, prefix, paths, draw);
    // Equal starts produce simultaneous events.
    let start = draw.of(&[0, 0, 0, 10, 100, duration_ms / 3]);
    if start > 0 {
        table += &format!("start = \"{start} ms\"\n");
    }
    if draw.one_in(4) {
        table += &format!("count = {}\n", draw.between(2, 3));
    }
    // Leave a mix time for at least one arrival.
    if draw.one_in(4) {
        let stop = start + 100 + draw.between(200, duration_ms / 2);
        table += &format!("stop = \"{stop} ms\"\n");
    }
    table += &workload(island, &name, draw);
    table += &transport(draw);
    island.tables.push(table);
}

/// One path, or several with a scheduler.
fn way(island: &Island, prefix: &str, paths: u32, draw: &mut Draw) -> String {
    if draw.one_in(2) {
        let name = format!("{prefix}-p{}", draw.between(0, paths - 1));
        let header = format!("[path.{name}]\n");
        let mut table = island.tables.iter().filter(|table| table.starts_with(&header));
        // Only a flow with `paths` may take a path that is absent for a while.
        let absent = table.any(|table| table.contains("absent = "));
        let way =
            if absent { format!("paths = [\"{name}\"]") } else { format!("path = \"{name}\"") };
        return way + "\n";
    }
    let first = draw.between(0, paths - 1);
    let taken = draw.between(1.max(paths / 2), paths);
    let name = |number: u32| format!("\"{prefix}-p{}\"", (first + number) % paths);
    let names: Vec<String> = (0..taken).map(name).collect();
    let schedulers = if taken == 2 { &SCHEDULERS[..] } else { &SCHEDULERS[..9] };
    let mut text = format!("paths = [{}]\n", names.join(", "));
    text += &match draw.of(schedulers) {
        "sctc" => format!("scheduler = {}\n", draw.of(&SCTC)),
        name => format!("scheduler = \"{name}\"\n"),
    };
    if draw.one_in(2) {
        text += &format!("reinjection = {}\n", draw.one_in(2));
    }
    if taken > 1 && draw.one_in(5) {
        text += &format!("backup = [{}]\n", names[names.len() - 1]);
    }
    text
}

fn workload(island: &mut Island, name: &str, draw: &mut Draw) -> String {
    let text = match draw.weighted(&[(4, 0), (1, 1), (1, 2), (2, 3), (2, 4), (1, 5)]) {
        0 => mix(island, name, draw),
        1 => page(island, name, draw),
        2 => dash(draw),
        5 => bursts(draw),
        3 => format!("{{ file = \"{} B\" }}", draw.between(1, 200_000)),
        _ => return String::new(),
    };
    format!("workload = {text}\n")
}

fn mix(island: &mut Island, name: &str, draw: &mut Draw) -> String {
    let interval = draw.between(20, 150);
    let sizes = match draw.between(0, 5) {
        0 => format!("\"{} B\"", draw.between(1, 20_000)),
        1 => "{ min = \"500 B\", shape = 1.2, max = \"100 kB\" }".to_string(),
        2 => {
            let file = format!("{name}.log");
            let sizes = (0..8).map(|_| format!("{}\n", draw.between(1, 30_000))).collect();
            island.files.push((file.clone(), sizes));
            format!("{{ log = \"{file}\" }}")
        }
        _ => {
            format!("{{ median = \"{} kB\", sigma = 1.0, max = \"100 kB\" }}", draw.between(1, 10))
        }
    };
    let count = match draw.one_in(4) {
        true => format!(", count = {}", draw.between(1, 20)),
        false => String::new(),
    };
    format!("{{ mix = {{ arrival_interval = \"{interval} ms\", sizes = {sizes}{count} }} }}")
}

fn page(island: &mut Island, name: &str, draw: &mut Draw) -> String {
    let file = format!("{name}.csv");
    let mut objects = format!("name,bytes,after\no0,{},\n", draw.between(1, 20_000));
    for object in 1..draw.between(2, 9) {
        let after = match draw.one_in(3) {
            true => String::new(),
            false => format!("o{}", draw.between(0, object - 1)),
        };
        objects += &format!("o{object},{},{after}\n", draw.between(1, 20_000));
    }
    island.files.push((file.clone(), objects));
    let http = match draw.one_in(2) {
        true => "http = \"multiplexed\"".to_string(),
        false => format!("connections = {}", draw.between(1, 6)),
    };
    format!("{{ page = {{ objects = \"{file}\", {http} }} }}")
}

fn dash(draw: &mut Draw) -> String {
    format!(
        "{{ dash = {{ ladder = [\"80 kbit/s\", \"200 kbit/s\", \"500 kbit/s\"], \
         segment = \"{} ms\", media = \"3 s\", buffer = \"{} ms\", rule = \"{}\" }} }}",
        draw.between(200, 600),
        draw.between(800, 2000),
        draw.of(&["throughput", "bola", "dynamic"])
    )
}

fn bursts(draw: &mut Draw) -> String {
    let count =
        if draw.one_in(2) { format!(", count = {}", draw.between(1, 20)) } else { String::new() };
    format!(
        "{{ bursts = {{ size = \"{} B\", pause = \"{} ms\"{count} }} }}",
        draw.between(1, 50_000),
        draw.between(1, 150)
    )
}

fn transport(draw: &mut Draw) -> String {
    let mut text = String::new();
    if draw.one_in(3) {
        text += "ecn = true\n";
    }
    if draw.one_in(4) {
        text += &format!("receive_window = \"{} kB\"\n", draw.between(3, 100));
    }
    if draw.one_in(4) {
        text += &format!("pacing = \"{}\"\n", draw.of(&["on", "off"]));
    }
    if draw.one_in(3) {
        text += &format!("ack_every = {}\n", draw.of(&[1, 2, 3, 4, 20]));
    }
    if draw.one_in(6) {
        text += "acks = \"quic\"\n";
    }
    if draw.one_in(8) {
        text += &format!("ack_bytes = \"{} kB\"\n", draw.between(1, 40));
    }
    if draw.one_in(8) {
        text += &format!(
            "ack_frequency = {{ per_round = {}, reordering = {} }}\n",
            draw.between(1, 8),
            draw.of(&[0, 1, 3])
        );
    }
    if draw.one_in(6) {
        text += &format!("initial_window = {}\n", draw.between(1, 30));
    }
    if draw.one_in(6) {
        text += &format!("mss = \"{} B\"\n", draw.of(&[536, 1000, 1220]));
    }
    text
}
