//! Circuit breakers, bleached ECN and tunnels: what their rules allow passes, and what
//! breaks them is found.

use crate::common::{COLUMNS, MS, finds};
use knee_verify::Rule;
use std::fmt::Write;

/// What becomes of a packet that enters at a time.
#[derive(Clone, Copy)]
enum Fate {
    /// Leaves a millisecond later, with this ECN field.
    Leaves(&'static str),
    /// Dropped at once.
    Dropped(&'static str),
}
use Fate::{Dropped, Leaves};

/// Packets over an unlimited link of a millisecond; they enter with this ECN field.
fn log(link: &str, ecn: &str, packets: &[(u64, Fate)]) -> String {
    let mut text = format!(
        "# knee-packet-log/3\n# link,0,only,rate_bps=,delay_ns={MS},{link}\n\
         # path,0,forward=0,reverse=0\n# flow,0,path=0,mss=1448\n{COLUMNS}\n"
    );
    let mut rows: Vec<(u64, String)> = Vec::new();
    for (id, (at, fate)) in packets.iter().enumerate() {
        rows.push((*at, format!("send,,0,data,{id},{id},0,0,0,,10,,{ecn},new")));
        let row = |event: &str, ecn: &str, detail: &str| {
            format!("{event},0,0,data,{id},{id},1500,,,,,,{ecn},{detail}")
        };
        rows.push((*at, row("enter", ecn, "")));
        match fate {
            Leaves(ecn) => {
                rows.push((at + MS, row("leave", ecn, "")));
                rows.push((at + MS, format!("receive,,0,data,{id},{id},,,,,,,,")));
            }
            Dropped(why) => rows.push((*at, row("drop", ecn, why))),
        }
    }
    rows.sort_by_key(|(at, _)| *at);
    for (at, row) in rows {
        writeln!(text, "{at},{row}").expect("a String takes everything");
    }
    text
}

/// Two intervals of 100 ms with more than a tenth lost trip it.
const BREAKER: &str = "loss=random,breaker=100000000:0.1:2";

/// A packet every 10 ms, the last of each interval at its end; every fifth is lost, up to
/// a number from which the breaker cuts off all.
fn tripping(after: u64, packets: u64) -> Vec<(u64, Fate)> {
    let fate = |n| match n {
        _ if n > after => Dropped("breaker"),
        _ if n % 5 == 0 => Dropped("loss"),
        _ => Leaves(""),
    };
    (1..=packets).map(|n| (10 * n * MS, fate(n))).collect()
}

#[test]
fn it_trips_after_its_intervals() {
    finds(&log(BREAKER, "", &tripping(20, 40)), &[]);
}

#[test]
fn it_may_not_trip_early() {
    finds(&log(BREAKER, "", &tripping(19, 20)), &[Rule::Drop]);
}

#[test]
fn it_may_not_trip_late() {
    // Of three packets that it should have cut off, two get in and one is lost.
    let fates = [&tripping(20, 20)[..], &[(215 * MS, Leaves("")), (220 * MS, Dropped("loss"))]];
    finds(&log(BREAKER, "", &fates.concat()), &[Rule::Drop, Rule::Drop]);
}

#[test]
fn it_trips_by_more_than_its_loss_alone() {
    let link = BREAKER.replace("0.1", "0.2");
    finds(&log(&link, "", &tripping(100, 40)), &[]);
    finds(&log(&link, "", &tripping(39, 40)), &[Rule::Drop]);
}

/// Reset after 200 ms, at 400 ms: the 40th packet enters at that moment and is cut off.
#[test]
fn it_is_reset_after_its_time() {
    let mut packets = tripping(20, 40);
    packets.extend([(405 * MS, Leaves("")), (410 * MS, Leaves(""))]);
    let link = format!("{BREAKER}:200000000");
    finds(&log(&link, "", &packets), &[]);
    packets.push((415 * MS, Dropped("breaker")));
    finds(&log(&link, "", &packets), &[Rule::Drop]);
}

#[test]
fn a_link_without_a_breaker_drops_by_none() {
    finds(&log("loss=random", "", &[(MS, Dropped("breaker"))]), &[Rule::Drop]);
}

#[test]
fn a_bleaching_link_clears_every_codepoint() {
    let at = |ecn| [(MS, Leaves(ecn))];
    for entered in ["", "ect", "ect1", "ce"] {
        finds(&log("ecn_bleached=1", entered, &at("")), &[]);
        finds(&log("ecn_bleached=1", entered, &at("ect")), &[Rule::Mark]);
        finds(&log("ecn_bleached=1", entered, &at("ce")), &[Rule::Mark]);
    }
}

#[test]
fn any_other_keeps_what_it_is_given() {
    finds(&log("ecn_bleached=0", "ect", &[(MS, Leaves("ect"))]), &[]);
    finds(&log("ecn_bleached=0", "ect", &[(MS, Leaves(""))]), &[Rule::Mark]);
    finds(&log("ecn_bleached=0", "", &[(MS, Leaves("ect"))]), &[Rule::Mark]);
}
