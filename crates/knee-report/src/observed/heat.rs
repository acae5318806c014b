//! Connections or transfers by size and time: one map of all, and one for each hour of the day, or for
//! each of two sets.

use super::Picture;
use crate::drawing::{Axis, Drawing, WIDTH};
use knee_present::words::{bytes, count, time_us};
use knee_record::{OBSERVED_BINS, ObservedBin, Unit};
use minijinja::Value;
use std::collections::BTreeMap;

const LEFT: f64 = 78.0;
const RIGHT: f64 = WIDTH - 26.0;
const TOP: f64 = 24.0;
const BOTTOM: f64 = 330.0;
/// Number of shades: `h1` to `h8` of the style sheet.
const SHADES: f64 = 8.0;
/// Width of a bin in an hour's map, in bins of the large map.
const COARSE: i32 = 2;

/// Number of connections by bins of size and time.
type Bins = BTreeMap<(i32, i32), u64>;

/// What all maps share.
struct Frame {
    sizes: Axis,
    times: Axis,
}

/// Words of a map.
#[derive(Clone, Copy)]
pub(crate) struct Counted {
    /// What is counted, such as connections.
    pub what: &'static str,
    /// Title of the axis of sizes.
    pub sizes: &'static str,
    /// What follows their number.
    pub which: &'static str,
}

/// Draws the picture, or returns `None` if nothing has a size and a time.
pub(crate) fn picture(heat: &[ObservedBin], counted: Counted) -> Option<Picture> {
    let Counted { what, sizes, which } = counted;
    let bins = bins(heat, None, 1);
    let frame = Frame::around(&bins)?;
    let all: u64 = bins.values().sum();
    let most = bins.values().max().copied().unwrap_or(1);
    let mut drawing = Drawing::new(BOTTOM + 42.0, &format!("{what} by size and time"));
    frame.fill(&mut drawing, &bins, most, 1, true);
    drawing.levels(&frame.times, LEFT, RIGHT, "time");
    drawing.axis(&frame.sizes, TOP, BOTTOM, sizes);
    frame.equal_throughput(&mut drawing, true);
    Some(Picture {
        title: "Size and time".to_string(),
        note: format!(
            "{} {what}{which}. Darker means more {what}, on a logarithmic scale from one to {}. \
             Dashed: equal throughput.",
            count(all),
            count(most)
        ),
        drawing: Value::from_safe_string(drawing.inline()),
    })
}

/// Returns a map for each hour with connections, all with the axes of the large map and the same
/// shades. Empty if there is only one such hour.
pub(crate) fn hours(heat: &[ObservedBin], what: &str) -> Vec<Picture> {
    let map = |hour: u32| {
        let title = format!("{hour:02} to {:02}", (hour + 1) % 24);
        let label = format!("{what} from {title} UTC");
        (title, label, bins(heat, Some(hour), COARSE))
    };
    maps(heat, (0..24).map(map))
}

/// Returns a map for each of several sets, all with the axes of the map of all and the same shades.
pub(crate) fn sets(
    heat: &[ObservedBin],
    sets: &[(&str, &[ObservedBin])],
    what: &str,
) -> Vec<Picture> {
    let map = |(name, set): &(&str, &[ObservedBin])| {
        (name.to_string(), format!("{what} {name}"), bins(set, None, COARSE))
    };
    maps(heat, sets.iter().map(map))
}

/// Draws maps, each with its title and its label; none if fewer than two have something.
fn maps(all: &[ObservedBin], maps: impl Iterator<Item = (String, String, Bins)>) -> Vec<Picture> {
    let Some(frame) = Frame::around(&bins(all, None, 1)) else { return Vec::new() };
    let maps: Vec<(String, String, Bins)> = maps.filter(|(_, _, bins)| !bins.is_empty()).collect();
    if maps.len() < 2 {
        return Vec::new();
    }
    let most = maps.iter().flat_map(|(_, _, bins)| bins.values()).max().copied().unwrap_or(1);
    let picture = |(title, label, bins): &(String, String, Bins)| {
        let mut drawing = Drawing::new(BOTTOM + 8.0, label);
        frame.fill(&mut drawing, bins, most, COARSE, false);
        let corners = [(LEFT, TOP), (LEFT, BOTTOM), (RIGHT, BOTTOM), (RIGHT, TOP), (LEFT, TOP)];
        drawing.line("", &corners);
        frame.equal_throughput(&mut drawing, false);
        Picture {
            title: title.clone(),
            note: count(bins.values().sum()),
            drawing: Value::from_safe_string(drawing.inline()),
        }
    };
    maps.iter().map(picture).collect()
}

/// Returns the bins of one hour, or of all; `coarse` bins in each direction are merged.
fn bins(heat: &[ObservedBin], hour: Option<u32>, coarse: i32) -> Bins {
    let mut bins = Bins::new();
    for bin in heat.iter().filter(|bin| hour.is_none_or(|hour| bin.hour == hour)) {
        let at = [bin.size_bin, bin.time_bin].map(|at| at.div_euclid(coarse) * coarse);
        *bins.entry((at[0], at[1])).or_default() += bin.connections;
    }
    bins
}

fn value(bin: i32) -> f64 {
    10f64.powf(f64::from(bin) / OBSERVED_BINS)
}

/// Returns an axis of whole decades around some bins.
fn decades(
    bins: impl Iterator<Item = i32> + Clone,
    [low_at, high_at]: [f64; 2],
    names: fn(f64) -> String,
) -> Option<Axis> {
    let decade = |bin: i32| (f64::from(bin) / OBSERVED_BINS).floor() as i32;
    let (least, most) = (bins.clone().min()?, bins.max()?);
    let (low, high) = (10f64.powi(decade(least)), 10f64.powi(decade(most) + 1));
    Some(Axis { low, high, low_at, high_at, decades: true, names })
}

impl Frame {
    fn around(bins: &Bins) -> Option<Frame> {
        Some(Frame {
            sizes: decades(bins.keys().map(|at| at.0), [LEFT, RIGHT], |size| bytes(Some(size)))?,
            times: decades(bins.keys().map(|at| at.1), [BOTTOM, TOP], |s| time_us(Some(s * 1e6)))?,
        })
    }

    fn fill(&self, drawing: &mut Drawing, bins: &Bins, most: u64, coarse: i32, telling: bool) {
        for ((size, time), connections) in bins {
            let (from, to) = (value(*size), value(size + coarse));
            let (least, longest) = (value(*time), value(time + coarse));
            let corners = [
                self.sizes.at(from),
                self.times.at(longest),
                self.sizes.at(to),
                self.times.at(least),
            ];
            let told = match telling {
                false => String::new(),
                true => format!(
                    "{} of {} to {} in {} to {}",
                    count(*connections),
                    bytes(Some(from)),
                    bytes(Some(to)),
                    time_us(Some(least * 1e6)),
                    time_us(Some(longest * 1e6))
                ),
            };
            drawing.bar(shade(*connections, most), corners, told);
        }
    }

    /// Adds lines of 100 kbit/s, 1 Mbit/s and so on, as far as they cross the frame.
    fn equal_throughput(&self, drawing: &mut Drawing, named: bool) {
        let Frame { sizes, times } = self;
        for power in 4..=11 {
            let bps = 10f64.powi(power);
            let from = sizes.low.max(times.low * bps / 8.0);
            let to = sizes.high.min(times.high * bps / 8.0);
            if to <= from * 3.0 {
                continue;
            }
            let point = |size: f64| (sizes.at(size), times.at(8.0 * size / bps));
            drawing.line("edge", &[point(from), point(to)]);
            if named {
                let (x, y) = point(to);
                let text = Unit::BitsPerSecond.show(bps);
                drawing.words("quiet", "end", (x - 4.0, y + 14.0), text);
            }
        }
    }
}

/// Returns the class of a field: by the logarithm, from one to the largest count of any field.
fn shade(connections: u64, most: u64) -> &'static str {
    const CLASSES: [&str; SHADES as usize] = ["h1", "h2", "h3", "h4", "h5", "h6", "h7", "h8"];
    let part = if most > 1 { (connections as f64).ln() / (most as f64).ln() } else { 1.0 };
    CLASSES[((part * SHADES) as usize).min(CLASSES.len() - 1)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_palest_is_one_and_the_darkest_the_most() {
        assert_eq!([1, 10, 100, 1000].map(|count| shade(count, 1000)), ["h1", "h3", "h6", "h8"]);
        assert_eq!(shade(1, 1), "h8");
    }

    /// The fields of the hours add up to those of the large map.
    #[test]
    fn hours_add_up() {
        let bin = |hour, size_bin, time_bin, connections| ObservedBin {
            hour,
            size_bin,
            time_bin,
            connections,
        };
        let heat = vec![bin(3, 40, -9, 2), bin(3, 41, -10, 3), bin(5, 40, -9, 7)];
        assert_eq!(bins(&heat, None, 1), Bins::from([((40, -9), 9), ((41, -10), 3)]));
        assert_eq!(bins(&heat, Some(3), 2), Bins::from([((40, -10), 5)]));
        assert_eq!(hours(&heat, "connections").len(), 2);
    }
}
