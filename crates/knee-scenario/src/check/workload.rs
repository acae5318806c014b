//! What applications do.

use super::in_range;
use super::inputs::Inputs;
use super::links::RATE_MIN;
use crate::file::{
    DashFile, HttpWord, LadderFile, LadderWord, MixFile, PageFile, RuleWord, SizesFile, SizesTable,
    WorkloadFile,
};
use crate::read::{At, Entry};
use crate::source::Reading;
use crate::tree::Span;
use knee_units::{Bytes, Rate, Time};
use knee_workload::{Dash, Http, Mix, Page, Rule, Sizes, Workload};

const SIZE_MIN: Bytes = Bytes::new(1);
const SIZE_MAX: Bytes = Bytes::new(1_000_000_000_000_000);
const CONNECTIONS_MAX: u64 = 1_000;
const QUALITIES_MAX: usize = 100;
const QUALITY_RATE_MAX: Rate = Rate::from_bits_per_second(1_000_000_000_000);
const MEDIA_MAX: Time = Time::from_secs(24 * 3600);
/// Transfers that a group of flows may be expected to start: what a run of
/// some minutes can still simulate.
const ARRIVALS_MAX: f64 = 10_000_000.0;

/// What a workload must fit into.
pub(super) struct Room {
    /// Where a problem of the whole workload is shown.
    pub span: Span,
    /// Time from the start of the group's first flow until its last has to
    /// stop.
    pub life: Time,
    /// Flows with this workload.
    pub flows: u64,
}

/// None: something is wrong with it.
pub(super) fn check(
    entry: &mut Entry<WorkloadFile>,
    room: &Room,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Workload> {
    entry.fill(WorkloadFile::Bulk);
    let Entry::Given(at) = entry else { return None };
    match &mut at.value {
        WorkloadFile::Bulk => Some(Workload::Bulk),
        WorkloadFile::File(bytes) => {
            let size = Entry::Given(At { value: *bytes, span: at.span });
            in_range(&size, "the file", SIZE_MIN, SIZE_MAX, reading);
            Some(Workload::File(bytes.get()))
        }
        WorkloadFile::Page(file) => page(file, inputs, reading).map(Workload::Page),
        WorkloadFile::Dash(file) => dash(file, reading).map(Workload::Dash),
        WorkloadFile::Mix(file) => mix(file, room, inputs, reading).map(Workload::Mix),
    }
}

fn page(file: &mut PageFile, inputs: &mut Inputs<'_>, reading: &mut Reading<'_>) -> Option<Page> {
    let http = http(file, reading);
    let objects = match file.objects.at().cloned() {
        Some(name) => {
            let objects = inputs.page(&name, reading)?;
            file.objects = Entry::new(inputs.resolved(&name.value));
            objects
        }
        None => knee_workload::default_page(),
    };
    Some(Page { objects, http })
}

fn http(file: &mut PageFile, reading: &mut Reading<'_>) -> Http {
    in_range(&file.connections, "the number of connections", 1, CONNECTIONS_MAX, reading);
    match file.http.fill(HttpWord::Version1) {
        HttpWord::Version1 => {
            let connections = file.connections.fill(6).min(CONNECTIONS_MAX);
            Http::Version1 { connections: connections as u32 }
        }
        HttpWord::Multiplexed => {
            if let Some(span) = file.connections.span() {
                let message = "a multiplexed page has one connection";
                reading.problem(span, message, "remove connections, or write http = \"1.1\"");
            }
            Http::Multiplexed
        }
    }
}

fn dash(file: &mut DashFile, reading: &mut Reading<'_>) -> Option<Dash> {
    let (short, minute) = (Time::from_millis(100), Time::from_secs(60));
    in_range(&file.segment, "a segment", short, minute, reading);
    let segment = file.segment.fill(Time::from_secs(4));
    in_range(&file.media, "the media", segment, MEDIA_MAX, reading);
    in_range(&file.buffer, "the buffer", segment, MEDIA_MAX, reading);
    let ladder_bps = ladder(&mut file.ladder, reading);
    let rule = match file.rule.fill(RuleWord::Dynamic) {
        RuleWord::Throughput => Rule::Throughput,
        RuleWord::Bola => Rule::Bola,
        RuleWord::Dynamic => Rule::Dynamic,
    };
    let media = file.media.fill(Time::from_secs(120).max(segment));
    let buffer = file.buffer.fill(Time::from_secs(18).max(segment));
    Some(Dash { ladder_bps: ladder_bps?, segment, media, buffer, rule })
}

/// Bitrates, which are written out.
fn ladder(entry: &mut Entry<LadderFile>, reading: &mut Reading<'_>) -> Option<Vec<u64>> {
    let span = entry.span().unwrap_or_default();
    let rates = match entry.fill(LadderFile::Word(LadderWord::Measured)) {
        LadderFile::Rates(rates) => rates,
        LadderFile::Word(word) => {
            let known = match word {
                LadderWord::Study => knee_workload::ladder_of_study(),
                LadderWord::Measured => knee_workload::ladder_measured(),
                LadderWord::BeyondOneLink => knee_workload::ladder_beyond_one_link(),
            };
            let rates = known.into_iter().map(Rate::from_bits_per_second);
            rates.map(|value| At { value, span }).collect()
        }
    };
    if entry.is_broken() {
        return None;
    }
    if rates.is_empty() || rates.len() > QUALITIES_MAX {
        let message = format!("a ladder has 1 to {QUALITIES_MAX} bitrates, not {}", rates.len());
        reading.problem(span, message, "write ladder = [\"400 kbit/s\", \"1300 kbit/s\"]");
        return None;
    }
    for rate in &rates {
        let rate = Entry::Given(rate.clone());
        in_range(&rate, "a bitrate", RATE_MIN, QUALITY_RATE_MAX, reading);
    }
    for pair in rates.windows(2) {
        if pair[1].value <= pair[0].value {
            let message =
                format!("bitrates must ascend, {} follows {}", pair[1].value, pair[0].value);
            reading.problem(pair[1].span, message, "write the lowest bitrate first");
        }
    }
    let ladder = rates.iter().map(|rate| rate.value.as_bits_per_second()).collect();
    *entry = Entry::new(LadderFile::Rates(rates));
    Some(ladder)
}

fn mix(
    file: &mut MixFile,
    room: &Room,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Mix> {
    in_range(&file.count, "the number of arrivals", 1, i64::MAX as u64, reading);
    let shortest = Time::from_nanos(1);
    // A longer one would bring less than one arrival.
    let entry = &file.arrival_interval.0;
    let possible = in_range(entry, "the arrival interval", shortest, room.life, reading);
    let count = file.count.get().copied();
    let sizes = match &mut file.sizes.0 {
        Entry::Given(at) => sizes(at, inputs, reading),
        _ => None,
    };
    let arrivals_per_second = 1.0 / file.arrival_interval.get()?.as_secs_f64();
    let each = arrivals_per_second * room.life.as_secs_f64();
    let expected = count.map_or(each, |count| each.min(count as f64)) * room.flows as f64;
    if possible && expected > ARRIVALS_MAX {
        let message = format!("about {expected:.0} transfers would arrive, at most 10000000 may");
        let help = "write a longer arrival_interval, or a smaller count";
        reading.problem(room.span, message, help);
    }
    let mix =
        Mix { arrivals_per_second, count, sizes: sizes?, process: file.process.get().cloned() };
    if let Some(name) = file.process.at() {
        inputs.share(name, &mix, reading);
    }
    Some(mix)
}

fn sizes(
    at: &mut At<SizesFile>,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Sizes> {
    match &mut at.value {
        SizesFile::Fixed(size) => {
            let entry = Entry::Given(At { value: *size, span: at.span });
            in_range(&entry, "a size", SIZE_MIN, SIZE_MAX, reading);
            Some(Sizes::Fixed(size.get()))
        }
        SizesFile::Table(table) => distribution(at.span, table, inputs, reading),
    }
}

/// Which distribution it is, is told by the keys that are there.
fn distribution(
    span: Span,
    table: &mut SizesTable,
    inputs: &mut Inputs<'_>,
    reading: &mut Reading<'_>,
) -> Option<Sizes> {
    let broken = [&table.median, &table.min, &table.max].iter().any(|entry| entry.is_broken())
        || [&table.sigma, &table.shape].iter().any(|entry| entry.is_broken())
        || table.log.is_broken();
    let bytes = |entry: &Entry<Bytes>| entry.get().map(|bytes| bytes.get());
    let (median, min, max) = (bytes(&table.median), bytes(&table.min), bytes(&table.max));
    let (sigma, shape) = (table.sigma.get().copied(), table.shape.get().copied());
    match (median, sigma, min, shape, max, table.log.at().cloned()) {
        _ if broken => None,
        (Some(median), Some(sigma), None, None, Some(max), None) => {
            in_range(&table.median, "the median", SIZE_MIN, SIZE_MAX, reading);
            in_range(&table.sigma, "sigma", 0.0, 10.0, reading);
            in_range(&table.max, "the largest size", Bytes::new(median), SIZE_MAX, reading);
            Some(Sizes::LogNormal { median, sigma, max })
        }
        (None, None, Some(min), Some(shape), Some(max), None) => {
            in_range(&table.min, "the smallest size", SIZE_MIN, SIZE_MAX, reading);
            in_range(&table.shape, "the shape", 0.01, 100.0, reading);
            in_range(&table.max, "the largest size", Bytes::new(min), SIZE_MAX, reading);
            Some(Sizes::Pareto { min, shape, max })
        }
        (None, None, None, None, None, Some(log)) => {
            let sizes = inputs.sizes(&log, reading)?;
            table.log = Entry::new(inputs.resolved(&log.value));
            Some(Sizes::Empirical(sizes))
        }
        _ => {
            let help = "write { median = \"30 kB\", sigma = 2.0, max = \"1 GB\" }, or \
                        { min = \"4 kB\", shape = 1.2, max = \"1 GB\" }, or { log = \"access.csv\" }";
            reading.problem(span, "a distribution of sizes is one of three", help);
            None
        }
    }
}
