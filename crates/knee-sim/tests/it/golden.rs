//! The controllers' behaviour, as reviewed tables: any change of behaviour
//! between link and controller shows as a changed line.
//!
//! After an intended change, `KNEE_UPDATE=1 cargo test -p knee-sim --test it golden::`
//! rewrites the tables; read the difference before committing it.

use crate::common::{Dumbbell, Run, in_parallel};
use std::fmt::Write as _;
use std::path::Path;

const CONTROLLERS: [&str; 4] = ["reno", "cubic", "bbr", "bbr-low-delay"];

/// Compares with the stored table, or stores it.
fn assert_golden(name: &str, table: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    if std::env::var_os("KNEE_UPDATE").is_some() {
        std::fs::write(&path, table).unwrap();
        return;
    }
    let known = std::fs::read_to_string(&path).unwrap();
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let (known, table) = (lines(&known), lines(table));
    let changed: Vec<String> = (0..known.len().max(table.len()))
        .filter(|n| known.get(*n) != table.get(*n))
        .map(|n| {
            let line = |lines: &[String]| lines.get(n).cloned().unwrap_or_default();
            format!("- {}\n+ {}", line(&known), line(&table))
        })
        .collect();
    assert!(changed.is_empty(), "{name} has changed:\n{}", changed.join("\n"));
}

#[test]
fn controller_by_loss_by_buffer() {
    let mut cases = Vec::new();
    for controller in CONTROLLERS {
        for loss in [0.0, 0.001, 0.01] {
            for buffer in ["0.25 BDP", "1 BDP", "4 BDP"] {
                cases.push((controller, loss, buffer));
            }
        }
    }
    let runs = in_parallel(&cases, |(controller, loss, buffer)| {
        let path = Dumbbell::new(20.0, 40.0).buffer(buffer).loss(*loss);
        path.flows(controller, 1).lasting(40.0, 10.0).run()
    });
    let mut table = "20 Mbit/s, 40 ms, one flow, 40 s of which 10 s are left out\n\
         controller      loss %    buffer  Mbit/s   RTT ms  retransmitted %\n"
        .to_string();
    for ((controller, loss, buffer), run) in cases.iter().zip(&runs) {
        let loss = 100.0 * loss;
        writeln!(table, "{controller:14} {loss:7.1} {buffer:>9} {}", figures(run)).unwrap();
    }
    assert_golden("single.txt", &table);
}

fn figures(run: &Run) -> String {
    let retransmitted = 100.0 * run.retransmitted();
    format!("{:7.2} {:8.1} {retransmitted:16.2}", run.goodput(), run.median_rtt())
}

#[test]
fn fairness_by_number_of_flows() {
    let mut cases = Vec::new();
    for controller in CONTROLLERS {
        for flows in [2, 5, 10, 20] {
            cases.push((controller, flows));
        }
    }
    let runs = in_parallel(&cases, |(controller, flows)| {
        let path = Dumbbell::new(50.0, 40.0).buffer("2 BDP");
        path.staggered(controller, *flows, 0.1).lasting(60.0, 20.0).run()
    });
    let mut table =
        "50 Mbit/s, 40 ms, 2 BDP, starts 0.1 s apart, 60 s of which 20 s are left out\n\
         controller      flows   Jain  Mbit/s   RTT ms  retransmitted %\n"
            .to_string();
    for ((controller, flows), run) in cases.iter().zip(&runs) {
        writeln!(table, "{controller:14} {flows:6} {:6.3} {}", run.jain(), figures(run)).unwrap();
    }
    assert_golden("fairness.txt", &table);
}
