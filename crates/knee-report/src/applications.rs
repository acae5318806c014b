//! Pictures of what applications experienced: the waterfall of a page or of bursts, and the
//! timeline of a video.

use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::{bytes, percent, rate, time_us};
use knee_record::{FlowSummary, FlowView, ObjectRecord};
use serde::Serialize;

/// Largest number of objects drawn.
const OBJECTS_MAX: usize = 150;
/// Largest number of segments drawn.
const SEGMENTS_MAX: usize = 1500;
/// Height of a row of the waterfall.
const ROW: f64 = 14.0;
const LEFT: f64 = 120.0;
const RIGHT: f64 = WIDTH - 14.0;

/// A drawing with its title and caption.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    pub title: String,
    pub caption: String,
    /// Whether it takes half the width, so that two fit side by side if there is room.
    pub half: bool,
    pub drawing: Option<Drawing>,
    /// Why there is nothing to draw.
    pub empty: String,
}

/// Returns the waterfall of a page or of bursts: one row per object, in the order of requests.
/// `None` for a flow with neither.
pub(crate) fn waterfall(flow: &FlowView<'_>, summary: &FlowSummary) -> Option<Shown> {
    let (title, caption) = told_of_page(summary).or_else(|| told_of_bursts(summary))?;
    let mut objects: Vec<&ObjectRecord> =
        flow.objects.iter().copied().filter(|object| object.quality.is_none()).collect();
    objects.sort_by_key(|object| (object.requested_ns, object.number));
    let left_out = objects.len().saturating_sub(OBJECTS_MAX);
    objects.truncate(OBJECTS_MAX);
    let more =
        if left_out > 0 { format!(" {left_out} more are in the records.") } else { String::new() };
    Some(Shown {
        half: false,
        title: format!("{title}: {}", flow.record.label()),
        caption: format!("{caption} Pale: requested, not yet arriving; full: arriving.{more}"),
        drawing: Some(draw_waterfall(&objects, flow)),
        empty: String::new(),
    })
}

fn told_of_page(summary: &FlowSummary) -> Option<(&'static str, String)> {
    let page = summary.page.as_ref()?;
    let loaded = match page.load_us {
        Some(time) => format!("Loaded after {}", time_us(Some(time))),
        None => "Not fully loaded".to_string(),
    };
    Some(("Page", format!("{loaded}, {} of {} objects arrived.", page.arrived, page.objects)))
}

fn told_of_bursts(summary: &FlowSummary) -> Option<(&'static str, String)> {
    let bursts = summary.bursts.as_ref()?;
    let mut caption = format!("{} of {} bursts arrived", bursts.arrived, bursts.asked);
    if let Some(times) = &bursts.time_us {
        let [half, most] = [times.p50, times.p95].map(|time| time_us(Some(time)));
        caption += &format!(", half of them within {half} of the request, 95 % within {most}");
    }
    Some(("Bursts", caption + "."))
}

fn draw_waterfall(objects: &[&ObjectRecord], flow: &FlowView<'_>) -> Drawing {
    let (start, end) = (flow.record.start_ns, flow.record.end_ns);
    let seconds = |time: u64| time.saturating_sub(start) as f64 / 1e9;
    let last = objects.iter().map(|object| object.completed_ns.unwrap_or(end)).max();
    let top = 8.0;
    let bottom = top + ROW * objects.len() as f64 + 4.0;
    let mut drawing = Drawing::new(bottom + 40.0, "objects over time");
    let axis = Axis::from_zero(1.02 * seconds(last.unwrap_or(end)), LEFT, RIGHT);
    drawing.axis(&axis, top, bottom, "time since the start (s)");
    for (row, object) in objects.iter().enumerate() {
        let y = top + ROW * row as f64;
        let first = object.first_byte_ns.or(object.completed_ns).unwrap_or(end);
        let done = object.completed_ns.unwrap_or(end);
        let title = timeline_text(object, start);
        let x = |time: u64| axis.at(seconds(time));
        let waiting = [x(object.requested_ns), y + 3.0, x(first), y + ROW - 1.0];
        drawing.bar("waiting", waiting, title.clone());
        if object.first_byte_ns.is_some() {
            let class = if object.completed_ns.is_some() { "arriving" } else { "cut-off" };
            drawing.bar(class, [x(first), y + 3.0, x(done), y + ROW - 1.0], title);
        }
        let name = shortened(&object.name, 18);
        drawing.words("small", "end", (LEFT - 6.0, y + ROW - 3.0), name);
    }
    drawing
}

fn timeline_text(object: &ObjectRecord, start: u64) -> String {
    let at = |time: u64| time_us(Some(time.saturating_sub(start) as f64 / 1e3));
    let then = |word: &str, time: Option<u64>| match time {
        Some(time) => format!("{word} at {}", at(time)),
        None => format!("{word}: never"),
    };
    format!(
        "{}, {}, connection {}: requested at {}, {}, {}",
        object.name,
        bytes(Some(object.size_bytes as f64)),
        object.connection,
        at(object.requested_ns),
        then("first byte", object.first_byte_ns),
        then("complete", object.completed_ns)
    )
}

pub(crate) fn shortened(name: &str, most: usize) -> String {
    if name.chars().count() <= most {
        return name.to_string();
    }
    name.chars().take(most - 1).chain(['…']).collect()
}

/// Returns the timeline of a video; `None` for a flow without one.
pub(crate) fn timeline(flow: &FlowView<'_>, summary: &FlowSummary) -> Option<Shown> {
    let video = summary.video.as_ref()?;
    let mut segments: Vec<&ObjectRecord> =
        flow.objects.iter().copied().filter(|object| object.quality.is_some()).collect();
    segments.sort_by_key(|segment| segment.number);
    segments.truncate(SEGMENTS_MAX);
    let stalls = match video.stall_us {
        Some(stall) if stall > 0.0 => format!("stalled for {}", time_us(Some(stall))),
        _ => "never stalled".to_string(),
    };
    let shares = video.quality_shares.iter().enumerate().rev().filter(|(_, share)| **share > 0.0);
    let shares: Vec<String> = shares
        .map(|(quality, share)| format!("quality {quality}: {}", percent(Some(*share))))
        .collect();
    let plural = if video.switches == Some(1.0) { "" } else { "es" };
    Some(Shown {
        half: false,
        title: format!("Video: {}", flow.record.label()),
        caption: format!(
            "Mean bitrate {}, started after {}, {stalls}, {:.0} switch{plural}; {}. Bars: \
             segments while they arrive, with their bitrate as height; orange bands: playback is \
             stalled.",
            rate(video.bitrate_bps),
            time_us(video.startup_us),
            video.switches.unwrap_or(0.0),
            shares.join(", ")
        ),
        drawing: segments
            .iter()
            .any(|segment| segment.completed_ns.is_some())
            .then(|| draw_timeline(&segments, flow)),
        empty: "No segment arrived.".to_string(),
    })
}

fn draw_timeline(segments: &[&ObjectRecord], flow: &FlowView<'_>) -> Drawing {
    let (start, end) = (flow.record.start_ns, flow.record.end_ns);
    let seconds = |time: u64| time.saturating_sub(start) as f64 / 1e9;
    let last = segments.iter().filter_map(|segment| segment.completed_ns).max().unwrap_or(end);
    let left = 60.0;
    let axis = Axis::from_zero(1.01 * seconds(last), left, RIGHT);
    let highest = segments.iter().map(|segment| segment.bitrate_bps).max().unwrap_or(0);
    let buffered = segments.iter().map(|segment| segment.buffer_ns).max().unwrap_or(0);
    let bitrate = Axis::from_zero(1.05 * highest as f64 / 1e6, 170.0, 24.0);
    let buffer = Axis::from_zero(1.05 * buffered as f64 / 1e9, 300.0, 212.0);
    let mut drawing = Drawing::new(340.0, "qualities, stalls and buffer of the video over time");
    drawing.levels(&bitrate, left, RIGHT, "bitrate of the segment (Mbit/s)");
    drawing.levels(&buffer, left, RIGHT, "media in the buffer (s)");
    drawing.axis(&axis, 24.0, 300.0, "time since the start (s)");
    let mut level = vec![(left, buffer.at(0.0))];
    let mut before = (0_u64, 0_u64);
    for segment in segments {
        let Some(done) = segment.completed_ns else { continue };
        let x = axis.at(seconds(done));
        if segment.stalled_ns > 0 {
            let from = axis.at(seconds(done.saturating_sub(segment.stalled_ns)));
            let what = if segment.number == 0 { "start-up" } else { "stall" };
            let told = format!("{what}: {}", time_us(Some(segment.stalled_ns as f64 / 1e3)));
            drawing.bar("stall", [from, 24.0, x, 300.0], told);
        }
        let top = bitrate.at(segment.bitrate_bps as f64 / 1e6);
        let from = axis.at(seconds(segment.requested_ns));
        let title = format!(
            "{}, quality {} ({}), {}",
            segment.name,
            segment.quality.unwrap_or(0),
            rate(Some(segment.bitrate_bps as f64)),
            timeline_text(segment, start)
        );
        drawing.bar("arriving", [from, top, x, 170.0], title);
        // Buffered media plays until the next segment arrives.
        let played = done.saturating_sub(before.0);
        level.push((x, buffer.at(before.1.saturating_sub(played) as f64 / 1e9)));
        level.push((x, buffer.at(segment.buffer_ns as f64 / 1e9)));
        before = (done, segment.buffer_ns);
    }
    drawing.line("curve", &level);
    drawing
}
