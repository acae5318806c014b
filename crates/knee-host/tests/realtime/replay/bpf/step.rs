//! A step of the recorded file: an acknowledgement or an event, with the state of the connection;
//! as a line of text, and as `struct step` of `bpf/bbr_replay.bpf.c`.

use super::WORDS;
use knee_cc::{Connection, Event, Loss, Recovery, Sample};
use knee_units::Time;
use std::fmt::Write;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Incident {
    Ack,
    Event(Event),
    /// Loss, for controllers that need each one; never in the file.
    Loss(Loss),
}

/// Events of the file, by their index; -1 is an acknowledgement.
pub const EVENTS: [Event; 5] = [
    Event::Established,
    Event::SentAfterIdle,
    Event::RecoveryStart,
    Event::Timeout,
    Event::RecoveryEnd,
];

pub const RECOVERIES: [Recovery; 5] = [
    Recovery::Open,
    Recovery::Disorder,
    Recovery::WindowReduced,
    Recovery::Recovery,
    Recovery::Loss,
];

/// Columns, in bytes and nanoseconds. `-` is an RTT that was not measured.
const HEADER: &str = "incident,now,next_departure,in_flight,delivered,lost,srtt,min_rtt,\
    recovery,app_limited,sample_delivered,sample_prior_delivered,interval,rtt,\
    sample_app_limited,ack_delayed,newly_acked,newly_lost,prior_in_flight";

#[derive(Clone, Debug)]
pub struct Step {
    pub incident: Incident,
    pub sample: Sample,
    pub connection: Connection,
}

pub fn write(steps: &[Step]) -> String {
    let mut text = format!("{HEADER}\n");
    for Step { incident, sample, connection } in steps {
        let code = match incident {
            Incident::Ack => -1,
            Incident::Event(event) => {
                EVENTS.iter().position(|known| known == event).unwrap() as i32
            }
            Incident::Loss(_) => panic!("the file is of a controller that needs no losses"),
        };
        let recovery = RECOVERIES.iter().position(|known| *known == connection.recovery).unwrap();
        let head = [
            connection.now.as_nanos(),
            connection.next_departure.as_nanos(),
            connection.in_flight,
            connection.delivered,
            connection.lost,
            connection.srtt.as_nanos(),
            connection.min_rtt.as_nanos(),
            recovery as u64,
            connection.app_limited.into(),
            sample.delivered,
            sample.prior_delivered,
            sample.interval.as_nanos(),
        ];
        let tail = [
            sample.app_limited.into(),
            sample.ack_delayed.into(),
            sample.newly_acked,
            sample.newly_lost,
            sample.prior_in_flight,
        ];
        let joined = |row: &[u64]| row.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        let rtt = sample.rtt.map_or("-".to_owned(), |rtt| rtt.as_nanos().to_string());
        writeln!(text, "{code},{},{rtt},{}", joined(&head), joined(&tail)).unwrap();
    }
    text
}

pub fn read(text: &str) -> Vec<Step> {
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some(HEADER));
    lines.map(read_line).collect()
}

fn read_line(line: &str) -> Step {
    let mut fields = line.split(',');
    let code: i32 = fields.next().unwrap().parse().unwrap();
    let fields: Vec<Option<u64>> = fields.map(|field| field.parse().ok()).collect();
    let number = |at: usize| fields[at].unwrap_or_else(|| panic!("column {at} of {line}"));
    let time = |at: usize| Time::from_nanos(number(at));
    let connection = Connection {
        now: time(0),
        next_departure: time(1),
        in_flight: number(2),
        delivered: number(3),
        lost: number(4),
        srtt: time(5),
        min_rtt: time(6),
        recovery: RECOVERIES[number(7) as usize],
        app_limited: number(8) == 1,
        mss: super::MSS as u32,
        mtu: 1500,
        ..Connection::default()
    };
    let sample = Sample {
        delivered: number(9),
        prior_delivered: number(10),
        interval: time(11),
        rtt: fields[12].map(Time::from_nanos),
        app_limited: number(13) == 1,
        ack_delayed: number(14) == 1,
        newly_acked: number(15),
        newly_acked_segments: number(15).div_ceil(super::MSS) as u32,
        newly_lost: number(16),
        prior_in_flight: number(17),
        ..Sample::default()
    };
    let incident = if code < 0 { Incident::Ack } else { Incident::Event(EVENTS[code as usize]) };
    Step { incident, sample, connection }
}

/// Packs two words of 32 bits into one of 64, in memory order.
fn pair(first: u64, second: u64) -> u64 {
    let word = |value: u64| (value as u32).to_ne_bytes();
    let (a, b) = (word(first), word(second));
    u64::from_ne_bytes([a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]])
}

impl Step {
    /// Returns the step's value of `enum step_kind`.
    fn kind(&self) -> u64 {
        match self.incident {
            Incident::Event(Event::Established) => 0,
            Incident::Ack => 1,
            Incident::Event(Event::SentAfterIdle) => 2,
            Incident::Event(Event::RecoveryStart | Event::CongestionEcho) => 3,
            Incident::Event(Event::Timeout) => 4,
            Incident::Event(Event::SpuriousRecovery) => 5,
            Incident::Event(Event::RecoveryEnd | Event::Penalised) | Incident::Loss(_) => 7,
        }
    }

    /// Returns the step as the words of a `struct step`.
    pub fn words(&self, seed: u64, initial_window: u64) -> [u64; WORDS] {
        let (sample, connection) = (&self.sample, &self.connection);
        let recovery = RECOVERIES.iter().position(|known| *known == connection.recovery).unwrap();
        [
            self.kind(),
            seed,
            initial_window,
            sample.delivered,
            sample.prior_delivered,
            sample.interval.as_micros(),
            sample.rtt.map_or(u64::MAX, |rtt| rtt.as_micros()),
            sample.newly_acked,
            sample.newly_lost,
            sample.prior_in_flight,
            pair(sample.app_limited.into(), sample.ack_delayed.into()),
            connection.now.as_nanos(),
            connection.next_departure.as_nanos(),
            connection.in_flight,
            connection.delivered,
            connection.lost,
            pair(connection.mss.into(), connection.srtt.as_micros()),
            pair(connection.min_rtt.as_micros(), recovery as u64),
            pair(connection.app_limited.into(), 0),
            0,
            0,
        ]
    }
}
