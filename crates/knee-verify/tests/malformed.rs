//! What is not a packet log is refused with the line at fault.

use knee_verify::check;

const SOUND: &str = include_str!("logs/sound.csv");

#[track_caller]
fn refused(log: &str, expected: &str) {
    let error = check(log.as_bytes()).expect_err("the log is malformed");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn another_file() {
    refused("", "line 0: the log ends before its column names");
    refused("time,rate\n", "line 1: expected `# knee-packet-log/1`, found `time,rate`");
}

#[test]
fn a_head_that_does_not_fit_together() {
    refused(&SOUND.replace("forward=0;1", "forward=0;3"), "line 7: link 3 is not in the head");
    refused(&SOUND.replace("path=0,", "path=1,"), "line 7: path 1 is not in the head");
    refused(&SOUND.replace("link,1", "link,2"), "line 3: expected link 1, found 2");
    refused(&SOUND.replacen("fifo=1,", "", 1), "line 2: `fifo=` is missing");
    refused(
        &SOUND.replacen("rate_bps=100000000", "rate_bps=fast", 1),
        "line 2: rate_bps is `fast`, not a number",
    );
    refused(
        &SOUND.replacen("fifo=1", "delay_max_ns=5,fifo=1", 1),
        "line 2: delay_max_ns=5 is below delay_ns=1000000",
    );
}

#[test]
fn a_row_that_cannot_be_read() {
    let row = "22052800,leave,2,0,ack,1,0,60,";
    let instead = |text: &str| SOUND.replacen(row, text, 1);
    refused(&instead("22052800,leave"), "line 16: 2 columns instead of 9");
    refused(&instead(&format!("{row},")), "line 16: more than 9 columns");
    refused(&instead("soon,leave,2,0,ack,1,0,60,"), "line 16: time_ns is `soon`, not a number");
    refused(&instead("22052800,vanish,2,0,ack,1,0,60,"), "line 16: unknown event `vanish`");
    refused(&instead("22052800,leave,3,0,ack,1,0,60,"), "line 16: link 3 is not in the head");
    refused(&instead("22052800,leave,2,1,ack,1,0,60,"), "line 16: flow 1 is not in the head");
    refused(&instead("22052800,leave,2,0,syn,1,0,60,"), "line 16: kind is `syn`, not data or ack");
    refused(&instead("22052800,leave,2,0,ack,,0,60,"), "line 16: id is ``, not a number");
    let block = SOUND.replacen("2-3", "2:3", 1);
    refused(&block, "line 42: `2:3` is no SACK block");
}
