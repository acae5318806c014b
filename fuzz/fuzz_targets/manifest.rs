//! Manifests of videos: reading any input gives qualities and segments that can be played, or a message
//! with a place and a remedy.

#![no_main]

use knee_foreign::{FileError, Manifest, join_manifests, read_manifest};
use knee_units::Time;
use libfuzzer_sys::fuzz_target;

fn check(video: &Manifest) {
    let rates: Vec<u64> = video.ladder.iter().map(|quality| quality.bitrate_bps).collect();
    assert!(rates.is_sorted_by(|a, b| a < b) && rates.first() != Some(&0));
    assert!(video.lengths.iter().all(|length| *length > Time::ZERO));
    for quality in &video.ladder {
        assert!(quality.bytes.is_empty() || quality.bytes.len() == video.lengths.len());
    }
    assert!(!video.to_string().contains('\n'));
}

fn check_error(error: &FileError) {
    let message = error.to_string();
    assert!(!message.contains('\n') && message.len() < 600, "{message}");
    assert!(message.starts_with("line "), "{message}");
}

// A second file follows a NUL byte.
fuzz_target!(|data: &[u8]| {
    let mut read = Vec::new();
    for part in data.split(|byte| *byte == 0).take(3) {
        match read_manifest(part) {
            Ok(video) => {
                check(&video);
                read.push(video);
            }
            Err(error) => check_error(&error),
        }
    }
    match join_manifests(read) {
        Ok(video) => check(&video),
        Err(error) => check_error(&error),
    }
});
