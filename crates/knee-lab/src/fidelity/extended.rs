//! Cells beyond the grid: mixed controllers, more flows, varying rates, AQMs, heavier loss, several
//! paths.

use super::cell::{Cell, Factors, link, path};
use std::fmt::Write as _;
use std::sync::Arc;

const PLAIN: Factors =
    Factors { mbit: 20.0, rtt_ms: 40.0, buffer_bdp: 2.0, loss_percent: 0.0, reordering_ms: 0.0 };
const CONTROLLERS: [&str; 3] = ["reno", "cubic", "bbr"];
const AQMS: [&str; 5] = ["codel", "fq-codel", "pie", "red", "threshold"];

/// Length of the synthetic trace, ms.
const TRACE_MS: u64 = 20_000;

/// All cells; `trace` replaces the synthetic recorded link.
pub fn all(trace: Option<Vec<u8>>) -> Vec<Cell> {
    let trace: Arc<[u8]> = trace.unwrap_or_else(recorded_like).into();
    let sets =
        [beside(), several(), steps(), recorded(&trace), aqms(), lossy(), slow_start(), paths()];
    sets.into_iter().flatten().collect()
}

/// Two controllers, one flow of each.
fn beside() -> Vec<Cell> {
    let pairs = [("cubic", "bbr"), ("reno", "cubic")];
    let cell = |pair: (&str, &str), buffer_bdp: f64| {
        let name = format!("beside-{}-{}-{buffer_bdp}bdp", pair.0, pair.1);
        let factors = Factors { buffer_bdp, ..PLAIN };
        Cell::bottleneck(&name, factors, &[(pair.0, 1), (pair.1, 1)])
    };
    let buffers = [0.5, 2.0, 8.0, 32.0];
    pairs.iter().flat_map(|pair| buffers.map(|buffer| cell(*pair, buffer))).collect()
}

/// Three to five flows of one controller.
fn several() -> Vec<Cell> {
    let cell = |cc: &str, flows: usize, mbit: f64, rtt_ms: f64, buffer_bdp: f64| {
        let name = format!("{flows}-{cc}-{mbit}mbit-{rtt_ms}ms-{buffer_bdp}bdp");
        let factors = Factors { mbit, rtt_ms, buffer_bdp, ..PLAIN };
        Cell::bottleneck(&name, factors, &[(cc, flows)])
    };
    vec![
        cell("reno", 5, 60.0, 33.0, 6.0),
        cell("reno", 5, 7.0, 33.0, 15.0),
        cell("reno", 3, 7.0, 220.0, 6.0),
        cell("cubic", 4, 50.0, 60.0, 2.0),
        cell("bbr", 5, 40.0, 40.0, 1.0),
    ]
}

fn steps() -> Vec<Cell> {
    let steps = [("0 s", 20), ("4 s", 5), ("7 s", 20)];
    let steps = steps.map(|(at, mbit)| format!("{{ at = \"{at}\", rate = \"{mbit} Mbit/s\" }}"));
    let rate = format!("[{}]", steps.join(", "));
    let cell = |cc: &&str| {
        let link = link("bottleneck", &rate, PLAIN);
        Cell::over(&format!("steps-{cc}"), PLAIN, &link, &[(*cc, 1)])
    };
    CONTROLLERS.iter().map(cell).collect()
}

fn recorded(trace: &Arc<[u8]>) -> Vec<Cell> {
    let file = "recorded.trace";
    let cell = |cc: &&str| {
        let link = link("bottleneck", &format!("{{ trace = \"{file}\" }}"), PLAIN);
        let mut cell = Cell::over(&format!("recorded-{cc}"), PLAIN, &link, &[(*cc, 1)]);
        cell.trace = Some((file.to_string(), trace.clone()));
        cell
    };
    CONTROLLERS.iter().map(cell).collect()
}

fn aqms() -> Vec<Cell> {
    let cell = |aqm: &&str| {
        let settings = match *aqm {
            "red" => "aqm = \"red\"\n".to_string(),
            "threshold" => {
                "aqm = { name = \"threshold\", delay = \"5 ms\" }\necn = true\n".to_string()
            }
            other => format!("aqm = \"{other}\"\n"),
        };
        let factors = Factors { buffer_bdp: 4.0, ..PLAIN };
        let mut link = link("bottleneck", "\"20 Mbit/s\"", factors);
        link += &settings;
        let mut cell = Cell::over(&format!("aqm-{aqm}"), factors, &link, &[("cubic", 2)]);
        if *aqm == "threshold" {
            cell.body = format!("[transport]\necn = true\n{}", cell.body);
        }
        cell
    };
    AQMS.iter().map(cell).collect()
}

fn lossy() -> Vec<Cell> {
    let cell = |cc: &str, loss_percent: f64| {
        let factors = Factors { loss_percent, ..PLAIN };
        Cell::bottleneck(&format!("loss{loss_percent}-{cc}"), factors, &[(cc, 1)])
    };
    CONTROLLERS.iter().flat_map(|cc| [1.0, 2.0].map(|loss| cell(cc, loss))).collect()
}

/// A long path with a deep buffer: the queue is that of slow start.
fn slow_start() -> Vec<Cell> {
    let factors = Factors { mbit: 60.0, rtt_ms: 220.0, buffer_bdp: 15.0, ..PLAIN };
    vec![Cell::bottleneck("slow-start-cubic", factors, &[("cubic", 1)])]
}

/// Two paths, over the kernel's MPTCP.
fn paths() -> Vec<Cell> {
    let near = |mbit, rtt_ms, loss_percent| Factors {
        mbit,
        rtt_ms,
        buffer_bdp: 1.0,
        loss_percent,
        ..PLAIN
    };
    let pairs = [
        ("similar", near(20.0, 40.0, 0.0), near(20.0, 60.0, 0.0)),
        ("unlike", near(40.0, 40.0, 0.0), near(5.0, 120.0, 0.0)),
        ("lossy", near(20.0, 40.0, 0.5), near(20.0, 60.0, 0.5)),
    ];
    let work = [("bulk", "\"bulk\""), ("5MB", "{ file = \"5 MB\" }")];
    let mut cells = Vec::new();
    for (kind, first, second) in pairs {
        for cc in ["cubic", "reno"] {
            for (what, workload) in work {
                cells.push(over_two(
                    &format!("mptcp-{kind}-{cc}-{what}"),
                    first,
                    second,
                    cc,
                    workload,
                ));
            }
        }
    }
    cells
}

fn over_two(name: &str, first: Factors, second: Factors, cc: &str, workload: &str) -> Cell {
    let mut body = String::new();
    for (path_name, factors) in [("a", first), ("b", second)] {
        body += &link(path_name, &format!("\"{} Mbit/s\"", factors.mbit), factors);
        body += &path(path_name, path_name, factors.rtt_ms);
    }
    body += &format!(
        "[[flow]]\nname = \"flow\"\ncc = \"{cc}\"\npaths = [\"a\", \"b\"]\n\
         scheduler = \"blest\"\nworkload = {workload}\n"
    );
    let mut cell = Cell::bottleneck(name, first, &[(cc, 1)]);
    cell.body = body;
    if workload != "\"bulk\"" {
        // The start is most of a file transfer.
        cell.warmup_ms = 0;
    }
    cell
}

/// A synthetic cellular link in Mahimahi's format (a line for each packet opportunity, in ms): the
/// rate wanders between 2 and 40 Mbit/s, by up to a quarter each 100 ms, and packets leave in
/// bursts a few ms apart.
fn recorded_like() -> Vec<u8> {
    let mut text = String::new();
    // Knuth's MMIX generator: random enough for a synthetic link, and reproducible.
    let mut state = 1_u64;
    let mut draw = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / (1_u64 << 31) as f64
    };
    let (mut mbit, mut owed, mut clump) = (12.0_f64, 0.0, 0);
    for at_ms in 0..TRACE_MS {
        if at_ms % 100 == 0 {
            mbit = (mbit * (0.75 + 0.5 * draw() + 0.03)).clamp(2.0, 40.0);
        }
        owed += mbit * 1e6 / 8.0 / 1e3 / 1500.0;
        if at_ms >= clump || at_ms + 1 == TRACE_MS {
            while owed >= 1.0 {
                owed -= 1.0;
                let _ = writeln!(text, "{at_ms}");
            }
            clump = at_ms + 1 + (4.0 * draw()) as u64;
        }
    }
    text.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_is_a_scenario() {
        let cells = all(None);
        let names: BTreeSet<&str> = cells.iter().map(|cell| cell.name.as_str()).collect();
        assert_eq!(names.len(), cells.len());
        for cell in &cells {
            for repeat in [0, 7] {
                let scenario = cell.scenario(repeat);
                let scenario = scenario.unwrap_or_else(|errors| panic!("{}: {errors}", cell.name));
                assert_eq!(scenario.flows.len(), cell.flows, "{}", cell.name);
            }
        }
        let with = |part: &str| cells.iter().filter(|cell| cell.name.contains(part)).count();
        assert_eq!((with("mptcp-"), with("aqm-"), with("beside-")), (12, AQMS.len(), 8));
    }

    /// The mean rate lies within the bounds, and no 100 ms exceed the maximum.
    #[test]
    fn the_link_made_up_is_a_recording() {
        let bytes = recorded_like();
        let text = std::str::from_utf8(&bytes).unwrap();
        let times: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
        assert!(times.is_sorted());
        let mbit = times.len() as f64 * 1500.0 * 8.0 / (TRACE_MS as f64 * 1e3);
        assert!((2.0..40.0).contains(&mbit), "{mbit} Mbit/s");
        let most = (0..TRACE_MS / 100)
            .map(|tenth| times.iter().filter(|at| **at / 100 == tenth).count())
            .max();
        assert!(most.is_some_and(|packets| packets as f64 * 0.12 <= 40.0 * 1.1), "{most:?}");
    }
}
