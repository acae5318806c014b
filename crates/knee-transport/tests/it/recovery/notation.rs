//! Notation shared by both kinds of script: lines, times in milliseconds,
//! ranges of segments.

use knee_units::Time;

/// Payload bytes of a full segment.
pub const SEGMENT: u64 = 1448;

/// Time zero of scripts, so that their times can begin at zero although the
/// handshake came before.
pub const START: Time = Time::from_secs(10);

/// One line: a time, or none for the same time as before; its kind; its words.
pub struct Line<'a> {
    pub number: usize,
    pub at: Option<Time>,
    pub kind: &'a str,
    pub words: Vec<&'a str>,
}

/// Returns the lines of a script, without comments (`#`) and empty lines.
pub fn lines(text: &str) -> Vec<Line<'_>> {
    text.lines().enumerate().filter_map(|(index, line)| parse(index + 1, line)).collect()
}

fn parse(number: usize, line: &str) -> Option<Line<'_>> {
    let mut words: Vec<&str> = line.split('#').next()?.split_whitespace().collect();
    let starts_with_time = words.first()?.starts_with(|c: char| c.is_ascii_digit());
    let at = starts_with_time.then(|| time(words.remove(0)));
    let kind = words.remove(0);
    Some(Line { number, at, kind, words })
}

/// Parses milliseconds since the start.
pub fn time(word: &str) -> Time {
    START + Time::from_nanos((float(word) * 1e6).round() as u64)
}

/// Returns a point in time as written in scripts.
pub fn in_ms(at: Time) -> f64 {
    (at.as_nanos() as f64 - START.as_nanos() as f64) / 1e6
}

pub fn float(word: &str) -> f64 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no number"))
}

pub fn number(word: &str) -> u32 {
    word.parse().unwrap_or_else(|_| panic!("`{word}` is no segment"))
}

/// `3` is segment 3, `3:7` are segments 3 to 6.
pub fn range(word: &str) -> (u32, u32) {
    match word.split_once(':') {
        Some((from, to)) => (number(from), number(to)),
        None => (number(word), number(word) + 1),
    }
}

/// Returns the segments at the start of `words`, and the words after them.
pub fn segments<'a, 'b>(words: &'b [&'a str]) -> (Vec<u32>, &'b [&'a str]) {
    let count = words.iter().take_while(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let (ranges, flags) = words.split_at(count.count());
    let numbers = ranges.iter().flat_map(|word| {
        let (from, to) = range(word);
        from..to
    });
    (numbers.collect(), flags)
}
