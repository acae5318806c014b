//! Manifests of videos, written by hand from ISO/IEC 23009-1 and RFC 8216; what is expected of them is
//! computed by hand.

use super::tables::packed;
use knee_foreign::{Manifest, Quality, join_manifests, read_manifest};
use knee_units::Time;
use proptest::prelude::*;

fn read(text: &str) -> Manifest {
    read_manifest(text.as_bytes()).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn refused(text: &str) -> String {
    read_manifest(text.as_bytes()).expect_err("refused").to_string()
}

fn rates(manifest: &Manifest) -> Vec<u64> {
    manifest.ladder.iter().map(|quality| quality.bitrate_bps).collect()
}

fn seconds(manifest: &Manifest) -> Vec<f64> {
    manifest.lengths.iter().map(|length| length.as_secs_f64()).collect()
}

/// An MPD around the sets of a period.
fn mpd(head: &str, sets: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!-- made by hand -->\n\
         <MPD xmlns=\"urn:mpeg:dash:schema:mpd:2011\" {head} profiles=\"urn:mpeg:dash:profile:isoff-live:2011\">\n\
         <Period>\n{sets}\n</Period></MPD>\n"
    )
}

/// Two representations whose segments of 4 s are numbered; the last of 30.5 s has 2.5 s. The sound
/// stands first, and does not count.
#[test]
fn numbered_segments_have_one_length_and_a_rest() {
    let text = mpd(
        "type=\"static\" mediaPresentationDuration=\"PT30.5S\"",
        "<AdaptationSet contentType=\"audio\"><Representation id=\"a\" bandwidth=\"128000\"/></AdaptationSet>
         <AdaptationSet mimeType=\"video/mp4\">
           <SegmentTemplate timescale=\"90000\" duration=\"360000\" startNumber=\"1\" media=\"$Number$.m4s\"/>
           <Representation id=\"h\" bandwidth=\"2400000\" width=\"1280\" height=\"720\"/>
           <Representation id=\"l\" bandwidth=\"800000\" width=\"640\" height=\"360\"/>
         </AdaptationSet>",
    );
    let video = read(&text);
    assert_eq!((video.format, rates(&video)), ("DASH manifest", vec![800_000, 2_400_000]));
    assert_eq!(seconds(&video), [4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0, 2.5]);
    assert_eq!(video.media, Some(Time::from_millis(30_500)));
    assert_eq!((video.segment(), video.has_sizes()), (Some(Time::from_secs(4)), false));
    assert_eq!(
        video.to_string(),
        "DASH manifest, 2 bitrates from 800 kbit/s to 2.4 Mbit/s; 8 segments of 4 s; 30.5 s in all"
    );
    for other in [
        text.replace('\n', "\r\n"),
        format!("\u{feff}{text}"),
        text.replace("<MPD ", "<d:MPD ").replace("</MPD", "</d:MPD"),
    ] {
        assert_eq!(read(&other), video);
    }
    assert_eq!(read_manifest(&packed(text.as_bytes())), Ok(video));
}

/// A timeline: two of 2 s, a gap, then of 3 s up to the end of the period, which is at 13 s.
#[test]
fn timelines_are_written_out() {
    let text = mpd(
        "mediaPresentationDuration=\"PT0H0M13S\"",
        "<AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"1000\" media=\"$Time$.m4s\">
           <SegmentTimeline><S t=\"0\" d=\"2000\" r=\"1\"/><S t=\"4500\" d=\"3000\" r=\"-1\"/></SegmentTimeline>
         </SegmentTemplate><Representation bandwidth=\"1000000\"/></AdaptationSet>",
    );
    assert_eq!(seconds(&read(&text)), [2.0, 2.0, 3.0, 3.0, 3.0]);
    let to_next = text
        .replace("d=\"2000\" r=\"1\"", "d=\"1500\" r=\"-1\"")
        .replace("r=\"-1\"/></Seg", "/></Seg");
    assert_eq!(seconds(&read(&to_next)), [1.5, 1.5, 1.5, 3.0]);
}

/// Byte ranges are sizes; both ends belong to them. What a representation says goes before what its
/// set says.
#[test]
fn lists_of_segments_have_sizes() {
    let list = |ranges: [&str; 2]| {
        format!(
            "<SegmentList timescale=\"1\" duration=\"5\"><Initialization range=\"0-99\"/>\
             <SegmentURL mediaRange=\"{}\"/><SegmentURL mediaRange=\"{}\"></SegmentURL></SegmentList>",
            ranges[0], ranges[1]
        )
    };
    let text = mpd(
        "",
        &format!(
            "<AdaptationSet mimeType=\"video/mp4\"><SegmentTemplate duration=\"9\"/>
             <Representation bandwidth=\"800000\">{}</Representation>
             <Representation bandwidth=\"1600000\">{}</Representation></AdaptationSet>",
            list(["100-500099", "500100-900099"]),
            list(["100-1000099", "1000100-1800099"])
        ),
    );
    let video = read(&text);
    let quality = |bitrate_bps, bytes: [u64; 2]| Quality { bitrate_bps, bytes: bytes.to_vec() };
    assert_eq!(
        video.ladder,
        [quality(800_000, [500_000, 400_000]), quality(1_600_000, [1_000_000, 800_000])]
    );
    assert_eq!((seconds(&video), video.media), (vec![5.0, 5.0], Some(Time::from_secs(10))));
    assert!(video.has_sizes());
    let half = text.replacen(" mediaRange=\"100-500099\"", "", 1);
    assert!(!read(&half).has_sizes(), "of one segment the size is unknown");
}

/// What is not taken is said.
#[test]
fn what_does_not_count_is_said() {
    let set = "<AdaptationSet contentType=\"video\"><Representation bandwidth=\"900000\"/></AdaptationSet>";
    let text =
        mpd("type=\"dynamic\"", &format!("{set}</Period><Period start=\"PT60S\">{set}{set}"));
    let video = read(&text);
    assert_eq!((video.lengths.len(), video.media), (0, Some(Time::from_secs(60))));
    assert_eq!(
        video.to_string(),
        "DASH manifest, 900 kbit/s; it does not say how long segments are; 60 s in all; of several \
         periods the first one with video counts; a live stream, of which the segments in the file count"
    );
    let sound = mpd("", "<AdaptationSet><Representation bandwidth=\"64000\"/></AdaptationSet>");
    assert_eq!(read(&sound).notes, ["without video: the first set counts"]);
    let two = mpd("", &format!("{set}{set}"));
    assert_eq!(read(&two).notes, ["of several sets of adaptations the first one counts"]);
}

/// A multivariant playlist: averages count if all variants have them; two variants with other sound
/// are one quality.
const VARIANTS: &str = "#EXTM3U\n#EXT-X-INDEPENDENT-SEGMENTS\n\
    #EXT-X-STREAM-INF:AVERAGE-BANDWIDTH=2000000,BANDWIDTH=2600000,CODECS=\"avc1.64001f,mp4a.40.2\"\n720p.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=900000,AVERAGE-BANDWIDTH=800000,AUDIO=\"a\"\n360p.m3u8\n\
    #EXT-X-STREAM-INF:BANDWIDTH=950000,AVERAGE-BANDWIDTH=800000,AUDIO=\"b\"\n360p.m3u8\n\
    #EXT-X-I-FRAME-STREAM-INF:BANDWIDTH=90000,URI=\"frames.m3u8\"\n";

fn playlist(segments: &str) -> String {
    format!("#EXTM3U\n#EXT-X-VERSION:4\n#EXT-X-TARGETDURATION:6\n{segments}#EXT-X-ENDLIST\n")
}

fn join(files: &[&str]) -> Result<Manifest, String> {
    join_manifests(files.iter().map(|file| read(file)).collect()).map_err(|error| error.to_string())
}

#[test]
fn playlists_have_bitrates_and_segments() {
    let variants = read(VARIANTS);
    assert_eq!((variants.format, rates(&variants)), ("HLS playlist", vec![800_000, 2_000_000]));
    let peaks = VARIANTS.replacen("AVERAGE-BANDWIDTH=2000000,", "", 1);
    assert_eq!(rates(&read(&peaks)), [900_000, 950_000, 2_600_000]);
    assert_eq!(read(&VARIANTS.replace('\n', "\r\n")), variants);

    let segments =
        playlist("#EXTINF:6.006,\n1.ts\n#EXTINF:6.006,a, b\n2.ts\n#EXTINF:3.003,\n3.ts\n");
    assert_eq!(seconds(&read(&segments)), [6.006, 6.006, 3.003]);
    let video = join(&[VARIANTS, &segments]).unwrap();
    assert_eq!((rates(&video), seconds(&video).len()), (vec![800_000, 2_000_000], 3));
    assert_eq!(video.media, Some(Time::from_micros(15_015_000)));
    assert_eq!(join(&[&segments, VARIANTS]).unwrap(), video, "in any order");
    assert_eq!(
        video.to_string(),
        "HLS playlist, 2 bitrates from 800 kbit/s to 2 Mbit/s; 3 segments of 6.006 s; 15.015 s in all"
    );
}

/// Byte ranges, and bitrates of single segments, are sizes. 250,000 B and 150,000 B over 4 s are 800
/// kbit/s.
#[test]
fn playlists_with_byte_ranges_have_sizes() {
    let low = playlist(
        "#EXT-X-BYTERANGE:250000@0\n#EXTINF:2,\na.mp4\n#EXTINF:2,\n#EXT-X-BYTERANGE:150000\na.mp4\n",
    );
    let high =
        playlist("#EXT-X-BITRATE:2000\n#EXTINF:2,\n1.ts\n#EXT-X-BITRATE:3000\n#EXTINF:2,\n2.ts\n");
    let expected = [
        Quality { bitrate_bps: 800_000, bytes: vec![250_000, 150_000] },
        Quality { bitrate_bps: 2_500_000, bytes: vec![500_000, 750_000] },
    ];
    assert_eq!(join(&[&high, &low]).unwrap().ladder, expected);
    let video = join(&[VARIANTS, &high, &low]).unwrap();
    assert_eq!(rates(&video), [800_000, 2_000_000]);
    assert_eq!(video.ladder[1].bytes, [500_000, 750_000]);
    assert!(video.has_sizes());
    let one = join(&[VARIANTS, &low]).unwrap();
    assert!(!one.has_sizes());
    assert_eq!(one.notes, ["sizes of segments are not known of all qualities, and not used"]);
    let live = low.replace("#EXT-X-ENDLIST\n", "");
    assert_eq!(read(&live).notes, ["a live stream, of which the segments in the file count"]);
}

#[test]
fn files_that_do_not_belong_together_are_named() {
    let segments = playlist("#EXTINF:6,\n1.ts\n");
    let dash = mpd("", "<AdaptationSet><Representation bandwidth=\"64000\"/></AdaptationSet>");
    assert_eq!(
        join(&[&segments]).unwrap_err(),
        "line 1: it has segments, but neither bitrates nor sizes; write the multivariant playlist before \
         it: [\"master.m3u8\", \"720p.m3u8\"]"
    );
    for files in [[VARIANTS, VARIANTS], [&dash, &segments]] {
        assert_eq!(
            join(&files).unwrap_err(),
            "line 1: of several files, one may be a multivariant playlist of HLS, and the others its media \
             playlists; write those of one video, or one file"
        );
    }
    let sized = |count: usize| playlist(&"#EXT-X-BITRATE:500\n#EXTINF:2,\n1.ts\n".repeat(count));
    let other = sized(2).replace(":500", ":900");
    assert_eq!(
        join(&[&sized(3), &other]).unwrap_err(),
        "line 1: the playlists have different numbers of segments; write those of one video"
    );
}

#[test]
fn each_mistake_is_named_with_its_line() {
    let known = "write the name of an MPD (DASH) or of a playlist of HLS (m3u8)";
    let set = |inner: &str| {
        mpd("", &format!("<AdaptationSet contentType=\"video\">{inner}</AdaptationSet>"))
    };
    let timeline = |runs: &str| {
        set(&format!(
            "<SegmentTemplate><SegmentTimeline>{runs}</SegmentTimeline></SegmentTemplate>\
             <Representation bandwidth=\"9\"/>"
        ))
    };
    for (text, expected) in [
        (String::new(), "line 1: it is empty; record it again".into()),
        ("a,b\n".into(), format!("line 1: it is no manifest of a video; {known}")),
        ("<html>\n</html>".into(), format!("line 1: it begins with <html>, not with <MPD>; {known}")),
        (mpd("", ""), format!("line 1: it has no Representation; {known}")),
        (
            set("<Representation id=\"x\"/>"),
            "line 5: a Representation without bandwidth, which the standard requires; write \
             bandwidth=\"800000\", bit/s"
                .into(),
        ),
        (
            set("<Representation bandwidth=\"8e5\"/>"),
            "line 5: bandwidth \"8e5\" is no whole number; write bandwidth=\"4000\"".into(),
        ),
        (
            mpd("mediaPresentationDuration=\"90\"", ""),
            "line 3: mediaPresentationDuration \"90\" is no duration; write \
             mediaPresentationDuration=\"PT1H2M3.5S\""
                .into(),
        ),
        (timeline("<S t=\"0\"/>"), "line 5: a segment without a length; write <S d=\"4000\"/>".into()),
        (
            timeline("<S d=\"1\" r=\"4000000000\"/>"),
            "line 5: more than 1000000 segments; check duration, timescale and r".into(),
        ),
        (
            "<MPD>\n<Period>\n".into(),
            "line 3: the file ends within an element: it is cut off; fetch it again".into(),
        ),
        ("#EXTM3U\n".into(), format!("line 1: this playlist has neither bitrates nor segments; {known}")),
        (
            "#EXTM3U\n#EXT-X-STREAM-INF:RESOLUTION=1x1\nx\n".into(),
            "line 2: a variant without BANDWIDTH, which RFC 8216 (4.3.4.2) requires; write \
             #EXT-X-STREAM-INF:BANDWIDTH=800000"
                .into(),
        ),
        (
            "#EXTM3U\n#EXTINF:six,\nx\n".into(),
            "line 2: \"six\" is not the length of a segment; write seconds, such as #EXTINF:4.0,".into(),
        ),
        (
            "#EXTM3U\n#EXTINF:6,\n1.ts\n#EXTINF:6,\n".into(),
            "line 4: no segment follows this EXTINF: the file is cut off; fetch it again".into(),
        ),
        (
            format!("{VARIANTS}#EXTINF:6,\n1.ts\n"),
            "line 1: this playlist has bitrates and segments, which RFC 8216 (4.1) forbids; write the name \
             of another one"
                .into(),
        ),
    ] {
        assert_eq!(refused(&text), expected, "{text}");
    }
    let open = refused("<MPD>\n<Period></MPD>");
    assert!(open.starts_with("line 2: this is no XML ("), "{open}");
    let deep = refused(&format!("<MPD>{}", "<a>".repeat(100_000)));
    assert!(deep.contains("more than 64 deep"), "{deep}");
    // Entities are not expanded.
    let bomb = format!(
        "<!DOCTYPE MPD [<!ENTITY a \"aaaaaaaaaa\"><!ENTITY b \"&a;&a;&a;&a;\">]>{}",
        set("<Representation bandwidth=\"&b;\"/>").split_once('\n').unwrap().1
    );
    let message = refused(&bomb);
    assert!(message.contains("bandwidth \"&b;\" is no whole number"), "{message}");
    let latin = b"<MPD>\n\xe9</MPD>";
    assert_eq!(
        read_manifest(latin).unwrap_err().to_string(),
        "line 2: it is not valid UTF-8; save it as UTF-8"
    );
    let long = vec![b' '; (64 << 20) + 2];
    let long = [b"<MPD>".to_vec(), long].concat();
    let message = read_manifest(&packed(&long)).unwrap_err().to_string();
    assert_eq!(message, format!("line 1: it is larger than 64 MiB; {known}"));
}

/// Every manifest that is cut anywhere, or with any byte changed, is read or refused.
#[test]
fn half_manifests_are_read_or_refused() {
    let dash = mpd(
        "mediaPresentationDuration=\"PT9S\"",
        "<AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"9\"><SegmentTimeline>\
         <S t=\"0\" d=\"9\" r=\"-1\"/></SegmentTimeline></SegmentTemplate>\
         <Representation bandwidth=\"9\"/></AdaptationSet>",
    );
    for text in [dash.as_str(), VARIANTS, &playlist("#EXT-X-BYTERANGE:9\n#EXTINF:6,\n1.ts\n")] {
        for at in 0..text.len() {
            for byte in [b'9', b'"', b'<', b'-'] {
                let mut changed = text.as_bytes().to_vec();
                changed[at] = byte;
                for bytes in [&text.as_bytes()[..at], &changed] {
                    if let Err(error) = read_manifest(bytes) {
                        let message = error.to_string();
                        assert!(!message.contains('\n') && message.len() < 600, "{message}");
                    }
                }
            }
        }
    }
}

proptest! {
    /// A timeline in runs is the same as one that is written out.
    #[test]
    fn runs_of_a_timeline_are_the_segments(runs in prop::collection::vec((1..9000_u64, 0..5_usize), 1..20)) {
        let timeline = |runs: &mut dyn Iterator<Item = String>| {
            let runs: String = runs.collect();
            mpd("", &format!(
                "<AdaptationSet contentType=\"video\"><SegmentTemplate timescale=\"1000\"><SegmentTimeline>\
                 {runs}</SegmentTimeline></SegmentTemplate><Representation bandwidth=\"9\"/></AdaptationSet>"
            ))
        };
        let short = read(&timeline(&mut runs.iter().map(|(d, r)| format!("<S d=\"{d}\" r=\"{r}\"/>"))));
        let all = runs.iter().flat_map(|(d, r)| std::iter::repeat_n(*d, r + 1));
        let long = read(&timeline(&mut all.clone().map(|d| format!("<S d=\"{d}\"/>"))));
        prop_assert_eq!(&short, &long);
        let expected: Vec<Time> = all.map(Time::from_millis).collect();
        prop_assert_eq!(short.lengths, expected);
    }
}
