//! RemyCC: its table files, and its behaviour with them.
use crate::pipe::MSS;
use knee_cc::remycc::{Action, Dimension, Memory, RuleTable, TableError};
use knee_cc::{Connection, Controller, Event, Sample, Selection, Value};
use knee_units::Time;

const TABLE: &str = "\
knee-rule-table 1
command = by hand
knee = 0
trained_on = nothing
seeds = none
# Half the window above an RTT ratio of 1.5, two segments more below.
rules
split rtt_ratio 1.5
  rule multiple 1 increment 2 intersend_ms 0.5
  split ack_ewma_ms 3
    rule multiple 0.5 increment 1 intersend_ms 2
    rule multiple 0.5 increment 3 intersend_ms 4
end 3
";

fn built(table: &str) -> Box<dyn Controller> {
    let selection = Selection::named("remycc").with("table", Value::Text(table.to_string()));
    knee_cc::build(&selection, crate::pipe::init(1)).unwrap()
}

/// One acknowledgement of `segments` segments with the given RTT.
fn ack(controller: &mut dyn Controller, now_ms: u64, segments: u64, rtt_ms: u64) -> f64 {
    let now = Time::from_millis(now_ms);
    let rtt = Time::from_millis(rtt_ms);
    let connection = Connection { now, mss: MSS as u32, mtu: 1500, ..Connection::default() };
    let sample = Sample {
        rtt: Some(rtt),
        newly_acked: segments * MSS,
        sent_at: now.saturating_sub(rtt),
        ..Sample::default()
    };
    controller.on_ack(&sample, &connection).window as f64 / MSS as f64
}

#[test]
fn a_table_reads_back_as_it_was_written() {
    let table = RuleTable::read(TABLE).unwrap();
    assert_eq!(RuleTable::read(&table.to_string()).unwrap(), table);
    assert_eq!(table.rules().count(), 3);
    let at = |rtt_ratio, ack_ewma_ms| {
        let memory = Memory { rtt_ratio, ack_ewma_ms, send_ewma_ms: 0.0 };
        table.action(table.find(&memory)).increment
    };
    // The upper part begins at the split value.
    assert_eq!([at(1.0, 9.0), at(1.499, 0.0)], [2.0, 2.0]);
    assert_eq!([at(1.5, 2.9), at(1.5, 3.0), at(7.0, 9.0)], [1.0, 3.0, 3.0]);
}

/// Splitting a rule changes nothing until one half is changed.
#[test]
fn a_split_decides_as_before() {
    let table = RuleTable::read(TABLE).unwrap();
    for rule in table.rules() {
        let split = table.split(rule, Dimension::SendEwma, 2.0);
        assert_eq!(split.rules().count(), 4);
        for number in 0..1000 {
            let part = |divisor: u32, scale: f64| f64::from(number / divisor % 10) * scale;
            let memory = Memory {
                rtt_ratio: part(1, 0.3),
                ack_ewma_ms: part(10, 0.7),
                send_ewma_ms: part(100, 0.5),
            };
            let both = [&table, &split].map(|table| table.action(table.find(&memory)));
            assert_eq!(both[0], both[1], "{memory:?}");
        }
        let other = Action { multiple: 0.25, increment: 7.0, intersend_ms: 9.0 };
        let changed = split.with_action(rule + 2, other).to_string();
        assert_eq!(RuleTable::read(&format!("{changed}\n")).err().map(|error| error.line), None);
        assert_eq!(changed.matches("increment 7 ").count(), 1);
    }
}

/// Each case with the line of the error and the advice.
#[test]
fn a_damaged_table_is_told_by_its_line() {
    let line = |number: usize| TABLE.lines().nth(number - 1).unwrap();
    let cases = [
        ("", 1, "not a rule table"),
        (&TABLE.replace("table 1\n", "table 2\n"), 1, "version"),
        (&TABLE.replace("seeds = none\n", ""), 6, "has no seeds"),
        (&TABLE.replace("rules\n", ""), 7, "neither provenance"),
        (&TABLE.replace("rtt_ratio", "rtt_ration"), 8, "not a dimension of the memory"),
        (&TABLE.replace("increment 2", "increment 2x"), 9, "increment cannot be 2x"),
        (&TABLE.replace("increment 2", "increment NaN"), 9, "increment cannot be NaN"),
        (&TABLE.replace("0.5 increment 1", "2.5 increment 1"), 11, "multiple cannot be 2.5"),
        (&TABLE.replace("intersend_ms 4", "intersend_ms 0"), 12, "intersend_ms cannot be 0"),
        (&TABLE.replace(&format!("{}\n", line(12)), ""), 12, "neither a split nor a rule"),
        (&TABLE.replace("end 3\n", ""), 13, "ends unexpectedly"),
        (&TABLE.replace("end 3", "end 4"), 13, "after 3 rules"),
        (&format!("{TABLE}rule\n"), 14, "follows the end"),
    ];
    for (text, line, problem) in cases {
        let error: TableError = RuleTable::read(text).unwrap_err();
        assert_eq!(error.line, line, "{error}");
        assert!(error.problem.contains(problem), "{error}");
        let selection = Selection::named("remycc").with("table", Value::Text(text.to_string()));
        let refused = knee_cc::check(&selection).unwrap_err();
        assert_eq!(refused.parameter.as_deref(), Some("table"));
        assert!(refused.problem.contains(&format!("line {line}")), "{refused}");
        assert!(knee_cc::build(&selection, crate::pipe::init(1)).is_err());
    }
}

/// No proper prefix of a table is a table.
#[test]
fn a_table_that_was_cut_off_is_refused() {
    for end in 0..TABLE.len() - 1 {
        assert!(RuleTable::read(&TABLE[..end]).is_err(), "{}", &TABLE[..end]);
    }
}

/// By hand: from 10, plus two per segment; then half plus one (ack_ewma below 3
/// ms) for each of two segments; then half plus three.
#[test]
fn the_window_follows_the_rules_segment_by_segment() {
    let mut remy = built(TABLE);
    assert_eq!(ack(&mut *remy, 100, 1, 100), 12.0);
    assert_eq!(ack(&mut *remy, 102, 2, 120), 16.0);
    // 0.5 * 16 + 1 = 9, 0.5 * 9 + 1 = 5.5.
    assert_eq!(ack(&mut *remy, 104, 2, 160), 5.5);
    // 1 s later the mean interval is above 3 ms: 0.5 * 5.5 + 3.
    assert_eq!(ack(&mut *remy, 1104, 1, 200), 5.75);
    // One segment per 4 ms.
    let rate = remy.decision().pacing_rate.unwrap().as_bits_per_second() as f64;
    assert!((rate / (MSS as f64 * 8.0 / 0.004) - 1.0).abs() < 1e-3, "{rate}");
}

/// A millisecond per segment, acknowledged one by one or in fives, is below the
/// split at 3 ms in both cases; five times that would not be.
#[test]
fn an_acknowledgement_of_several_counts_as_one_for_each() {
    let windows = [1u64, 5].map(|segments| {
        let mut remy = built(TABLE);
        ack(&mut *remy, 100, 1, 100);
        (1..=100 / segments).map(|n| ack(&mut *remy, 100 + n * segments, segments, 200)).last()
    });
    // The fixed point of w = 0.5 w + 1.
    assert!(windows.iter().all(|window| (window.unwrap() - 2.0).abs() < 0.01), "{windows:?}");
}

#[test]
fn a_timeout_begins_anew() {
    let mut remy = built(TABLE);
    for number in 1..20 {
        ack(&mut *remy, 100 + number, 1, 100);
    }
    let connection = Connection { mss: MSS as u32, mtu: 1500, ..Connection::default() };
    let before = remy.decision().window;
    assert_eq!(remy.on_event(Event::RecoveryStart, &connection).window, before);
    assert_eq!(remy.on_event(Event::Timeout, &connection).window, 2 * MSS);
}
