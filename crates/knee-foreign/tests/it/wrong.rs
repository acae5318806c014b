//! Files that cannot be used: what is said of them.

use super::tables::packed;
use knee_foreign::{Columns, Quantity, read_series};

fn refused(bytes: &[u8], quantity: Quantity, columns: &Columns<'_>) -> String {
    read_series(bytes, quantity, columns).expect_err("refused").to_string()
}

#[test]
fn each_mistake_is_named_with_its_line_and_its_remedy() {
    let (t, r) = (Some("t s"), Some("r Mbit/s"));
    let table = "t,r\n0,1\n1,2\n";
    type Case<'c> = (&'c [u8], Option<&'c str>, Option<&'c str>, Option<&'c str>, &'c str);
    let cases: &[Case<'_>] = &[
        (b"", t, r, None, "line 1: it is empty; write the name of a table with rows"),
        (
            b"\n\n# only this\n",
            t,
            r,
            None,
            "line 1: it is empty; write the name of a table with rows",
        ),
        (b"t,r\n", t, r, None, "line 1: no row follows the names of the columns; add rows"),
        (b"t,r\0\n", t, r, None, "line 1: it contains NUL bytes; write the name of a text file"),
        (b"\xff\xfet\0,\0", t, r, None, "line 1: it is text in UTF-16; save it as UTF-8"),
        (
            table.as_bytes(),
            None,
            r,
            None,
            "line 1: it is a table with the columns t, r; write time = \"column s\"",
        ),
        (
            table.as_bytes(),
            t,
            None,
            None,
            "line 1: it is a table with the columns t, r; write value = \"column Mbit/s\"",
        ),
        (
            table.as_bytes(),
            t,
            Some("speed Mbit/s"),
            None,
            "line 1: there is no column \"speed\"; write one of t, r, or a number from 1 to 2",
        ),
        (
            table.as_bytes(),
            t,
            Some("3 Mbit/s"),
            None,
            "line 1: there is no column \"3\"; write one of t, r, or a number from 1 to 2",
        ),
        (
            table.as_bytes(),
            t,
            Some("r Mbps"),
            None,
            "line 1: \"Mbps\" is no unit here; write one of bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, \
             MB/s, GB/s, KiB/s, MiB/s",
        ),
        (
            table.as_bytes(),
            t,
            Some("r"),
            None,
            "line 1: the unit of a rate is missing; write value = \"column Mbit/s\", with one of \
             bit/s, kbit/s, Mbit/s, Gbit/s, B/s, kB/s, MB/s, GB/s, KiB/s, MiB/s",
        ),
        (
            table.as_bytes(),
            Some("t"),
            r,
            None,
            "line 2: \"0\" is not a date with its time (damaged are 2 rows); write the unit after the \
             name of the column, such as time = \"t s\"",
        ),
        (
            b"t,r\n2026-03-12 10:00:00,1\n",
            t,
            r,
            None,
            "line 2: \"2026-03-12 10:00:00\" is not a number (damaged are 1 rows); leave out the unit \
             after the name of a column of dates",
        ),
        (
            b"t;r\n0;1,5\n1;2,5\n",
            t,
            r,
            None,
            "line 2: \"1,5\" is not a number (damaged are 2 rows); write decimal points",
        ),
        (
            b"t,r\n0,-\n1,\n",
            t,
            r,
            None,
            "line 2: none of 2 rows has a value; write the name of another column",
        ),
        (
            b"t,r\n0,1\n5,1\n4.5,2\n",
            t,
            r,
            None,
            "line 4: the time goes back to 4.5 s since the first row, from 5 s; sort the rows by time, \
             or choose those of one recording with rows = \"column = value\"",
        ),
        (
            b"t,r\n0,1\n1e12,1\n",
            t,
            r,
            None,
            "line 3: the time is more than a century after the first row; check the unit after the \
             name of the column",
        ),
        (
            b"t,r\n0,1e9\n1,1e9\n",
            t,
            r,
            None,
            "line 2: the value is impossible (damaged are 2 rows); check the unit after the name of \
             the column",
        ),
        (table.as_bytes(), t, r, Some("r = 7"), "line 1: no row has r = 7; that column has 1, 2"),
        (
            table.as_bytes(),
            t,
            r,
            Some("unit = 7"),
            "line 1: there is no column \"unit\"; write one of t, r, or a number from 1 to 2",
        ),
        (
            table.as_bytes(),
            t,
            r,
            Some("r"),
            "line 1: \"r\" chooses no rows; write rows = \"column = value\"",
        ),
        (
            b"{\"round_trips\":[]}",
            t,
            r,
            None,
            "line 1: irtt records round-trip times, not a rate; use it for a delay, with scale = 0.5",
        ),
        (
            b"{\"a\":1,\"b\":[2]}",
            None,
            None,
            None,
            "line 1: this is JSON with the keys a, b, which is not known; write the name of a table \
             with columns, or of a file of iperf3 -J, irtt or netem-trace",
        ),
        (
            b"{\"start\":{},\"intervals\":[{\"sum\":{\"bits_per_second\":1.2e7}}]}",
            None,
            None,
            None,
            "line 1: none of 1 intervals has a rate with its time; write the name of a whole file of \
             iperf3 -J",
        ),
    ];
    for (bytes, time, value, rows, expected) in cases {
        let columns = Columns { time: *time, value: *value, rows: *rows, ..Columns::default() };
        let text = String::from_utf8_lossy(bytes);
        assert_eq!(refused(bytes, Quantity::Rate, &columns), *expected, "{text:?}");
    }
}

#[test]
fn traces_of_another_quantity_or_kind_are_named() {
    let none = Columns::default();
    let bw = b"{\"StaticBwConfig\":{\"bw\":\"12Mbps\",\"duration\":\"1s\"}}";
    assert_eq!(
        refused(bw, Quantity::Delay, &none),
        "line 1: the trace is a rate, not a delay; use it for a rate"
    );
    let columns = Columns { time: Some("t s"), ..none };
    assert_eq!(
        refused(bw, Quantity::Rate, &columns),
        "line 1: a file in the format of netem-trace JSON has no columns; leave out time, value and \
         rows"
    );
    let drawn = b"{\"NormalizedBwConfig\":{\"mean\":\"12Mbps\"}}";
    let message = refused(drawn, Quantity::Rate, &none);
    assert!(message.contains("unknown variant `NormalizedBwConfig`"), "{message}");
    let endless = b"{\"RepeatedBwPatternConfig\":{\"count\":99999999999,\"pattern\":[\
                    {\"StaticBwConfig\":{\"bw\":\"12Mbps\",\"duration\":\"0s\"}}]}}";
    let message = refused(endless, Quantity::Rate, &none);
    assert!(message.contains("more than 1000000 pieces"), "{message}");
    let ping = b"PING 192.0.2.1 (192.0.2.1) 56(84) bytes of data.\n\
                 64 bytes from 192.0.2.1: icmp_seq=1 ttl=57 time=30.0 ms\n";
    assert_eq!(
        refused(ping, Quantity::Delay, &none),
        "line 2: the answers have no time; record them with ping -D"
    );
}

/// Half a file, a file in a file, and one line without an end.
#[test]
fn broken_files_are_refused_within_bounds() {
    let none = Columns::default();
    let half = b"{\"round_trips\":[{\"lost\":\"fal";
    let message = refused(half, Quantity::Delay, &none);
    assert!(message.starts_with("line 1: this is no whole JSON file (EOF while"), "{message}");
    let gzip = packed(b"t,r\n0,1\n");
    let message = refused(&packed(&gzip), Quantity::Rate, &none);
    assert_eq!(message, "line 1: it is a gzip file; decompress it with gzip -d");
    let message = refused(&gzip[..gzip.len() - 9], Quantity::Rate, &none);
    assert!(message.contains("it is no whole gzip file"), "{message}");
    let long = vec![b'x'; 5 << 20];
    let message = refused(&long, Quantity::Rate, &none);
    assert_eq!(
        message,
        "line 1: the line is longer than 4 MiB; write the name of a file of short lines"
    );
    let deep = "[".repeat(100_000);
    let message = refused(deep.as_bytes(), Quantity::Rate, &none);
    assert!(message.starts_with("line 1: this is no whole JSON file"), "{message}");
}
