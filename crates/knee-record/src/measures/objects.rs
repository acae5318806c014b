//! Measures of pages, bursts and videos, computed from their objects.

use super::{Flows, NotMeasurable, because};
use crate::ObjectRecord;
use crate::view::FlowView;
use knee_scenario::Statistic;
use knee_units::statistics::Distribution;
use knee_workload::BURST;

impl Flows<'_, '_> {
    /// Page load time, seconds: from a flow's start to the arrival of its last object, mean over
    /// the flows. Infinite if an object did not arrive.
    pub(crate) fn page_load_time(&self) -> Result<f64, NotMeasurable> {
        let pages = self.with_objects("page", is_of_page)?;
        let loaded = |flow: &&FlowView<'_>| {
            let times = objects(flow, is_of_page).map(|object| object_time(flow, object));
            times.fold(0.0, f64::max)
        };
        self.unless_interrupted(mean(pages.iter().map(loaded)))
    }

    /// Returns a statistic of the object times, seconds.
    pub(crate) fn object_time(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        self.unless_interrupted(self.object_times()?.statistic(statistic))
    }

    /// Object time, seconds: from the flow's start to the arrival of an object, distribution over
    /// the objects, all with the same weight. Infinite for an object that did not arrive.
    pub(crate) fn object_times(&self) -> Result<Distribution, NotMeasurable> {
        let pages = self.with_objects("page", is_of_page)?;
        let times = pages.iter().flat_map(|flow| {
            objects(flow, is_of_page).map(|object| (object_time(flow, object), 1.0))
        });
        match Distribution::new(times.collect()) {
            Some(times) => Ok(times),
            None => because(format!("{} has no objects", self.target)),
        }
    }

    /// Returns a statistic of the burst times, seconds.
    pub(crate) fn burst_time(&self, statistic: Statistic) -> Result<f64, NotMeasurable> {
        self.unless_interrupted(self.burst_times()?.statistic(statistic))
    }

    /// Burst time, seconds: from a request to the arrival of its answer's last byte, distribution
    /// over the requests, all with the same weight. A request still open at the end of its flow
    /// does not count.
    pub(crate) fn burst_times(&self) -> Result<Distribution, NotMeasurable> {
        let flows = self.with_objects("flow of bursts", is_burst)?;
        let times = flows.iter().flat_map(|flow| {
            objects(flow, is_burst).filter_map(|row| {
                Some((row.completed_ns?.saturating_sub(row.requested_ns) as f64 / 1e9, 1.0))
            })
        });
        match Distribution::new(times.collect()) {
            Some(times) => Ok(times),
            None => because(format!("no burst of {} arrived", self.target)),
        }
    }

    /// Video bitrate, bit/s: mean over the media time of the segments that arrived.
    pub(crate) fn video_bitrate(&self) -> Result<f64, NotMeasurable> {
        let segments = self.segments()?;
        let bits: f64 = segments.iter().map(|row| 8.0 * row.size_bytes as f64).sum();
        Ok(bits / segments.iter().map(|row| media_seconds(row)).sum::<f64>())
    }

    /// Fraction of the media time that arrived in a quality, `0..=1`; zero is the lowest quality.
    pub(crate) fn video_quality_share(&self, quality: u32) -> Result<f64, NotMeasurable> {
        let segments = self.segments()?;
        let own = segments.iter().filter(|row| row.quality == Some(quality));
        // The sum of an empty iterator is -0.
        let own = own.map(|row| media_seconds(row)).sum::<f64>() + 0.0;
        Ok(own / segments.iter().map(|row| media_seconds(row)).sum::<f64>())
    }

    /// Video switches: number of segments with another quality than the previous one, mean over the
    /// flows.
    pub(crate) fn video_switches(&self) -> Result<f64, NotMeasurable> {
        let videos = self.with_objects("video", is_segment)?;
        let switches = videos.iter().map(|flow| {
            let mut arrived: Vec<_> =
                objects(flow, is_segment).filter(|row| row.completed_ns.is_some()).collect();
            arrived.sort_by_key(|row| row.number);
            let pairs = arrived.windows(2);
            pairs.filter(|pair| pair[0].quality != pair[1].quality).count() as f64
        });
        Ok(mean(switches))
    }

    /// Stall time of a video, seconds: how long playback stood still, without the start-up time;
    /// mean over the flows.
    pub(crate) fn video_stall_time(&self) -> Result<f64, NotMeasurable> {
        let videos = self.with_objects("video", is_segment)?;
        let stalled = videos.iter().map(|flow| {
            let later = objects(flow, is_segment).filter(|row| row.number > 0);
            later.map(|row| row.stalled_ns).sum::<u64>() as f64 / 1e9
        });
        Ok(mean(stalled))
    }

    /// Start-up time of a video, seconds: from the flow's start until playback begins, mean over
    /// the flows. Infinite if one never began.
    pub(crate) fn video_startup_time(&self) -> Result<f64, NotMeasurable> {
        let videos = self.with_objects("video", is_segment)?;
        let startup = videos.iter().map(|flow| {
            let first = objects(flow, is_segment).find(|row| row.number == 0);
            let first = first.filter(|row| row.completed_ns.is_some());
            first.map_or(f64::INFINITY, |row| row.stalled_ns as f64 / 1e9)
        });
        self.unless_interrupted(mean(startup))
    }

    /// Returns the segments that arrived, at least one.
    fn segments(&self) -> Result<Vec<&ObjectRecord>, NotMeasurable> {
        let videos = self.with_objects("video", is_segment)?;
        let arrived = videos.iter().flat_map(|flow| objects(flow, is_segment));
        let arrived: Vec<_> = arrived.filter(|row| row.completed_ns.is_some()).collect();
        match arrived.is_empty() {
            true => because(format!("no segment of {} arrived", self.target)),
            false => Ok(arrived),
        }
    }

    /// Returns the flows; fails unless each has such objects.
    fn with_objects(
        &self,
        what: &str,
        is_one: fn(&ObjectRecord) -> bool,
    ) -> Result<&[&FlowView<'_>], NotMeasurable> {
        match self.members.iter().find(|flow| objects(flow, is_one).next().is_none()) {
            None => Ok(&self.members),
            Some(flow) => because(format!("{} is not a {what}", flow.record.label())),
        }
    }
}

pub(crate) fn is_segment(object: &ObjectRecord) -> bool {
    object.quality.is_some()
}

pub(crate) fn is_of_page(object: &ObjectRecord) -> bool {
    object.quality.is_none() && !is_burst(object)
}

pub(crate) fn is_burst(object: &ObjectRecord) -> bool {
    object.name.strip_prefix(BURST).is_some_and(|number| number.parse() == Ok(object.number))
}

pub(super) fn objects<'v>(
    flow: &'v FlowView<'_>,
    is_one: fn(&ObjectRecord) -> bool,
) -> impl Iterator<Item = &'v ObjectRecord> {
    flow.objects.iter().copied().filter(move |object| is_one(object))
}

pub(super) fn object_time(flow: &FlowView<'_>, object: &ObjectRecord) -> f64 {
    let arrived = object.completed_ns;
    arrived.map_or(f64::INFINITY, |at| at.saturating_sub(flow.record.start_ns) as f64 / 1e9)
}

/// Media time of a segment: its size over its bitrate.
fn media_seconds(segment: &ObjectRecord) -> f64 {
    8.0 * segment.size_bytes as f64 / (segment.bitrate_bps as f64).max(1.0)
}

fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len() as f64;
    values.sum::<f64>() / count
}
