//! Playlists of HLS (RFC 8216): the multivariant one lists the bitrates, a media playlist the
//! segments of one of them.

use super::{KNOWN, Manifest, QUALITIES_MAX, Quality, SEGMENTS_MAX};
use crate::error::{FileError, SHOWN, shorten};
use crate::unpack;
use knee_units::{NANOS_PER_SECOND, Time};

pub(super) const HLS: &str = "HLS playlist";

/// What the lines so far say.
#[derive(Default)]
struct Playlist {
    variants: Vec<Variant>,
    /// Segments, each with its size if that is known.
    segments: Vec<(Time, Option<u64>)>,
    /// Length of the segment that the next URI names, and the line that says so.
    next: Option<(Time, usize)>,
    next_bytes: Option<u64>,
    /// Bitrate of the segments that follow (`EXT-X-BITRATE`), bit/s.
    bitrate_bps: Option<u64>,
    ends: bool,
    notes: Vec<&'static str>,
}

struct Variant {
    peak_bps: u64,
    average_bps: Option<u64>,
}

/// Reads a playlist.
pub(super) fn read(bytes: &[u8]) -> Result<Manifest, FileError> {
    let mut lines = unpack::lines(bytes)?;
    let mut line = String::new();
    let mut playlist = Playlist::default();
    while unpack::next_line(&mut lines, &mut line)? {
        playlist.read(line.trim(), lines.number())?;
    }
    playlist.manifest()
}

impl Playlist {
    fn read(&mut self, line: &str, number: usize) -> Result<(), FileError> {
        if line.is_empty() {
            return Ok(());
        }
        let Some(tag) = line.strip_prefix('#') else { return self.uri(number) };
        let (name, value) = tag.split_once(':').unwrap_or((tag, ""));
        match name {
            "EXT-X-STREAM-INF" => self.variant(value, number),
            "EXTINF" => {
                self.next = Some((length(value, number)?, number));
                Ok(())
            }
            "EXT-X-BYTERANGE" => {
                let bytes = value.split('@').next().unwrap_or_default().trim();
                let wrong = || {
                    let problem = format!("\"{}\" is no number of bytes", shorten(bytes, SHOWN));
                    FileError::new(number, problem, "write #EXT-X-BYTERANGE:1000@0")
                };
                self.next_bytes = Some(whole(bytes).ok_or_else(wrong)?);
                Ok(())
            }
            "EXT-X-BITRATE" => {
                self.bitrate_bps = whole(value.trim()).and_then(|kbps| kbps.checked_mul(1000));
                Ok(())
            }
            "EXT-X-ENDLIST" => {
                self.ends = true;
                Ok(())
            }
            "EXT-X-I-FRAMES-ONLY" => {
                let problem = "it is a playlist of single frames (EXT-X-I-FRAMES-ONLY)";
                Err(FileError::new(number, problem, "write the name of one for playing"))
            }
            _ => Ok(()),
        }
    }

    fn variant(&mut self, attributes: &str, number: usize) -> Result<(), FileError> {
        let bandwidth = attribute(attributes, "BANDWIDTH");
        let peak_bps = bandwidth.and_then(whole).filter(|bps| *bps > 0).ok_or_else(|| {
            let problem = match bandwidth {
                Some(found) => format!("BANDWIDTH \"{}\" is no bitrate", shorten(found, SHOWN)),
                None => "a variant without BANDWIDTH, which RFC 8216 (4.3.4.2) requires".to_owned(),
            };
            FileError::new(number, problem, "write #EXT-X-STREAM-INF:BANDWIDTH=800000")
        })?;
        if self.variants.len() == QUALITIES_MAX {
            let problem = format!("more than {QUALITIES_MAX} variants");
            return Err(FileError::new(number, problem, "leave some out"));
        }
        let average = attribute(attributes, "AVERAGE-BANDWIDTH").and_then(whole);
        let average_bps = average.filter(|bps| *bps > 0);
        self.variants.push(Variant { peak_bps, average_bps });
        Ok(())
    }

    fn uri(&mut self, number: usize) -> Result<(), FileError> {
        let bytes = self.next_bytes.take();
        let Some((length, _)) = self.next.take() else { return Ok(()) };
        if self.segments.len() == SEGMENTS_MAX {
            let problem = format!("more than {SEGMENTS_MAX} segments");
            return Err(FileError::new(number, problem, "leave some out"));
        }
        let of_bitrate = self.bitrate_bps.and_then(|bps| {
            let bits = u128::from(bps) * u128::from(length.as_nanos());
            u64::try_from(bits / 8 / u128::from(NANOS_PER_SECOND)).ok()
        });
        self.segments.push((length, bytes.or(of_bitrate)));
        Ok(())
    }

    fn manifest(mut self) -> Result<Manifest, FileError> {
        if let Some((_, number)) = self.next {
            let problem = "no segment follows this EXTINF: the file is cut off";
            return Err(FileError::new(number, problem, "fetch it again"));
        }
        match (self.variants.is_empty(), self.segments.is_empty()) {
            (true, true) => {
                let problem = "this playlist has neither bitrates nor segments";
                Err(FileError::new(1, problem, KNOWN))
            }
            (false, false) => {
                let problem =
                    "this playlist has bitrates and segments, which RFC 8216 (4.1) forbids";
                Err(FileError::new(1, problem, "write the name of another one"))
            }
            (false, true) => Ok(self.multivariant()),
            (true, false) => Ok(self.media()),
        }
    }

    /// A segment has the average bitrate; the peak counts if a variant lacks the average.
    fn multivariant(self) -> Manifest {
        let averages = self.variants.iter().all(|variant| variant.average_bps.is_some());
        let bitrate = |variant: &Variant| match variant.average_bps {
            Some(average) if averages => average,
            _ => variant.peak_bps,
        };
        let quality = |variant| Quality { bitrate_bps: bitrate(variant), bytes: Vec::new() };
        let ladder = self.variants.iter().map(quality).collect();
        Manifest { format: HLS, ladder, ..Manifest::default() }.sorted()
    }

    fn media(&mut self) -> Manifest {
        let lengths: Vec<Time> = self.segments.iter().map(|(length, _)| *length).collect();
        let nanos: u128 = lengths.iter().map(|length| u128::from(length.as_nanos())).sum();
        let media = u64::try_from(nanos).map_or(Time::MAX, Time::from_nanos);
        let bytes: Option<Vec<u64>> = self.segments.iter().map(|(_, bytes)| *bytes).collect();
        let quality = |bytes: Vec<u64>| {
            let bits = bytes.iter().map(|bytes| u128::from(*bytes)).sum::<u128>() * 8;
            let rate = bits * u128::from(NANOS_PER_SECOND) / nanos.max(1);
            Quality { bitrate_bps: u64::try_from(rate).unwrap_or(u64::MAX), bytes }
        };
        if !self.ends {
            self.notes.push("a live stream, of which the segments in the file count");
        }
        Manifest {
            format: HLS,
            ladder: bytes.map(quality).into_iter().filter(|one| one.bitrate_bps > 0).collect(),
            lengths,
            media: Some(media),
            notes: std::mem::take(&mut self.notes),
            is_playlist: true,
        }
    }
}

/// Reads the length of a segment: `4.004,a title`.
fn length(value: &str, number: usize) -> Result<Time, FileError> {
    let seconds = value.split(',').next().unwrap_or_default().trim();
    let length = seconds.parse().ok().filter(|length: &f64| *length > 0.0 && *length < 86_400.0);
    let length = length.map(Time::from_secs_f64).filter(|length| *length > Time::ZERO);
    length.ok_or_else(|| {
        let problem = format!("\"{}\" is not the length of a segment", shorten(seconds, SHOWN));
        FileError::new(number, problem, "write seconds, such as #EXTINF:4.0,")
    })
}

fn whole(text: &str) -> Option<u64> {
    text.parse().ok().filter(|value| *value < 1_000_000_000_000_000)
}

/// Returns the value of an attribute (RFC 8216, 4.2); commas in quotes do not end it.
fn attribute<'t>(list: &'t str, wanted: &str) -> Option<&'t str> {
    let mut rest = list;
    while let Some((name, after)) = rest.split_once('=') {
        let (value, next) = match after.strip_prefix('"') {
            Some(quoted) => {
                let (value, next) = quoted.split_once('"')?;
                (value, next.split_once(',').map_or("", |(_, next)| next))
            }
            None => after.split_once(',').unwrap_or((after, "")),
        };
        if name.trim() == wanted {
            return Some(value.trim());
        }
        rest = next;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_may_have_commas_in_quotes() {
        let list = r#"CODECS="avc1.4d401f,mp4a.40.2",BANDWIDTH=800000,RESOLUTION=640x360"#;
        assert_eq!(attribute(list, "BANDWIDTH"), Some("800000"));
        assert_eq!(attribute(list, "RESOLUTION"), Some("640x360"));
        assert_eq!(attribute(list, "CODECS"), Some("avc1.4d401f,mp4a.40.2"));
        assert_eq!(attribute(list, "AVERAGE-BANDWIDTH"), None);
        assert_eq!(attribute("CODECS=\"open", "BANDWIDTH"), None);
    }
}
