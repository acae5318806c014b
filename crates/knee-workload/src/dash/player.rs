//! The player: requests segments one after the other over one connection.

use super::buffer::Buffer;
use super::rules::{Arrival, Rules};
use crate::Dash;
use crate::answers::Answers;
use crate::{Action, Application, Object};
use knee_units::{NANOS_PER_SECOND, Time};

/// Media kept at the top quality, where waiting brings nothing better (`bufferTimeAtTopQuality`,
/// `bufferTimeAtTopQualityLongForm`), and the length from which media counts as long.
const TOP_BUFFER: Time = Time::from_secs(30);
const TOP_BUFFER_LONG: Time = Time::from_secs(60);
const LONG_MEDIA: Time = Time::from_secs(600);
/// All requests use one connection, kept open.
const CONNECTION: u32 = 0;

pub(crate) struct Player {
    dash: Dash,
    /// When each segment begins in the media, and the last one ends, if they are known one by one.
    begins: Vec<Time>,
    rules: Rules,
    buffer: Buffer,
    answers: Answers,
    /// Quality of the last segment requested.
    quality: usize,
    /// Quality of the next segment and when to request it, once chosen.
    chosen: Option<(usize, Time)>,
    objects: Vec<Object>,
    opened: bool,
    closed: bool,
    stopped: bool,
}

impl Player {
    pub fn new(dash: Dash) -> Player {
        assert!(!dash.ladder_bps.is_empty(), "a video has at least one quality");
        assert!(dash.segment > Time::ZERO, "a segment has some length");
        let rules = Rules::new(&dash);
        Player {
            begins: dash.segments.as_deref().map(super::Segments::begins).unwrap_or_default(),
            quality: rules.initial(),
            rules,
            dash,
            buffer: Buffer::default(),
            answers: Answers::default(),
            chosen: None,
            objects: Vec::new(),
            opened: false,
            closed: false,
            stopped: false,
        }
    }

    /// Returns the media time of a segment: the remainder for the last one, zero beyond it.
    fn length(&self, segment: usize) -> Time {
        let (begin, length) = match self.dash.segments.as_deref() {
            None => {
                let length = self.dash.segment;
                (Time::from_nanos(length.as_nanos().saturating_mul(segment as u64)), length)
            }
            Some(segments) => match segments.lengths.get(segment) {
                None => return Time::ZERO,
                Some(length) => (self.begins[segment], *length),
            },
        };
        self.dash.media.saturating_sub(begin).min(length)
    }

    /// Returns the bytes of a segment in a quality: as the manifest says, for the part of it that is
    /// within the media.
    fn bytes(&self, segment: usize) -> u64 {
        let length = self.length(segment);
        let known = self.dash.segments.as_deref().and_then(|segments| {
            let bytes = *segments.bytes.get(self.quality)?.get(segment)?;
            Some((bytes, *segments.lengths.get(segment)?))
        });
        match known {
            None => size(self.dash.ladder_bps[self.quality], length),
            Some((bytes, whole)) if length >= whole => bytes.max(1),
            Some((bytes, whole)) => {
                let part = u128::from(bytes) * u128::from(length.as_nanos());
                let part = part.div_ceil(u128::from(whole.as_nanos().max(1)));
                u64::try_from(part).unwrap_or(bytes).max(1)
            }
        }
    }

    fn all_is_asked_for(&self) -> bool {
        self.stopped || self.length(self.objects.len()) == Time::ZERO
    }

    /// Returns the level up to which the next segment is requested, so that it does not fill the
    /// buffer beyond its target. A target below one segment must not stop the player.
    fn room(&self) -> Time {
        let at_top = self.quality + 1 == self.dash.ladder_bps.len();
        let long = self.dash.media >= LONG_MEDIA;
        let top = if long { TOP_BUFFER_LONG } else { TOP_BUFFER };
        let target = if at_top { self.dash.buffer.max(top) } else { self.dash.buffer };
        if target <= self.dash.segment { target } else { target - self.dash.segment }
    }

    /// Requests the next segment if it is time.
    fn request(&mut self, now: Time) -> Option<Action> {
        if self.chosen.is_none() {
            let level = self.buffer.level(now);
            if level > self.room() {
                return None;
            }
            let (quality, wait) = self.rules.choose(now, level.as_secs_f64(), self.quality);
            self.chosen = Some((quality, now.saturating_add(wait)));
        }
        let (quality, _) = self.chosen.take_if(|(_, at)| now >= *at)?;
        self.quality = quality;
        Some(self.ask(now))
    }

    fn ask(&mut self, now: Time) -> Action {
        let segment = self.objects.len();
        let bitrate_bps = self.dash.ladder_bps[self.quality];
        let bytes = self.bytes(segment);
        self.answers.ask(segment, bytes);
        self.objects.push(Object {
            number: segment as u32,
            name: format!("segment {segment}"),
            connection: CONNECTION,
            bytes,
            requested: now,
            quality: Some(self.quality as u32),
            bitrate_bps,
            ..Object::default()
        });
        Action::Request { connection: CONNECTION, bytes }
    }

    fn arrived(&mut self, now: Time, segment: usize) {
        let before = self.buffer.level(now);
        let stalled = self.buffer.add(now, self.length(segment));
        let after = self.buffer.level(now);
        let object = &mut self.objects[segment];
        object.completed = Some(now);
        object.buffer = after;
        object.stalled = stalled;
        self.rules.on_segment(
            now,
            &Arrival {
                quality: self.quality,
                bytes: object.bytes,
                requested: object.requested,
                first_byte: object.first_byte.unwrap_or(now),
                levels_s: [before.as_secs_f64(), after.as_secs_f64()],
                stalled: stalled > Time::ZERO,
            },
        );
    }
}

/// Returns the bytes of this much media at a constant bitrate, rounded up.
fn size(bitrate_bps: u64, length: Time) -> u64 {
    let bits = u128::from(bitrate_bps) * u128::from(length.as_nanos());
    let bytes = bits.div_ceil(8 * u128::from(NANOS_PER_SECOND));
    u64::try_from(bytes).unwrap_or(u64::MAX).max(1)
}

impl Application for Player {
    fn poll(&mut self, now: Time) -> Option<Action> {
        if self.all_is_asked_for() {
            let closes = self.opened && !self.closed;
            self.closed = true;
            return closes.then_some(Action::Close { connection: CONNECTION });
        }
        if !self.opened {
            self.opened = true;
            return Some(Action::Open { connection: CONNECTION });
        }
        // One at a time, because each segment informs the choice of the next.
        if self.answers.is_idle() { self.request(now) } else { None }
    }

    fn timer(&self) -> Time {
        if self.all_is_asked_for() || !self.answers.is_idle() {
            return Time::MAX;
        }
        match self.chosen {
            Some((_, at)) => at,
            None => self.buffer.time_of(self.room()),
        }
    }

    fn on_delivered(&mut self, now: Time, _connection: u32, bytes: u64) {
        let mut left = bytes;
        while let Some(part) = self.answers.take(&mut left) {
            if part.first {
                self.objects[part.object].first_byte = Some(now);
            }
            if part.last {
                self.arrived(now, part.object);
            }
        }
    }

    fn stop(&mut self, _now: Time) {
        self.stopped = true;
    }

    fn wants_deliveries(&self) -> bool {
        true
    }

    /// All media has arrived; the buffer still plays out.
    fn is_complete(&self) -> bool {
        self.all_is_asked_for() && self.answers.is_idle()
    }

    fn objects(&self) -> &[Object] {
        &self.objects
    }
}
