//! A file that is not a packet log is refused, and the error names the line.

use knee_verify::check;

const SOUND: &str = include_str!("../logs/sound.csv");

#[track_caller]
fn refused(log: &str, expected: &str) {
    let error = check(log.as_bytes()).expect_err("the log is malformed");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn another_file() {
    refused("", "line 0: the log ends before its column names");
    refused("time,rate\n", "line 1: expected `# knee-packet-log/3`, found `time,rate`");
    refused(
        "# knee-packet-log/1\n",
        "line 1: expected `# knee-packet-log/3`, found `# knee-packet-log/1`",
    );
    let long = "x".repeat(1_000_000);
    let short = "x".repeat(60);
    refused(&long, &format!("line 1: expected `# knee-packet-log/3`, found `{short}…`"));
}

/// A file without an end of line is not read to the end.
#[test]
fn a_line_without_an_end() {
    let error = check(std::io::BufReader::new(std::io::repeat(0))).expect_err("no log");
    assert_eq!(error.to_string(), "line 1: longer than 67108864 bytes");
}

#[test]
fn a_head_that_does_not_fit_together() {
    refused(&SOUND.replace("forward=0;1", "forward=0;3"), "line 7: link 3 is not in the head");
    refused(&SOUND.replace("path=0,", "path=1,"), "line 7: path 1 is not in the head");
    refused(&SOUND.replace("link,1", "link,2"), "line 3: expected link 1, found 2");
    refused(&SOUND.replacen("delay_ns=1000000", "", 1), "line 2: `delay_ns=` is missing");
    refused(
        &SOUND.replacen("rate_bps=100000000", "rate_bps=fast", 1),
        "line 2: rate_bps is `fast`, not a number",
    );
    refused(
        &SOUND.replace("# flow,0", "# flows,0"),
        "line 6: expected link, path, flow or connection, found `flows`",
    );
}

#[test]
fn a_link_that_cannot_be() {
    let link = |more: &str, expected: &str| {
        let log = SOUND.replacen("delay_ns=1000000", &format!("delay_ns=1000000,{more}"), 1);
        refused(&log, &format!("line 2: {expected}"));
    };
    link("reorder=yes", "reorder is `yes`, not 0 or 1");
    link("buffer_bytes=1,buffer_packets=1", "a buffer has bytes or packets, not both");
    link("trace_ms=5;2", "the times of trace_ms do not ascend to a period");
    link("trace_ms=0", "the times of trace_ms do not ascend to a period");
    link("aqm=best", "aqm is `best`, which nobody knows");
    link("aqm=pie,target_ns=1,update_ns=0,burst_ns=0", "update_ns is zero");
    link("aqm=codel,target_ns=1", "`interval_ns=` is missing");
    link("loss=some", "loss is `some`, which nobody knows");
    link("loss=every:0", "loss is zero");
    link("policer=7", "policer has `7`, not <number>:<number>");
    link("down_ns=5-9;7-12", "the spans of down_ns are not in order");
    let steps = SOUND.replacen("rate_bps=100000000", "rate_bps=0:5;9:6;9:7", 1);
    refused(&steps, "line 2: the times of rate_bps do not ascend from zero");
    let steps = SOUND.replacen("rate_bps=100000000", "rate_bps=1:5", 1);
    refused(&steps, "line 2: the times of rate_bps do not ascend from zero");
}

#[test]
fn a_row_that_cannot_be_read() {
    let row = "22052800,leave,2,0,ack,1,0,60,,,,,,,";
    let instead = |text: &str| SOUND.replacen(row, text, 1);
    refused(&instead("22052800,leave"), "line 16: 2 columns instead of 15");
    refused(&instead(&format!("{row},")), "line 16: more than 15 columns");
    let other = |from: &str, to: &str| instead(&row.replacen(from, to, 1));
    refused(&other("22052800", "soon"), "line 16: time_ns is `soon`, not a number");
    refused(&other("leave", "vanish"), "line 16: unknown event `vanish`");
    refused(&other("leave,2", "leave,3"), "line 16: link 3 is not in the head");
    refused(&other("2,0,ack", "2,1,ack"), "line 16: flow 1 is not in the head");
    refused(&other("ack", "syn"), "line 16: kind is `syn`, not data or ack");
    refused(&other("ack,1", "ack,"), "line 16: id is ``, not a number");
    let block = SOUND.replacen("2-3", "2:3", 1);
    refused(&block, "line 42: detail has `2:3`, not <number>-<number>");
    let reason = SOUND.replacen("loss\n23412800", "luck\n23412800", 1);
    refused(&reason, "line 30: detail of drop is `luck`, which nobody knows");
    let ecn = SOUND.replacen(",,new", ",red,new", 1);
    refused(&ecn, "line 18: ecn is `red`, not ect or ce");
}

#[test]
fn a_flow_that_begins_among_the_rows_wrongly() {
    let with = |line: &str| {
        let mut lines: Vec<&str> = SOUND.lines().collect();
        lines.insert(7, line);
        lines.join("\n")
    };
    refused(
        &with("# flow,0,path=0,mss=1448"),
        "line 8: flow 0 is not numbered above all before it",
    );
    refused(&with("# flow,1,path=1,mss=1448"), "line 8: path 1 is not in the head");
    refused(&with("# flow,1,path=0,mss=0"), "line 8: mss is zero");
    refused(
        &with("# link,3,late,rate_bps=,delay_ns=0"),
        "line 8: among the rows only flows and connections begin, \
         found `link,3,late,rate_bps=,delay_ns=0`",
    );
}
