//! A link that is asked to pause, packet by packet: what is in transmission goes on, and the next
//! packet begins when the end of the pause has arrived.

use crate::common::{Named, bits, constant, link};
use knee_link::{Aqm, Buffer, Config, Delay, Link, Pause};
use knee_units::Time;

const KILOBYTE: Named = Named { number: 0, size: 1000, flow: 0, ecn_capable: false, marked: false };

fn us(time: u64) -> Time {
    Time::from_micros(time)
}

/// A packet takes 10 us, and 100 us to the far end.
fn config(buffer: Buffer) -> Config {
    Config {
        rate: bits(800_000_000),
        delay: Delay::steady(constant(us(100))),
        buffer,
        aqm: Aqm::DropTail,
        ..Config::pure_delay(Time::ZERO)
    }
}

/// When each packet arrives at the far end.
fn arrivals(link: &mut Link<Named>) -> Vec<u64> {
    let mut arrivals = Vec::new();
    while link.next_time() < Time::MAX {
        let now = link.next_time();
        if link.poll(now).is_some() {
            arrivals.push(now.as_micros());
        }
    }
    arrivals
}

#[test]
fn a_pause_reaches_the_link_after_its_delay() {
    let mut link = link(Config { pausable: true, ..config(Buffer::Unlimited) });
    for _ in 0..20 {
        assert!(link.send(Time::ZERO, KILOBYTE).is_ok());
    }
    // Asked at 15 us, it pauses after 115 us: eleven packets have left until 110 us, the twelfth is
    // in transmission until 120 us. Asked at 200 us, it goes on at 300 us.
    while link.next_time() <= us(15) {
        assert!(link.poll(link.next_time()).is_none());
    }
    link.pause(us(15), true);
    let mut seen = Vec::new();
    while link.next_time() <= us(200) {
        let now = link.next_time();
        seen.extend(link.poll(now).map(|_| now.as_micros()));
    }
    link.pause(us(200), false);
    seen.extend(arrivals(&mut link));
    let before = (1..=12).map(|packet| packet * 10 + 100);
    let after = (1..=8).map(|packet| 300 + packet * 10 + 100);
    assert_eq!(seen, before.chain(after).collect::<Vec<u64>>());
}

/// It stays paused until it is told otherwise, and a packet that could begin just when the pause
/// arrives still does.
#[test]
fn an_open_pause_holds_everything() {
    let mut link = link(Config { pausable: true, ..config(Buffer::Unlimited) });
    for _ in 0..20 {
        assert!(link.send(Time::ZERO, KILOBYTE).is_ok());
    }
    link.pause(Time::ZERO, true);
    // Ten have left at 100 us, and the eleventh begins.
    assert_eq!(arrivals(&mut link).len(), 11);
    assert_eq!(link.queue(us(5000)).packets, 9);
    link.pause(us(5000), false);
    assert_eq!(arrivals(&mut link), (1..=9).map(|n| 5100 + n * 10 + 100).collect::<Vec<u64>>());
}

/// At four packets it asks for a pause, at two for its end; the one in transmission does not count.
#[test]
fn a_link_asks_by_the_length_of_its_queue() {
    let pause = Some(Pause { at: 4, until: 2 });
    let mut link = link(Config { pause, ..config(Buffer::Packets(5)) });
    let mut asked = Vec::new();
    for number in 0..7 {
        let accepted = link.send(us(1), KILOBYTE).is_ok();
        // One in transmission and five that wait fit.
        assert_eq!(accepted, number < 6);
        while let Some((time, pause)) = link.take_request() {
            asked.push((time.as_micros(), pause, number));
        }
    }
    assert_eq!(asked, [(1, true, 4)]);
    asked.clear();
    while link.next_time() < Time::MAX {
        link.poll(link.next_time());
        while let Some((time, pause)) = link.take_request() {
            asked.push((time.as_micros(), pause, 0));
        }
    }
    // Packets begin at 1, 11, 21 … us: with the fourth, two wait.
    assert_eq!(asked, [(31, false, 0)]);
}
