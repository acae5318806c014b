//! Helpers shared by the tests on logs.

// Each test binary uses only a part of this.
use knee_verify::{Rule, check};

/// Names of the columns, in order.
pub const COLUMNS: &str = "time_ns,event,link,flow,kind,id,number,bytes,in_flight,window,\
                           pacing_bps,burst,offset,ecn,detail";

/// A millisecond.
pub const MS: u64 = 1_000_000;

/// Checks that the log violates these rules, in this order, and no others.
#[track_caller]
pub fn finds(log: &str, expected: &[Rule]) {
    let report = check(log.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{log}"));
    let rules: Vec<Rule> = report.violations.iter().map(|violation| violation.rule).collect();
    assert_eq!(rules, expected, "{:#?}\n{log}", report.violations);
}
