//! Common bitrate ladders of videos, bit/s.

/// 360p, 480p, 720p, 1080p and 1080p at 60 frames per second, as in the study
/// of the scheduler SCTC.
///
/// Of the study's bitrates only 720p's 1310 kbit/s is known. The others follow
/// from it by the rule of thumb that at equal quality bitrate grows with the
/// power 0.75 of pixels per second (B. Waggoner, "Compression for Great Video
/// and Audio", 2009).
pub fn ladder_of_study() -> Vec<u64> {
    vec![463_000, 714_000, 1_310_000, 2_407_000, 4_048_000]
}

/// The ladder with which a real dash.js was measured on links of 1, 5 and 10 Mbit/s.
pub fn ladder_measured() -> Vec<u64> {
    vec![400_000, 750_000, 1_300_000, 2_500_000, 4_500_000]
}

/// A ladder whose top one link of 10 Mbit/s cannot reach: with the usual margin of a tenth the link
/// carries 8 Mbit/s. Links of 1, 5 and 10 together carry 11 Mbit/s; for 14 they fall just short,
/// because of headers.
pub fn ladder_beyond_one_link() -> Vec<u64> {
    vec![1_300_000, 2_500_000, 4_500_000, 8_000_000, 11_000_000, 14_000_000]
}
