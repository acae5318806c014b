//! A video as its manifest describes it: which bitrates it has, how long its segments are, and how
//! large, where the manifest says so.

mod hls;
mod mpd;

use crate::error::FileError;
use crate::unpack;
use knee_units::{Rate, Time};
use std::fmt;
use std::io::Read;

/// A video as its manifest describes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Manifest {
    /// Name of the file's format, for display.
    pub format: &'static str,
    /// Its qualities, the lowest bitrate first; none in an HLS media playlist without sizes.
    pub ladder: Vec<Quality>,
    /// Length of each segment, in order; empty if the file does not say.
    pub lengths: Vec<Time>,
    /// Length of the video; `None` if the file does not say.
    pub media: Option<Time>,
    /// What else there is in it that is not taken.
    pub notes: Vec<&'static str>,
    /// Whether it is the list of segments of one quality of HLS.
    is_playlist: bool,
}

/// A quality of a video.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quality {
    /// Its bitrate, bit/s.
    pub bitrate_bps: u64,
    /// Size of each segment, bytes, in order; empty if the file does not say.
    pub bytes: Vec<u64>,
}

/// Largest manifest after decompression.
const BYTES_MAX: u64 = 64 << 20;
/// Most segments of a video.
const SEGMENTS_MAX: usize = 1_000_000;
/// Most qualities of a video.
const QUALITIES_MAX: usize = 1000;

/// Reads a manifest of DASH (MPD, ISO/IEC 23009-1) or a playlist of HLS (RFC 8216), compressed by
/// gzip or not.
///
/// # Errors
/// The line, what is wrong there, and what to write instead.
pub fn read_manifest(bytes: &[u8]) -> Result<Manifest, FileError> {
    let start = unpack::text_start(bytes)?;
    if start.starts_with(b"#EXTM3U") {
        return hls::read(bytes);
    }
    if start.first() == Some(&b'<') {
        return mpd::read(&text(bytes)?);
    }
    Err(FileError::new(1, "it is no manifest of a video", KNOWN))
}

/// What can be read.
const KNOWN: &str = "write the name of an MPD (DASH) or of a playlist of HLS (m3u8)";

/// Returns the text of a whole manifest.
fn text(bytes: &[u8]) -> Result<String, FileError> {
    let mut whole = Vec::new();
    let read = unpack::unpacked(bytes).take(BYTES_MAX + 1).read_to_end(&mut whole);
    read.map_err(|error| FileError::new(1, error.to_string(), "write it again"))?;
    if whole.len() as u64 > BYTES_MAX {
        return Err(FileError::new(1, "it is larger than 64 MiB", KNOWN));
    }
    String::from_utf8(whole).map_err(|error| {
        let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        FileError::new(line, "it is not valid UTF-8", "save it as UTF-8")
    })
}

/// Joins the manifest of a video and the playlists of its qualities into one: these have the lengths
/// of the segments and, if there is one with sizes for each quality, the sizes.
///
/// # Errors
/// If they do not belong together, or say no bitrate: what to write instead.
pub fn join_manifests(files: Vec<Manifest>) -> Result<Manifest, FileError> {
    let several = files.len() > 1;
    let (playlists, mut others): (Vec<Manifest>, Vec<Manifest>) =
        files.into_iter().partition(|file| file.is_playlist);
    if others.len() > 1 || several && others.iter().any(|one| one.format == mpd::MPD) {
        let problem = "of several files, one may be a multivariant playlist of HLS, and the others its \
                       media playlists";
        return Err(FileError::new(1, problem, "write those of one video, or one file"));
    }
    let first = playlists.first().map(|first| (first.lengths.clone(), first.media));
    let mut sized: Vec<Quality> = playlists.into_iter().flat_map(|one| one.ladder).collect();
    sized.sort_by_key(|quality| quality.bitrate_bps);
    let Some(mut video) = others.pop() else {
        let (lengths, media) = first.unwrap_or_default();
        return alone(Manifest {
            format: hls::HLS,
            ladder: sized,
            lengths,
            media,
            ..Manifest::default()
        });
    };
    if let Some((lengths, media)) = first {
        (video.lengths, video.media) = (lengths, media);
        let fits = |quality: &Quality| quality.bytes.len() == video.lengths.len();
        if sized.len() == video.ladder.len() && sized.iter().all(fits) {
            for (quality, sized) in video.ladder.iter_mut().zip(sized) {
                quality.bytes = sized.bytes;
            }
        } else if !sized.is_empty() {
            video.notes.push("sizes of segments are not known of all qualities, and not used");
        }
    }
    Ok(video)
}

/// Joins playlists of qualities without the one that lists them.
fn alone(mut video: Manifest) -> Result<Manifest, FileError> {
    video.ladder.dedup_by_key(|quality| quality.bitrate_bps);
    if video.ladder.is_empty() {
        let problem = "it has segments, but neither bitrates nor sizes";
        let advice = "write the multivariant playlist before it: [\"master.m3u8\", \"720p.m3u8\"]";
        return Err(FileError::new(1, problem, advice));
    }
    if video.ladder.iter().any(|quality| quality.bytes.len() != video.lengths.len()) {
        let problem = "the playlists have different numbers of segments";
        return Err(FileError::new(1, problem, "write those of one video"));
    }
    Ok(video)
}

impl Manifest {
    /// Checks and sorts what a file says of the qualities: of equal ones the first counts.
    fn sorted(mut self) -> Manifest {
        self.ladder.sort_by_key(|quality| quality.bitrate_bps);
        self.ladder.dedup_by_key(|quality| quality.bitrate_bps);
        let fits = |quality: &Quality| quality.bytes.len() == self.lengths.len();
        if !self.ladder.iter().all(fits) {
            self.ladder.iter_mut().for_each(|quality| quality.bytes.clear());
        }
        self
    }

    /// Returns the usual (median) length of a segment; `None` if the file does not say.
    pub fn segment(&self) -> Option<Time> {
        let mut lengths = self.lengths.clone();
        lengths.sort_unstable();
        lengths.get(lengths.len().saturating_sub(1) / 2).copied()
    }

    /// Returns whether the size of each segment is known.
    pub fn has_sizes(&self) -> bool {
        !self.lengths.is_empty() && self.ladder.iter().all(|one| !one.bytes.is_empty())
    }
}

/// Says what was read.
impl fmt::Display for Manifest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Manifest { format, ladder, lengths, media, notes, .. } = self;
        write!(f, "{format}")?;
        let rate = |quality: &Quality| Rate::from_bits_per_second(quality.bitrate_bps);
        match (&ladder[..], ladder.len()) {
            ([], _) => {}
            ([only], _) => write!(f, ", {}", rate(only))?,
            ([first, .., last], count) => {
                write!(f, ", {count} bitrates from {} to {}", rate(first), rate(last))?;
            }
        }
        match self.segment() {
            Some(segment) => write!(f, "; {} segments of {segment}", lengths.len())?,
            None => write!(f, "; it does not say how long segments are")?,
        }
        if self.has_sizes() {
            write!(f, ", with their sizes")?;
        }
        if let Some(media) = media {
            write!(f, "; {media} in all")?;
        }
        notes.iter().try_for_each(|note| write!(f, "; {note}"))
    }
}
