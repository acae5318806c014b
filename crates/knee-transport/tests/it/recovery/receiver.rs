//! Scripts of a receiver.
//!
//! ```text
//! 0   < 0             segment 0 arrives
//! 40  > ack 1         its ACK was held back for 40 ms
//! 50  < 2             out of order
//!     > ack 1 sack 2:3
//!     < 2             again
//!     > ack 1 sack 2:3 dsack 2
//! ```
//!
//! Segments carry the time as timestamp (`ts 10` overrides it); `push`, `ce` and
//! `cwr` mark them. `ecr`, on an ACK, is checked where it is written. There are no
//! quick ACKs, unless `given quick 2` grants two; the receive window cannot grow.

use super::notation::{Line, SEGMENT, in_ms, lines, number, range, segments, time};
use knee_transport::{
    Ack, AckDetails, AckRequest, Config, ReceiveWindow, Receiver, Segment, SegmentKind,
};
use knee_units::{Ecn, Time};
use std::collections::VecDeque;

/// Runs a script, derived from `source`.
pub fn receiver_script(source: &str, text: &str) {
    let receive_window = ReceiveWindow::Fixed(65_535);
    let mut config = Config { quick_acks: 0, ecn: true, receive_window, ..Config::default() };
    let mut run: Option<Run> = None;
    for line in lines(text) {
        if line.kind == "given" {
            assert_eq!(line.words[0], "quick", "{source}");
            config.quick_acks = number(line.words[1]);
            continue;
        }
        let run = run.get_or_insert_with(|| Run::new(&config));
        run.place = format!("line {} of\n{source}\n{text}", line.number);
        run.step(&line);
    }
    let run = run.expect("a script has lines");
    assert!(run.left.is_empty(), "{:?} left too, {}", run.left, run.place);
}

struct Run {
    place: String,
    now: Time,
    receiver: Receiver,
    left: VecDeque<(Time, Ack, AckDetails)>,
}

impl Run {
    fn new(config: &Config) -> Run {
        let receiver = Receiver::new(config);
        Run { place: String::new(), now: time("0"), receiver, left: VecDeque::new() }
    }

    fn step(&mut self, line: &Line) {
        if let Some(at) = line.at {
            self.advance(at);
        }
        match line.kind {
            "<" => {
                assert!(self.left.is_empty(), "{:?} left too, {}", self.left, self.place);
                self.receive(&line.words);
            }
            ">" => self.expect(&line.words),
            kind => panic!("`{kind}` is no kind of line, {}", self.place),
        }
    }

    fn advance(&mut self, to: Time) {
        let due = self.receiver.timer();
        if due <= to {
            self.acknowledge(due);
        }
        self.now = to;
    }

    fn acknowledge(&mut self, at: Time) {
        let mut details = AckDetails::default();
        let (ack, has_details) = self.receiver.make_ack(&mut details);
        self.left.push_back((at, ack, if has_details { details } else { AckDetails::default() }));
    }

    fn receive(&mut self, words: &[&str]) {
        let (numbers, flags) = segments(words);
        let stamp = flags.iter().position(|flag| *flag == "ts");
        let stamp = stamp.map_or(self.now, |at| time(flags[at + 1]));
        for number in numbers {
            let segment = Segment {
                kind: SegmentKind::Data,
                number,
                len: SEGMENT as u16,
                timestamp: stamp.as_micros() as u32,
                retransmission: false,
                window_reduced: flags.contains(&"cwr"),
                push: flags.contains(&"push"),
                ack_request: AckRequest::NONE,
            };
            let ecn = if flags.contains(&"ce") { Ecn::Ce } else { Ecn::Ect0 };
            if self.receiver.on_segment(self.now, &segment, ecn).ack_now {
                self.acknowledge(self.now);
            }
        }
    }

    fn expect(&mut self, words: &[&str]) {
        let Some((at, ack, details)) = self.left.pop_front() else {
            panic!("no ACK left, {}", self.place);
        };
        assert_eq!(in_ms(at), in_ms(self.now), "time of the ACK, {}", self.place);
        assert_eq!(ack.number, number(words[1]), "cumulative ACK, {}", self.place);
        assert_eq!(ack.congestion_echo, words.contains(&"ece"), "ECE, {}", self.place);
        let mut blocks = Vec::new();
        let mut duplicate = None;
        let mut words = words[2..].iter();
        while let Some(word) = words.next() {
            match *word {
                "sack" | "ece" => {}
                "dsack" => duplicate = words.next().map(|word| number(word)),
                "ecr" => {
                    let echo = time(words.next().expect("ecr has a time")).as_micros() as u32;
                    assert_eq!(ack.timestamp_echo, echo, "timestamp echoed, {}", self.place);
                }
                block => blocks.push(range(block)),
            }
        }
        assert_eq!(details.blocks(), blocks, "SACK blocks, {}", self.place);
        assert_eq!(details.duplicate, duplicate, "D-SACK, {}", self.place);
    }
}
