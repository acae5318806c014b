//! The curve of a path: RTT and delivery rate against bytes in flight, with its three regions
//! (Cardwell et al., ACM Queue 14(5), 2016, figure 1; Kleinrock, ICC 1979), as a separate picture.

use crate::drawing::{Axis, Drawing, WIDTH};

/// Height of the picture, in the units of [`Drawing`].
const HEIGHT: f64 = 500.0;
const LEFT: f64 = 58.0;
const RIGHT: f64 = 748.0;
/// Top and bottom of the frame of the RTT, and of the frame of the delivery rate.
const RTT: (f64, f64) = (64.0, 230.0);
const RATE: (f64, f64) = (268.0, 444.0);
/// Distance between the names of grounds.
const LEGEND_STEP: f64 = 100.0;

/// Result of one window on a ground.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Window in IP bytes.
    pub window_bytes: f64,
    /// Rate at which data left the bottleneck, IP bit/s.
    pub delivered_bps: f64,
    /// Median of the smoothed RTT, seconds.
    pub rtt_s: f64,
}

/// The results of a path.
#[derive(Clone, Debug)]
pub struct Curve {
    /// Title of the scenario.
    pub name: String,
    /// Bandwidth-delay product: rate times RTT over empty queues, IP bytes.
    pub bdp_bytes: f64,
    /// Buffer of the bottleneck, IP bytes; `None` if unlimited.
    pub buffer_bytes: Option<f64>,
    /// Simulator's points, ordered by window; drawn as a line.
    pub sim: Vec<CurvePoint>,
    /// The other grounds, if their runs were made; drawn as dots.
    pub others: Vec<CurveGround>,
}

/// The results of a path on a ground.
#[derive(Clone, Debug)]
pub struct CurveGround {
    /// Name of the ground for the legend.
    pub title: String,
    /// Its points, ordered by window.
    pub points: Vec<CurvePoint>,
}

/// Classes of the dots of the first ground and of the second.
const DOTS: [&str; 2] = ["kernel", "k2"];

/// Returns the picture as an SVG file.
pub fn curve_svg(curve: &Curve) -> String {
    let label = "round-trip time and delivery rate against bytes in flight";
    let mut drawing = Drawing::new(HEIGHT, label);
    let all = || curve.sim.iter().chain(curve.others.iter().flat_map(|other| &other.points));
    let largest = |value: fn(&CurvePoint) -> f64| all().map(value).fold(0.0, f64::max);
    // Leave room for the third region, however little of it was measured.
    let cliff = curve.buffer_bytes.map_or(0.0, |buffer| curve.bdp_bytes + buffer);
    let right_end = (1.02 * largest(|point| point.window_bytes)).max(1.18 * cliff);
    let x = Axis::from_zero(right_end / 1e3, LEFT, RIGHT);
    drawing.words("title", "start", (4.0, 18.0), &curve.name);
    regions(&mut drawing, curve, &x);
    let rtt_ms = |point: &CurvePoint| point.rtt_s * 1e3;
    let mbit = |point: &CurvePoint| point.delivered_bps / 1e6;
    let rtt = Axis::from_zero(1.15 * largest(|point| point.rtt_s) * 1e3, RTT.1, RTT.0);
    let rate = Axis::from_zero(1.15 * largest(|point| point.delivered_bps) / 1e6, RATE.1, RATE.0);
    drawing.levels(&rtt, LEFT, RIGHT, "round-trip time (ms)");
    drawing.levels(&rate, LEFT, RIGHT, "delivery rate (Mbit/s)");
    drawing.axis(&x, RATE.0, RATE.1, "bytes in flight: the window (kB)");
    for (frame, value) in [(&rtt, &rtt_ms as &dyn Fn(&CurvePoint) -> f64), (&rate, &mbit)] {
        let place = |point: &CurvePoint| (x.at(point.window_bytes / 1e3), frame.at(value(point)));
        drawing.line("sim", &curve.sim.iter().map(place).collect::<Vec<_>>());
        for (other, class) in curve.others.iter().zip(DOTS.iter().cycle()) {
            for point in &other.points {
                let (x, y) = place(point);
                drawing.dot(*class, x, y, title(point));
            }
        }
    }
    legend(&mut drawing, curve);
    drawing.file(WIDTH)
}

fn title(point: &CurvePoint) -> String {
    let CurvePoint { window_bytes, delivered_bps, rtt_s } = point;
    format!(
        "{:.1} kB: {:.2} Mbit/s, {:.1} ms",
        window_bytes / 1e3,
        delivered_bps / 1e6,
        rtt_s * 1e3
    )
}

/// Draws and names the regions: below one BDP, up to BDP plus buffer, beyond.
fn regions(drawing: &mut Drawing, curve: &Curve, x: &Axis) {
    let knee = x.at(curve.bdp_bytes / 1e3);
    let cliff = curve.buffer_bytes.map_or(RIGHT, |buffer| x.at((curve.bdp_bytes + buffer) / 1e3));
    let all = [
        ("app", LEFT, knee, "rate grows, RTT flat"),
        ("bandwidth", knee, cliff, "rate flat, queue grows"),
        ("buffer", cliff, RIGHT, "packets lost"),
    ];
    for (class, from, to, words) in all.into_iter().filter(|(_, from, to, _)| to > from) {
        for (top, bottom) in [RTT, RATE] {
            drawing.bar(class, [from, top, to, bottom], words.to_string());
        }
        drawing.words("quiet", "middle", ((from + to) / 2.0, RTT.0 + 14.0), words);
    }
    let mut edge = |at: f64, words: &str| {
        for (top, bottom) in [RTT, RATE] {
            drawing.line("edge", &[(at, top), (at, bottom)]);
        }
        drawing.words("quiet", "middle", (at, RTT.1 + 16.0), words);
    };
    edge(knee, "one BDP: the knee");
    if curve.buffer_bytes.is_some() && cliff < RIGHT {
        edge(cliff, "BDP and buffer");
    }
}

fn legend(drawing: &mut Drawing, curve: &Curve) {
    let y = 36.0;
    drawing.line("sim", &[(LEFT + 170.0, y - 4.0), (LEFT + 194.0, y - 4.0)]);
    drawing.words("quiet", "start", (LEFT + 200.0, y), "simulator");
    let mut x = LEFT + 292.0;
    for (other, class) in curve.others.iter().zip(DOTS.iter().cycle()) {
        drawing.dot(*class, x, y - 4.0, String::new());
        drawing.words("quiet", "start", (x + 10.0, y), &other.title);
        x += LEGEND_STEP;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The knee is at one BDP on the axis, whatever is measured.
    #[test]
    fn edges_stand_at_bdp_and_buffer() {
        let point =
            |kb: f64| CurvePoint { window_bytes: kb * 1e3, delivered_bps: 1e6, rtt_s: 0.06 };
        let curve = Curve {
            name: "a <path>".to_string(),
            bdp_bytes: 75e3,
            buffer_bytes: Some(75e3),
            sim: vec![point(10.0), point(200.0)],
            others: vec![
                CurveGround { title: "Linux TCP".to_string(), points: vec![point(100.0)] },
                CurveGround { title: "QUIC".to_string(), points: vec![point(150.0)] },
            ],
        };
        let svg = curve_svg(&curve);
        let at = |kb: f64| LEFT + (RIGHT - LEFT) * kb / (200.0 * 1.02);
        for kb in [75.0, 150.0] {
            let line = format!("class=\"edge\" points=\"{:.1},64", at(kb));
            assert!(svg.contains(&line), "{line} is not in {svg}");
        }
        assert!(svg.contains("a &lt;path&gt;"), "titles are escaped");
        for (class, title) in [("kernel", "Linux TCP"), ("k2", "QUIC")] {
            let dots = svg.matches(&format!("<circle class=\"{class}\"")).count();
            assert_eq!(dots, 3, "two frames and a legend");
            assert!(svg.contains(title), "{title}");
        }
        let without = curve_svg(&Curve { others: Vec::new(), ..curve });
        assert!(!without.contains("Linux TCP"));
    }
}
