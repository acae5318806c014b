//! The response functions of Reno and CUBIC: the average window with periodic
//! loss, as tabulated in RFC 9438 (section 5.2, tables 1 and 2).
//!
//! The tables assume a saw-tooth with an immediate response to every loss and
//! no rounding. In five cells no real sender matches, and the behaviour of
//! Linux 6.18 over an emulator replaces the table:
//! - One loss in 100 packets: feedback takes one round trip and recovery,
//!   without growth, another, which is two of nine in a tooth; CUBIC at 10 ms
//!   also updates its Reno estimate only every 31 ms.
//! - CUBIC at 100 ms, one loss in 1000 or 10,000: around its plateau the window
//!   moves by less than the segment to which it is rounded, so every average
//!   from 170 to 230 segments (at 10,000) is a steady state.

use crate::common::{Dumbbell, MSS, in_parallel};

/// One cell: one loss in `every` packets, average window in segments.
struct Cell {
    controller: &'static str,
    rtt_ms: f64,
    every: u64,
    /// Value in the RFC.
    table: f64,
    /// Value with Linux 6.18 if the table does not describe real senders (1
    /// Gbit/s, an ACK per segment, goodput times round-trip time).
    linux: Option<f64>,
}

const fn cell(controller: &'static str, rtt_ms: f64, every: u64, table: f64) -> Cell {
    Cell { controller, rtt_ms, every, table, linux: None }
}

impl Cell {
    const fn but_linux(self, window: f64) -> Cell {
        Cell { linux: Some(window), ..self }
    }
}

const CELLS: [Cell; 15] = [
    cell("reno", 100.0, 100, 12.0).but_linux(10.6),
    cell("reno", 100.0, 1_000, 38.0),
    cell("reno", 100.0, 10_000, 120.0),
    cell("reno", 100.0, 100_000, 379.0),
    cell("reno", 100.0, 1_000_000, 1_200.0),
    cell("cubic", 100.0, 100, 12.0).but_linux(11.3),
    cell("cubic", 100.0, 1_000, 38.0).but_linux(47.4),
    cell("cubic", 100.0, 10_000, 187.0).but_linux(206.8),
    cell("cubic", 100.0, 100_000, 1_054.0),
    cell("cubic", 100.0, 1_000_000, 5_926.0),
    cell("cubic", 10.0, 100, 12.0).but_linux(8.8),
    cell("cubic", 10.0, 1_000, 38.0),
    cell("cubic", 10.0, 10_000, 120.0),
    cell("cubic", 10.0, 100_000, 379.0),
    cell("cubic", 10.0, 1_000_000, 1_200.0),
];

const TOLERANCE: f64 = 0.10;

/// Packets per loss from which on a cell takes long.
const MANY: u64 = 1_000_000;

/// Saw-teeth averaged, and excluded before them, since start-up ends far above.
const TEETH: f64 = 10.0;
const TEETH_LEFT_OUT: f64 = 4.0;

/// Returns the average window in segments: the data delivered in a round-trip
/// time. The link is so fast that it does not add to the round-trip time.
fn average_window(cell: &Cell) -> f64 {
    let rtt = cell.rtt_ms / 1e3;
    let tooth = cell.every as f64 / cell.table * rtt;
    let run = Dumbbell::new(100_000.0, cell.rtt_ms)
        .buffer("unlimited")
        .link(&format!("loss = {{ every = {} }}", cell.every))
        .transport("ack_every = 1")
        .flows(cell.controller, 1)
        .lasting((TEETH + TEETH_LEFT_OUT) * tooth, TEETH_LEFT_OUT * tooth)
        .run();
    run.goodput() * 1e6 * rtt / 8.0 / MSS
}

#[test]
fn reno_and_cubic_follow_their_response_functions() {
    follow(CELLS.into_iter().filter(|cell| cell.every < MANY));
}

#[test]
#[ignore = "takes long: .ci/night random"]
fn they_do_so_at_one_loss_in_a_million_packets() {
    follow(CELLS.into_iter().filter(|cell| cell.every >= MANY));
}

fn follow(cells: impl Iterator<Item = Cell>) {
    let cells: Vec<Cell> = cells.collect();
    let windows = in_parallel(&cells, average_window);
    let verdicts = cells.iter().zip(windows).map(|(cell, window)| judge(cell, window));
    let (hold, rows): (Vec<bool>, Vec<String>) = verdicts.unzip();
    assert!(hold.iter().all(|holds| *holds), "\n{}", rows.join("\n"));
}

fn judge(cell: &Cell, window: f64) -> (bool, String) {
    let Cell { controller, rtt_ms, every, table, linux } = cell;
    let percent = |expected: f64| 100.0 * (window / expected - 1.0);
    let mut row = format!(
        "{controller:5} {rtt_ms:3} ms, 1 in {every:<7}: {window:7.1} segments, table {table:6} \
         ({:+5.1} %)",
        percent(*table)
    );
    if let Some(linux) = linux {
        row += &format!(", Linux {linux:5} ({:+5.1} %)", percent(*linux));
    }
    let expected = linux.unwrap_or(*table);
    ((window / expected - 1.0).abs() <= TOLERANCE, row)
}
