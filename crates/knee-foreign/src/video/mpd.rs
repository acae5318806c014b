//! The manifest of DASH: MPD (ISO/IEC 23009-1).
//!
//! Of the first period with video, the first set of adaptations with video counts. Lengths of
//! segments come from `SegmentTimeline`, or from a duration; those of a representation go before
//! those of its set, and those before the period's (5.3.9.1). Byte ranges of a `SegmentList` are
//! sizes.

use super::{KNOWN, Manifest, QUALITIES_MAX, Quality, SEGMENTS_MAX};
use crate::error::{FileError, SHOWN, shorten};
use knee_units::{NANOS_PER_SECOND, Time};
use quick_xml::Reader;
use quick_xml::events::{BytesStart, Event};

pub(super) const MPD: &str = "DASH manifest";
/// Elements within elements.
const DEPTH_MAX: usize = 64;
/// Longest video: a year.
const MEDIA_S_MAX: f64 = 366.0 * 86_400.0;

/// What the file says, as far as it counts.
#[derive(Default)]
struct Document {
    duration: Option<Time>,
    is_live: bool,
    periods: Vec<Period>,
}

#[derive(Default)]
struct Period {
    start: Option<Time>,
    duration: Option<Time>,
    segments: Segments,
    sets: Vec<Set>,
}

#[derive(Default)]
struct Set {
    is_video: bool,
    segments: Segments,
    representations: Vec<Representation>,
}

#[derive(Default)]
struct Representation {
    bandwidth_bps: u64,
    segments: Segments,
}

/// What an element says of segments.
#[derive(Default)]
struct Segments {
    timescale: Option<u64>,
    /// In units of the time scale.
    duration: Option<u64>,
    timeline: Vec<Run>,
    sizes: Vec<Option<u64>>,
}

/// An `S` of a timeline.
struct Run {
    time: Option<u64>,
    duration: u64,
    /// More of the same; negative up to the next run, or to the end.
    repeats: i64,
    line: usize,
}

/// Reads the manifest.
pub(super) fn read(text: &str) -> Result<Manifest, FileError> {
    Parser::new(text).document()?.manifest()
}

struct Parser<'t> {
    text: &'t str,
    reader: Reader<&'t [u8]>,
    /// Names of the elements around.
    open: Vec<Vec<u8>>,
    document: Document,
    /// Place up to which lines are counted, and how many there are.
    counted: (usize, usize),
}

impl<'t> Parser<'t> {
    fn new(text: &'t str) -> Parser<'t> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let reader = Reader::from_str(text);
        Parser { text, reader, open: Vec::new(), document: Document::default(), counted: (0, 1) }
    }

    /// Number of the line up to which the file is read.
    fn line(&mut self) -> usize {
        let place = usize::try_from(self.reader.buffer_position()).unwrap_or(usize::MAX);
        let place = place.min(self.text.len());
        let (from, lines) = self.counted;
        let more = self.text.as_bytes().get(from..place).unwrap_or_default();
        self.counted =
            (place.max(from), lines + more.iter().filter(|byte| **byte == b'\n').count());
        self.counted.1
    }

    fn document(mut self) -> Result<Document, FileError> {
        loop {
            match self.reader.read_event() {
                Ok(Event::Start(element)) => {
                    self.element(&element)?;
                    self.open.push(element.local_name().as_ref().to_vec());
                    if self.open.len() > DEPTH_MAX {
                        let problem =
                            format!("elements within elements, more than {DEPTH_MAX} deep");
                        return Err(FileError::new(self.line(), problem, KNOWN));
                    }
                }
                Ok(Event::Empty(element)) => self.element(&element)?,
                Ok(Event::End(_)) => {
                    self.open.pop();
                }
                Ok(Event::Eof) if self.open.is_empty() => return Ok(self.document),
                Ok(Event::Eof) => {
                    let problem = "the file ends within an element: it is cut off";
                    return Err(FileError::new(self.line(), problem, "fetch it again"));
                }
                Ok(_) => {}
                Err(error) => {
                    let problem = format!("this is no XML ({})", shorten(&error.to_string(), 120));
                    return Err(FileError::new(self.line(), problem, "fetch it again"));
                }
            }
        }
    }

    fn element(&mut self, element: &BytesStart<'_>) -> Result<(), FileError> {
        let name = element.local_name();
        let parent = self.open.last().map_or(&b""[..], |parent| parent);
        match (parent, name.as_ref()) {
            (b"", b"MPD") => {
                self.document.duration = self.duration(element, "mediaPresentationDuration")?;
                self.document.is_live = attribute(element, "type").as_deref() == Some("dynamic");
            }
            (b"", other) => {
                let problem = format!(
                    "it begins with <{}>, not with <MPD>",
                    shorten(&String::from_utf8_lossy(other), SHOWN)
                );
                return Err(FileError::new(self.line(), problem, KNOWN));
            }
            (b"MPD", b"Period") => {
                let start = self.duration(element, "start")?;
                let duration = self.duration(element, "duration")?;
                self.document.periods.push(Period { start, duration, ..Period::default() });
            }
            (b"Period", b"AdaptationSet") => {
                let set = Set { is_video: is_video(element), ..Set::default() };
                if let Some(period) = self.document.periods.last_mut() {
                    period.sets.push(set);
                }
                return self.within_limits();
            }
            (b"AdaptationSet", b"Representation") => self.representation(element)?,
            (_, b"SegmentTemplate" | b"SegmentList" | b"SegmentBase") => {
                let timescale = self.number(element, "timescale")?;
                let duration = self.number(element, "duration")?;
                if let Some(segments) = self.segments(self.open.len()) {
                    segments.timescale = timescale;
                    segments.duration = duration;
                }
            }
            (b"SegmentTimeline", b"S") => self.run(element)?,
            (b"SegmentList", b"SegmentURL") => {
                let size = attribute(element, "mediaRange").and_then(|range| size(&range));
                let depth = self.open.len() - 1;
                if let Some(segments) = self.segments(depth) {
                    segments.sizes.push(size);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// A file with very many sets or representations is none of a video.
    fn within_limits(&mut self) -> Result<(), FileError> {
        let sets = self.document.periods.iter().map(|period| period.sets.len()).sum::<usize>();
        if sets <= QUALITIES_MAX {
            return Ok(());
        }
        let problem = format!("more than {QUALITIES_MAX} sets of adaptations");
        Err(FileError::new(self.line(), problem, "leave some out"))
    }

    fn representation(&mut self, element: &BytesStart<'_>) -> Result<(), FileError> {
        let bandwidth = self.number(element, "bandwidth")?.filter(|bps| *bps > 0);
        let Some(bandwidth_bps) = bandwidth else {
            let problem = "a Representation without bandwidth, which the standard requires";
            return Err(FileError::new(self.line(), problem, "write bandwidth=\"800000\", bit/s"));
        };
        let line = self.line();
        let set = self.document.periods.last_mut().and_then(|period| period.sets.last_mut());
        let Some(set) = set else { return Ok(()) };
        if set.representations.len() == QUALITIES_MAX {
            let problem = format!("more than {QUALITIES_MAX} representations");
            return Err(FileError::new(line, problem, "leave some out"));
        }
        set.is_video |= is_video(element);
        set.representations.push(Representation { bandwidth_bps, segments: Segments::default() });
        Ok(())
    }

    fn run(&mut self, element: &BytesStart<'_>) -> Result<(), FileError> {
        let time = self.number(element, "t")?;
        let duration = self.number(element, "d")?.filter(|duration| *duration > 0);
        let line = self.line();
        let Some(duration) = duration else {
            return Err(FileError::new(
                line,
                "a segment without a length",
                "write <S d=\"4000\"/>",
            ));
        };
        let repeats = attribute(element, "r").map_or(Some(0), |text| text.trim().parse().ok());
        let Some(repeats) = repeats else {
            let problem = "r is no whole number";
            return Err(FileError::new(line, problem, "write <S d=\"4000\" r=\"9\"/>"));
        };
        // Within SegmentTemplate or SegmentList.
        let depth = self.open.len().saturating_sub(2);
        let run = Run { time, duration, repeats, line };
        if let Some(segments) = self.segments(depth) {
            segments.timeline.push(run);
        }
        Ok(())
    }

    /// Returns what is said of segments by the element at this depth.
    fn segments(&mut self, depth: usize) -> Option<&mut Segments> {
        let owner = self.open.get(depth.checked_sub(1)?)?;
        let period = self.document.periods.last_mut()?;
        match owner.as_slice() {
            b"Period" => Some(&mut period.segments),
            b"AdaptationSet" => period.sets.last_mut().map(|set| &mut set.segments),
            b"Representation" => {
                let last = period.sets.last_mut()?.representations.last_mut()?;
                Some(&mut last.segments)
            }
            _ => None,
        }
    }

    fn number(&mut self, element: &BytesStart<'_>, name: &str) -> Result<Option<u64>, FileError> {
        let Some(text) = attribute(element, name) else { return Ok(None) };
        // 1 PB, or as many ticks.
        match text.trim().parse() {
            Ok(value) if value <= 1_000_000_000_000_000_u64 => Ok(Some(value)),
            _ => {
                let problem = format!("{name} \"{}\" is no whole number", shorten(&text, SHOWN));
                Err(FileError::new(self.line(), problem, format!("write {name}=\"4000\"")))
            }
        }
    }

    fn duration(
        &mut self,
        element: &BytesStart<'_>,
        name: &str,
    ) -> Result<Option<Time>, FileError> {
        let Some(text) = attribute(element, name) else { return Ok(None) };
        match iso_duration(text.trim()) {
            Some(time) => Ok(Some(time)),
            None => {
                let problem = format!("{name} \"{}\" is no duration", shorten(&text, SHOWN));
                Err(FileError::new(self.line(), problem, format!("write {name}=\"PT1H2M3.5S\"")))
            }
        }
    }
}

/// Returns the value of an attribute.
fn attribute(element: &BytesStart<'_>, name: &str) -> Option<String> {
    let found = element.try_get_attribute(name).ok().flatten()?;
    Some(String::from_utf8_lossy(&found.value).into_owned())
}

/// Returns whether a set or a representation says that it is video.
fn is_video(element: &BytesStart<'_>) -> bool {
    let is = |name: &str, start: &str| {
        attribute(element, name).is_some_and(|value| value.starts_with(start))
    };
    is("contentType", "video") || is("mimeType", "video/")
}

/// Returns the size of a range of bytes, both ends included (RFC 9110, 14.1.2).
fn size(range: &str) -> Option<u64> {
    let (first, last) = range.split_once('-')?;
    let (first, last): (u64, u64) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    (last >= first && last < 1_000_000_000_000_000).then(|| last - first + 1)
}

/// Parses a duration (ISO 8601), such as `PT1H2M3.5S`, without years and months.
fn iso_duration(text: &str) -> Option<Time> {
    let (days, time) = match text.strip_prefix('P')?.split_once('T') {
        Some((days, time)) => (days, time),
        None => (text.strip_prefix('P')?, ""),
    };
    if days.is_empty() && time.is_empty() {
        return None;
    }
    let seconds =
        parts(days, &[('D', 86_400.0)])? + parts(time, &[('H', 3600.0), ('M', 60.0), ('S', 1.0)])?;
    (seconds <= MEDIA_S_MAX).then(|| Time::from_secs_f64(seconds))
}

/// Sums numbers, each with its unit, in this order.
fn parts(text: &str, units: &[(char, f64)]) -> Option<f64> {
    let (mut rest, mut sum, mut units) = (text, 0.0, units.iter());
    while !rest.is_empty() {
        let at = rest.find(|one: char| !one.is_ascii_digit() && one != '.')?;
        let unit = rest[at..].chars().next()?;
        let (_, factor) = units.find(|(known, _)| *known == unit)?;
        sum += rest[..at].parse::<f64>().ok()? * factor;
        rest = &rest[at + unit.len_utf8()..];
    }
    Some(sum)
}

impl Document {
    fn manifest(self) -> Result<Manifest, FileError> {
        let mut notes = Vec::new();
        let has = |period: &Period, video: bool| {
            period
                .sets
                .iter()
                .any(|set| !set.representations.is_empty() && (set.is_video || !video))
        };
        let place = |video| self.periods.iter().position(|period| has(period, video));
        let (place, video) = match place(true) {
            Some(place) => (place, true),
            None => {
                let none = || FileError::new(1, "it has no Representation", KNOWN);
                (place(false).ok_or_else(none)?, false)
            }
        };
        if !video {
            notes.push("without video: the first set counts");
        }
        if self.periods.len() > 1 {
            notes.push("of several periods the first one with video counts");
        }
        if self.is_live {
            notes.push("a live stream, of which the segments in the file count");
        }
        let length = self.length_of(place);
        let period = &self.periods[place];
        let counts = |set: &&Set| !set.representations.is_empty() && (set.is_video || !video);
        let mut sets = period.sets.iter().filter(counts);
        let Some(set) = sets.next() else {
            return Err(FileError::new(1, "it has no Representation", KNOWN));
        };
        if sets.next().is_some() {
            notes.push("of several sets of adaptations the first one counts");
        }
        let quality = |one: &Representation| Quality {
            bitrate_bps: one.bandwidth_bps,
            bytes: sizes(&[&one.segments, &set.segments, &period.segments]),
        };
        let first = set.representations.first().map(|first| &first.segments);
        let levels: Vec<&Segments> =
            first.into_iter().chain([&set.segments, &period.segments]).collect();
        let lengths = lengths(&levels, length)?;
        let sum: u128 = lengths.iter().map(|length| u128::from(length.as_nanos())).sum();
        let sum = u64::try_from(sum).map_or(Time::MAX, Time::from_nanos);
        let media = match length {
            // Segments may end after the period.
            Some(length) if sum == Time::ZERO || length < sum => Some(length),
            _ => Some(sum).filter(|sum| *sum > Time::ZERO),
        };
        let ladder = set.representations.iter().map(quality).collect();
        let format = MPD;
        Ok(Manifest { format, ladder, lengths, media, notes, is_playlist: false }.sorted())
    }

    /// Returns the length of a period (5.3.2.1).
    fn length_of(&self, place: usize) -> Option<Time> {
        let period = &self.periods[place];
        let start = period.start.unwrap_or(Time::ZERO);
        let next = self.periods.get(place + 1).and_then(|next| next.start);
        let last = place + 1 == self.periods.len();
        let end = next.or(self.duration.filter(|_| last)).filter(|end| *end > start);
        let length = period.duration.or(end.map(|end| end.saturating_sub(start)));
        length.filter(|length| *length > Time::ZERO)
    }
}

/// Returns the sizes of all segments; none if one is not known.
fn sizes(levels: &[&Segments]) -> Vec<u64> {
    let Some(level) = levels.iter().find(|level| !level.sizes.is_empty()) else {
        return Vec::new();
    };
    level.sizes.iter().copied().collect::<Option<Vec<u64>>>().unwrap_or_default()
}

/// Returns the length of each segment.
fn lengths(levels: &[&Segments], period: Option<Time>) -> Result<Vec<Time>, FileError> {
    let timescale = levels.iter().find_map(|level| level.timescale).unwrap_or(1).max(1);
    let period = period.map(|period| {
        u128::from(period.as_nanos()) * u128::from(timescale) / u128::from(NANOS_PER_SECOND)
    });
    let in_time = |ticks: u128| {
        let nanos = ticks * u128::from(NANOS_PER_SECOND) / u128::from(timescale);
        u64::try_from(nanos).map_or(Time::MAX, Time::from_nanos)
    };
    if let Some(level) = levels.iter().find(|level| !level.timeline.is_empty()) {
        return timeline(&level.timeline, period, &in_time);
    }
    let listed = levels.iter().map(|level| level.sizes.len()).find(|count| *count > 0);
    let Some(duration) = levels.iter().find_map(|level| level.duration).filter(|ticks| *ticks > 0)
    else {
        return Ok(Vec::new());
    };
    let duration = u128::from(duration);
    let count = period.map(|period| period.div_ceil(duration));
    let count = count.or(listed.map(|count| count as u128)).unwrap_or(1);
    if count > SEGMENTS_MAX as u128 {
        return Err(too_many(1));
    }
    let length = |number: u128| match period {
        Some(period) => in_time(period.saturating_sub(number * duration).min(duration)),
        None => in_time(duration),
    };
    Ok((0..count).map(length).filter(|length| *length > Time::ZERO).collect())
}

fn timeline(
    runs: &[Run],
    period: Option<u128>,
    in_time: &dyn Fn(u128) -> Time,
) -> Result<Vec<Time>, FileError> {
    let mut lengths = Vec::new();
    let first = u128::from(runs.first().and_then(|run| run.time).unwrap_or(0));
    let mut at = first;
    for (place, run) in runs.iter().enumerate() {
        at = run.time.map_or(at, u128::from);
        let duration = u128::from(run.duration);
        let count = match u128::try_from(run.repeats) {
            Ok(repeats) => repeats + 1,
            Err(_) => {
                let next = runs.get(place + 1).and_then(|next| next.time).map(u128::from);
                let end = next.or(period.map(|period| first + period));
                end.map_or(1, |end| end.saturating_sub(at).div_ceil(duration))
            }
        };
        if count > (SEGMENTS_MAX - lengths.len()) as u128 {
            return Err(too_many(run.line));
        }
        let length = in_time(duration);
        if length == Time::ZERO {
            let problem = "a segment shorter than a nanosecond";
            return Err(FileError::new(run.line, problem, "check timescale"));
        }
        lengths.extend(std::iter::repeat_n(length, count as usize));
        at += count * duration;
    }
    Ok(lengths)
}

fn too_many(line: usize) -> FileError {
    let problem = format!("more than {SEGMENTS_MAX} segments");
    FileError::new(line, problem, "check duration, timescale and r")
}
