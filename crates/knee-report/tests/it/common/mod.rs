//! Records that look like BBR flows on one bottleneck: a fluid model, detailed enough to draw
//! start-up, probing, a standing queue and PROBE_RTT.

// Each test binary uses only part of this module.
pub mod dom;

use knee_record::{FlowRecord, FlowSample, LinkSample, Rates, Records, Summary};
use knee_scenario::{Claim, Embedded, Measure, Scenario, Source};
use knee_units::Time;

const MILLI: u64 = 1_000_000;
const SEGMENT: f64 = 1448.0;
const HEADER_OVERHEAD: f64 = 1500.0 / 1448.0;
/// BBR's gains of PROBE_BW, one per minimum RTT.
const GAINS: [f64; 8] = [1.25, 0.75, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0];

/// Parameters of the model.
#[derive(Clone, Copy)]
pub struct Dumbbell {
    pub flows: u32,
    pub seconds: u64,
    pub sample_ms: u64,
    pub rate_bps: f64,
    pub base_ms: f64,
    pub buffer_bytes: f64,
}

impl Default for Dumbbell {
    fn default() -> Dumbbell {
        Dumbbell {
            flows: 2,
            seconds: 60,
            sample_ms: 20,
            rate_bps: 10e6,
            base_ms: 60.0,
            buffer_bytes: 600_000.0,
        }
    }
}

struct Flow {
    start_ms: u64,
    bandwidth: f64,
    /// (Time in ms, delivery rate in bytes per ms), for the filter.
    rates: Vec<(u64, f64)>,
    min_rtt_ms: f64,
    min_rtt_at: u64,
    probe_rtt_until: Option<u64>,
    in_startup: bool,
    in_drain: bool,
    delivered: f64,
    sent: f64,
    again: f64,
    lost: f64,
    queued: f64,
    in_flight: f64,
    rate: f64,
    rtt_ms: (f64, f64, f64),
}

impl Flow {
    fn new(index: u32) -> Flow {
        Flow {
            start_ms: 20 * u64::from(index),
            bandwidth: 10.0 * SEGMENT / 60.0,
            rates: Vec::new(),
            min_rtt_ms: f64::INFINITY,
            min_rtt_at: 0,
            probe_rtt_until: None,
            in_startup: true,
            in_drain: false,
            delivered: 0.0,
            sent: 0.0,
            again: 0.0,
            lost: 0.0,
            queued: 0.0,
            in_flight: 0.0,
            rate: 0.0,
            rtt_ms: (0.0, f64::INFINITY, 0.0),
        }
    }

    fn phase(&self, now: u64) -> (&'static str, f64) {
        if self.probe_rtt_until.is_some() {
            return ("probe_rtt", 1.0);
        }
        if self.in_startup {
            return ("startup", 2.885);
        }
        if self.in_drain {
            return ("drain", 1.0 / 2.885);
        }
        let step = ((now - self.start_ms) as f64 / self.min_rtt_ms) as usize;
        let gain = GAINS[(step + self.start_ms as usize / 100) % GAINS.len()];
        let name = match gain {
            gain if gain > 1.0 => "probe_bw_up",
            gain if gain < 1.0 => "probe_bw_down",
            _ => "probe_bw_cruise",
        };
        (name, gain)
    }

    fn window(&self) -> f64 {
        if self.probe_rtt_until.is_some() {
            return 4.0 * SEGMENT;
        }
        let gain = if self.in_startup { 2.885 } else { 2.0 };
        (gain * self.bandwidth * self.min_rtt_ms.min(1000.0)).max(10.0 * SEGMENT)
    }
}

/// Runs the model.
pub fn dumbbell(model: Dumbbell) -> Records {
    let capacity = model.rate_bps / 8000.0 / HEADER_OVERHEAD;
    let mut flows: Vec<Flow> = (0..model.flows).map(Flow::new).collect();
    let mut records = Records {
        link_names: vec!["bottleneck".to_string()],
        rates: rates(&[model.rate_bps], &format!("count = {}\npath = \"p0\"", model.flows)),
        ..Records::default()
    };
    let (mut queue, mut departed, mut dropped, mut entered) = (0.0f64, 0.0, 0.0, 0.0);
    for now in 0..=model.seconds * 1000 {
        let rtt = model.base_ms + queue / capacity;
        let rates: Vec<f64> = flows.iter().map(|flow| sending_rate(flow, now)).collect();
        let offered: f64 = rates.iter().sum();
        let waiting = queue + offered;
        let leaving = waiting.min(capacity);
        let overflow = (waiting - leaving - model.buffer_bytes).max(0.0);
        queue = waiting - leaving - overflow;
        departed += leaving * HEADER_OVERHEAD;
        entered += offered / SEGMENT;
        dropped += overflow / SEGMENT;
        for (flow, rate) in flows.iter_mut().zip(rates) {
            if now >= flow.start_ms {
                // First in, first out: each flow leaves in proportion to its queue.
                let part = (flow.queued + rate) / waiting.max(1.0);
                step(flow, now, rtt, [rate, part * leaving, part * overflow]);
                flow.in_flight = flow.queued + part * leaving * model.base_ms;
            }
        }
        if now > 0 && now.is_multiple_of(model.sample_ms) {
            let time_ns = now * MILLI;
            let rows = flows.iter().enumerate().filter(|(_, flow)| now > flow.start_ms);
            let rows = rows.map(|(index, flow)| sample(index as u32, flow, time_ns, now, rtt));
            records.samples.extend(rows);
            records.links.push(LinkSample {
                link: 0,
                time_ns,
                queue_bytes: (queue * HEADER_OVERHEAD) as u64,
                queue_packets: (queue / SEGMENT) as u64,
                queue_delay_ns: (queue / capacity * 1e6) as u64,
                departed_bytes: departed as u64,
                used_bytes: departed as u64,
                capacity_bytes: (now as f64 * model.rate_bps / 8000.0) as u64,
                entered_packets: entered as u64,
                dropped_packets: dropped as u64,
                ..LinkSample::default()
            });
        }
    }
    records.end_ns = model.seconds * 1000 * MILLI;
    let rows = flows.iter().enumerate();
    records.flows = rows.map(|(index, flow)| record(index as u32, flow, model)).collect();
    records
}

fn sending_rate(flow: &Flow, now: u64) -> f64 {
    if now < flow.start_ms {
        return 0.0;
    }
    let (_, gain) = flow.phase(now);
    let paced = gain * flow.bandwidth;
    match flow.window() - flow.in_flight {
        room if room > 0.0 => paced,
        // A full window: send as much as is acknowledged, or less to shrink.
        room if room > -SEGMENT => paced.min(flow.rate),
        _ => 0.2 * flow.rate.min(paced),
    }
}

fn step(flow: &mut Flow, now: u64, rtt: f64, [sent, delivered, lost]: [f64; 3]) {
    flow.sent += sent;
    flow.again += lost;
    flow.lost += lost;
    flow.delivered += delivered;
    flow.queued += sent - delivered - lost;
    flow.rate = delivered;
    flow.rtt_ms = (rtt, flow.rtt_ms.1.min(rtt), flow.rtt_ms.2.max(rtt));
    let horizon = now.saturating_sub(10 * rtt as u64);
    if now.is_multiple_of(5) && flow.probe_rtt_until.is_none() {
        flow.rates.push((now, delivered));
        flow.rates.retain(|(time, _)| *time >= horizon);
    }
    let best = flow.rates.iter().map(|(_, rate)| *rate).fold(0.0, f64::max);
    let settled = now - flow.start_ms > 600 && best < flow.bandwidth * 1.02;
    flow.bandwidth = if flow.in_startup { flow.bandwidth.max(best) } else { best.max(0.1) };
    if flow.in_startup && settled {
        (flow.in_startup, flow.in_drain) = (false, true);
    } else if flow.in_drain && flow.in_flight <= flow.bandwidth * flow.min_rtt_ms {
        flow.in_drain = false;
    }
    if rtt <= flow.min_rtt_ms || flow.probe_rtt_until == Some(now) {
        (flow.min_rtt_ms, flow.min_rtt_at) = (rtt, now);
    }
    match flow.probe_rtt_until {
        Some(until) if now >= until => flow.probe_rtt_until = None,
        None if now > flow.min_rtt_at + 10_000 => flow.probe_rtt_until = Some(now + 200),
        _ => {}
    }
}

fn sample(index: u32, flow: &Flow, time_ns: u64, now: u64, rtt: f64) -> FlowSample {
    let (phase, gain) = flow.phase(now);
    FlowSample {
        flow: index,
        path: 0,
        time_ns,
        delivered_bytes: flow.delivered as u64,
        sent_bytes: flow.sent as u64,
        retransmitted_bytes: flow.again as u64,
        sent_packets: (flow.sent / SEGMENT) as u64,
        lost_bytes: flow.lost as u64,
        in_flight_bytes: flow.in_flight as u64,
        window_bytes: flow.window() as u64,
        pacing_rate_bps: (gain * flow.bandwidth * 8000.0) as u64,
        rtt_ns: (rtt * 1e6) as u64,
        srtt_ns: (rtt * 1e6) as u64,
        path_rtt_ns: 0,
        bandwidth_estimate_bps: (flow.bandwidth * 8000.0) as u64,
        min_rtt_estimate_ns: (flow.min_rtt_ms * 1e6) as u64,
        slow_start_threshold_bytes: 0,
        shrink_bytes: None,
        reassembly_bytes: 0,
        phase,
    }
}

fn record(index: u32, flow: &Flow, model: Dumbbell) -> FlowRecord {
    FlowRecord {
        flow: index,
        name: "bbr".to_string(),
        index,
        cc: "bbr".to_string(),
        path: "main".to_string(),
        start_ns: flow.start_ms * MILLI,
        end_ns: model.seconds * 1000 * MILLI,
        delivered_bytes: flow.delivered as u64,
        delivered_packets: (flow.delivered / SEGMENT) as u64,
        sent_bytes: flow.sent as u64,
        retransmitted_bytes: flow.again as u64,
        rtt_min_ns: (flow.rtt_ms.1 * 1e6) as u64,
        rtt_max_ns: (flow.rtt_ms.2 * 1e6) as u64,
        base_rtt_ns: (model.base_ms * 1e6) as u64,
        path_rate_bps: model.rate_bps as u64,
        header_overhead: HEADER_OVERHEAD,
        ..FlowRecord::default()
    }
}

/// Returns the rates of paths with these rates, and of flows with these lines.
pub fn rates(bps: &[f64], flows: &str) -> Rates {
    let mut text = format!("duration = \"1 s\"\n[[flow]]\ncc = \"bbr\"\n{flows}\n");
    for (number, bps) in bps.iter().enumerate() {
        text += &format!(
            "[link.l{number}]\nrate = \"{bps} bit/s\"\ndelay = \"10 ms\"\n\
             [path.p{number}]\nforward = [\"l{number}\"]\nreverse_delay = \"10 ms\"\n"
        );
    }
    let source = Source { name: "rates.toml", loader: &Embedded(&[]) };
    Rates::of(&knee_scenario::parse(&text, &source, &[]).unwrap())
}

/// Returns a scenario with this name and these claims. The summary uses only these and the warm-up.
pub fn scenario(name: &str, claims: Vec<Claim>) -> Scenario {
    let source = Source { name: "template.toml", loader: &Embedded(&[]) };
    let scenario = knee_scenario::parse(knee_scenario::template(), &source, &[]).unwrap();
    Scenario { name: name.to_string(), warmup: Time::ZERO, claims, ..scenario }
}

/// Summarises the records.
pub fn summary(name: &str, records: &Records, claims: Vec<Claim>) -> Summary {
    Summary::new(&scenario(name, claims), "sim", records)
}

/// A claim about the flows of group `bbr`.
pub fn claim(id: &str, says: &str, measure: Measure, at_most: f64) -> Claim {
    Claim {
        id: id.to_string(),
        says: says.to_string(),
        measure,
        of: "bbr".to_string(),
        relative_to: None,
        at_least: None,
        at_most: Some(at_most),
        from: None,
        until: None,
        source: "a study, figure 9".to_string(),
        source_figure: Some("70 to 90 ms".to_string()),
        recorded: knee_scenario::Outcome::Holds,
        on_record: None,
        finding: None,
    }
}

/// Returns the report with every page opened: the contents of each script of class `held` replace
/// it, without the escaping backslashes.
pub fn opened(html: &str) -> String {
    let mut rest = html;
    let mut whole = String::new();
    while let Some((before, after)) = rest.split_once("<script type=\"text/plain\" class=\"held\"")
    {
        let (_, after) = after.split_once('>').unwrap();
        let (page, after) = after.split_once("</script>").unwrap();
        whole += before;
        whole += &page.replace("<\\", "<");
        rest = after;
    }
    whole + rest
}
