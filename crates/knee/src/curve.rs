//! `knee curve`: a path measured with constant windows, and drawn.

use crate::arguments::Curve;
use crate::failure::{Ending, Failure, cannot_write};
use crate::input::ScenarioText;
use crate::interrupt;
use crate::kernel;
use crate::run::chosen;
use crate::screen;
use crate::studies;
use crate::table::Table;
use crate::workers::{Finished, Job, run_all};
use knee_link::{Buffer, RateModel};
use knee_record::{RunView, Unit, Verdict, Window, measure};
use knee_report::{CurvePoint, curve_svg};
use knee_scenario::{Errors, Ground, Link, Measure, Override, Scenario, Statistic};
use std::fs::{self, File};
use std::io::Write;

/// Windows, in BDP up to the knee and, beyond it, in buffers above one BDP. They
/// end soon after that: where every eighth packet is lost, timeouts decide.
const BELOW: [f64; 10] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
const ABOVE: [f64; 7] = [0.1, 0.25, 0.5, 0.75, 0.95, 1.03, 1.06];
/// ... without a buffer that ends.
const UNLIMITED_BDP: f64 = 1.0;

/// The path, as its only flow sees it.
struct Path {
    bottleneck: String,
    rate_bps: f64,
    bdp_bytes: f64,
    buffer_bytes: Option<f64>,
    segment_bytes: f64,
}

/// A window on a ground.
struct Measured {
    ground: Ground,
    point: CurvePoint,
    lost: f64,
    verdict: Verdict,
}

/// Runs a scenario with one window after the other; prints a table, writes a
/// picture.
pub fn curve(arguments: &Curve) -> Result<Ending, Failure> {
    let on = chosen(&arguments.on)?;
    if !on.contains(&Ground::Sim) {
        let what = "the kernel's points are drawn over the simulator's".to_string();
        return Err(Failure::Usage(what, "write --on sim,kernel".to_string()));
    }
    if arguments.out.exists() && !arguments.force {
        let what = format!("{} exists", arguments.out.display());
        return Err(Failure::Usage(what, "name another file, or add --force".to_string()));
    }
    let text = text(arguments)?;
    let first = scenario(&text, None)?;
    let path = path(&first)?;
    let windows = windows(&path);
    let scenarios = windows.iter().map(|packets| scenario(&text, Some(*packets)));
    let scenarios: Vec<Scenario> = scenarios.collect::<Result<_, _>>()?;
    if on.contains(&Ground::Kernel) {
        kernel::check(&scenarios)?;
    }
    let jobs: Vec<Job<'_>> = on
        .iter()
        .flat_map(|ground| scenarios.iter().map(|scenario| (*ground, scenario)))
        .map(|(ground, scenario)| Job { scenario, ground, directory: None, packet_log: false })
        .collect();
    let measured = run_all(&jobs, arguments.jobs, |index, finished| {
        let window = windows[index % windows.len()] as f64 * path.segment_bytes;
        of_run(&path, &jobs[index], window, &finished)
    })?;
    if interrupt::requested() {
        return Ok(Ending::Interrupted);
    }
    let measured: Vec<Measured> = measured.into_iter().flatten().collect();
    screen::print(&table(&path, &measured))?;
    let on_ground = |ground: Ground| {
        let those = measured.iter().filter(|one| one.ground == ground);
        those.map(|one| one.point).collect()
    };
    let picture = knee_report::Curve {
        name: first.name.clone(),
        bdp_bytes: path.bdp_bytes,
        buffer_bytes: path.buffer_bytes,
        sim: on_ground(Ground::Sim),
        kernel: on_ground(Ground::Kernel),
    };
    write(arguments, &curve_svg(&picture))?;
    screen::print(&format!("\npicture  {}\n", arguments.out.display()))?;
    Ok(Ending::Done)
}

/// What is varied: the file, or the study's.
enum Text {
    File(ScenarioText),
    BuiltIn,
}

fn text(arguments: &Curve) -> Result<Text, Failure> {
    let Some(file) = &arguments.file else { return Ok(Text::BuiltIn) };
    ScenarioText::read(file).map(Text::File).map_err(|errors| Failure::Files(vec![errors]))
}

fn scenario(text: &Text, packets: Option<u64>) -> Result<Scenario, Failure> {
    let read = |set: &[Override]| -> Result<Scenario, Errors> {
        match text {
            Text::File(text) => text.scenario(set),
            Text::BuiltIn => studies::built_in_scenario("improved-bbr/fixed-window.toml", set),
        }
    };
    let wrong = |errors| Failure::Files(vec![errors]);
    let plain = read(&[]).map_err(wrong)?;
    let [flow] = &plain.flows[..] else {
        return Err(usage("has more than one flow", "leave one, with cc = { name = \"fixed\" }"));
    };
    if flow.controller.name != "fixed" {
        return Err(usage("has a flow with another controller", "write cc = { name = \"fixed\" }"));
    }
    let Some(packets) = packets else { return Ok(plain) };
    let value = format!("{{ name = \"fixed\", window = \"{packets} packets\" }}");
    read(&[Override::new(&format!("flow.{}.cc", flow.name), &value)]).map_err(wrong)
}

fn usage(problem: &str, advice: &str) -> Failure {
    Failure::Usage(format!("the scenario {problem}"), advice.to_string())
}

fn path(scenario: &Scenario) -> Result<Path, Failure> {
    let flow = &scenario.flows[0];
    let [at] = flow.paths[..] else {
        return Err(usage("has a flow over several paths", "give it one"));
    };
    let Some((link, rate_bps)) = bottleneck(scenario, at) else {
        return Err(usage("has no link with a constant rate", "add rate = \"10 Mbit/s\""));
    };
    let segment_bytes = f64::from(flow.transport.mss + flow.transport.header);
    let rtt = scenario.one_way_delay(at) + scenario.way_back(at);
    let bdp_bytes = rate_bps / 8.0 * rtt.as_secs_f64();
    let buffer_bytes = match link.config.buffer {
        Buffer::Unlimited => None,
        Buffer::Bytes(bytes) => Some(bytes as f64),
        Buffer::Packets(packets) => Some(packets as f64 * segment_bytes),
    };
    let bottleneck = link.name.clone();
    Ok(Path { bottleneck, rate_bps, bdp_bytes, buffer_bytes, segment_bytes })
}

/// The slowest link of a path with its rate; none where a rate changes, which
/// no single curve shows.
fn bottleneck(scenario: &Scenario, path: usize) -> Option<(&Link, f64)> {
    let links = scenario.paths[path].forward.iter().map(|link| &scenario.links[*link]);
    let mut slowest: Option<(&Link, f64)> = None;
    for link in links {
        let bps = match &link.config.rate {
            RateModel::Unlimited => continue,
            RateModel::Constant(rate) => rate.as_bits_per_second() as f64,
            RateModel::Steps(_) | RateModel::Trace(_) => return None,
        };
        if slowest.is_none_or(|(_, least)| bps < least) {
            slowest = Some((link, bps));
        }
    }
    slowest
}

/// In packets, each once.
fn windows(path: &Path) -> Vec<u64> {
    let above = path.buffer_bytes.unwrap_or(UNLIMITED_BDP * path.bdp_bytes);
    let below = BELOW.iter().map(|times| times * path.bdp_bytes);
    let bytes = below.chain(ABOVE.iter().map(|times| path.bdp_bytes + times * above));
    let packets = bytes.map(|bytes| (bytes / path.segment_bytes).round() as u64);
    let mut packets: Vec<u64> = packets.filter(|packets| *packets > 0).collect();
    packets.dedup();
    packets
}

fn of_run(
    path: &Path,
    job: &Job<'_>,
    window_bytes: f64,
    finished: &Finished,
) -> Result<Measured, Failure> {
    let view = RunView::new(&finished.records, job.scenario.warmup);
    let value = |what: Measure, of: &str| {
        measure(&view, &what, of, Window::default()).map_err(|reason| {
            let what = format!("a window of {window_bytes} B gives nothing: {reason}");
            Failure::Usage(what, "write a longer duration".to_string())
        })
    };
    let delivered_bps = value(Measure::Utilisation, &path.bottleneck)? * path.rate_bps;
    let rtt_s = value(Measure::SmoothedRtt(Statistic::P50), "*")?;
    let point = CurvePoint { window_bytes, delivered_bps, rtt_s };
    let lost = value(Measure::RetransmitRatio, "*")?;
    Ok(Measured { ground: job.ground, point, lost, verdict: finished.summary.verdict })
}

/// Point by point, with the difference between the grounds.
fn table(path: &Path, measured: &[Measured]) -> String {
    let (sim, real): (Vec<_>, Vec<_>) = measured.iter().partition(|one| one.ground == Ground::Sim);
    let mut heads = vec![">window", ">BDP", ">rate", ">RTT", ">sent again"];
    if !real.is_empty() {
        heads.extend([">kernel", ">difference", ">kernel RTT", ">difference", ">sent again"]);
        heads.push("kernel’s run");
    }
    let mut table = Table::new(&heads);
    let (rate, time) = (|v| Unit::BitsPerSecond.show(v), |v| Unit::Seconds.show(v));
    let apart = |a: f64, b: f64| format!("{:+.1} %", (a / b - 1.0) * 100.0);
    for one in sim {
        let point = one.point;
        let mut row = vec![
            format!("{:.0}", point.window_bytes / path.segment_bytes),
            format!("{:.2}", point.window_bytes / path.bdp_bytes),
            rate(point.delivered_bps),
            time(point.rtt_s),
            Unit::Fraction.show(one.lost),
        ];
        let same = |other: &&&Measured| other.point.window_bytes == point.window_bytes;
        if let Some(other) = real.iter().find(same) {
            row.extend([
                rate(other.point.delivered_bps),
                apart(point.delivered_bps, other.point.delivered_bps),
                time(other.point.rtt_s),
                apart(point.rtt_s, other.point.rtt_s),
                Unit::Fraction.show(other.lost),
                other.verdict.to_string(),
            ]);
        }
        table.row(row);
    }
    table.text()
}

fn write(arguments: &Curve, picture: &str) -> Result<(), Failure> {
    let path = &arguments.out;
    if arguments.force {
        // Not over what is there: it could be a link to something else.
        let _ = fs::remove_file(path);
    }
    File::create_new(path)
        .and_then(|mut file| file.write_all(picture.as_bytes()))
        .map_err(|error| cannot_write(path, &error))
}
