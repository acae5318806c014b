//! Writes the log's description of links and flows, before their packets.

use knee_link::{Buffer, CircuitBreaker, Config, Device, Loss, Pause, RateModel, Steps};
use knee_transport::ReceiveWindow;
use knee_units::{Rate, Time};
use std::fmt::Write as _;
use std::io::{self, Write};

/// Writes the line of a link.
pub fn describe_link(
    out: &mut impl Write,
    index: usize,
    name: &str,
    config: &Config,
) -> io::Result<()> {
    let name = name.replace([',', '\n'], " ");
    let mut line = format!("# link,{index},{name}{}", rate(&config.rate));
    line += &format!(",delay_ns={}", steps(&config.delay.base, |delay| delay.as_nanos()));
    if let Some(jitter) = &config.delay.jitter {
        let amount = steps(&jitter.amount, |amount| amount.as_nanos());
        let reorder = u8::from(jitter.reorder || config.delay.reorder);
        line += &format!(",jitter_ns={amount},reorder={reorder}");
        if jitter.least > Time::ZERO {
            line += &format!(",jitter_least_ns={}", jitter.least.as_nanos());
        }
        if jitter.share < 1.0 {
            line += &format!(",jitter_share={}", jitter.share);
        }
    }
    if config.delay.reorder {
        line += if config.delay.jitter.is_none() { ",reorder=1" } else { "" };
        line += ",delay_reorder=1";
    }
    match config.buffer {
        Buffer::Unlimited => {}
        Buffer::Bytes(bytes) => line += &format!(",buffer_bytes={bytes}"),
        Buffer::Packets(packets) => line += &format!(",buffer_packets={packets}"),
    }
    line += &config.aqm.log();
    match config.device {
        None => {}
        Some(Device::Bytes(bytes)) => line += &format!(",device_bytes={bytes}"),
        Some(Device::Packets(packets)) => line += &format!(",device_packets={packets}"),
    }
    let loss = loss(&config.loss);
    if !loss.is_empty() {
        line += &format!(",loss={loss}");
    }
    if let Some(policer) = config.policer {
        line += &format!(",policer={}:{}", policer.rate.as_bits_per_second(), policer.burst);
    }
    for (key, spans) in [("down_ns", &config.down), ("hold_ns", &config.hold)] {
        if !spans.is_empty() {
            let span =
                |(from, until): &(Time, Time)| format!("{}-{}", from.as_nanos(), until.as_nanos());
            line += &format!(",{key}={}", spans.iter().map(span).collect::<Vec<_>>().join(";"));
        }
    }
    if let Some(breaker) = &config.circuit_breaker {
        let CircuitBreaker { interval, loss, intervals, reset_after } = breaker;
        line += &format!(",breaker={}:{loss}:{intervals}", interval.as_nanos());
        if let Some(after) = reset_after {
            line += &format!(":{}", after.as_nanos());
        }
    }
    if let Some(Pause { at, until }) = config.pause {
        line += &format!(",pause={at}:{until}");
    }
    if config.ecn_bleached {
        line += ",ecn_bleached=1";
    }
    writeln!(out, "{line}")
}

fn rate(rate: &RateModel) -> String {
    match rate {
        RateModel::Unlimited => ",rate_bps=".to_string(),
        RateModel::Constant(rate) => format!(",rate_bps={}", rate.as_bits_per_second()),
        RateModel::Steps(list) => {
            format!(",rate_bps={}", steps(list, |rate: &Rate| rate.as_bits_per_second()))
        }
        RateModel::Trace(trace) => {
            let times: Vec<String> = trace.opportunities_ms.iter().map(u32::to_string).collect();
            let offset = trace.offset.as_nanos();
            format!(",trace_ms={},trace_offset_ns={offset}", times.join(";"))
        }
    }
}

/// Formats a constant as one number, changes as `<time>:<number>;…`.
fn steps<T>(steps: &Steps<T>, value: impl Fn(&T) -> u64) -> String {
    if let [(_, only)] = steps.0.as_slice() {
        return value(only).to_string();
    }
    let steps = steps.0.iter().map(|(at, each)| format!("{}:{}", at.as_nanos(), value(each)));
    steps.collect::<Vec<_>>().join(";")
}

/// Formats a loss process; empty for none.
fn loss(of: &Loss) -> String {
    match of {
        Loss::None => String::new(),
        Loss::Independent(_) | Loss::GilbertElliott { .. } => "random".to_string(),
        Loss::SuperPackets(_) => "super-packets".to_string(),
        Loss::Periodic(every) => format!("every:{every}"),
        Loss::Recorded(record) => {
            let bits: String = record.iter().map(|lost| if *lost { '1' } else { '0' }).collect();
            format!("recorded:{bits}")
        }
        Loss::Steps(steps) => {
            let step = |(at, of): &(Time, Loss)| match of {
                Loss::None => format!("{}@none", at.as_nanos()),
                of => format!("{}@{}", at.as_nanos(), loss(of)),
            };
            steps.0.iter().map(step).collect::<Vec<_>>().join(";")
        }
    }
}

/// Writes the line of a flow; `of` is the index of the scenario's flow.
pub fn describe_flow(
    out: &mut impl Write,
    (flow, of): (u32, u32),
    path: usize,
    config: &knee_transport::Config,
    connection: Option<u32>,
    send_jitter: Time,
) -> io::Result<()> {
    let (mss, rto_min, burst) = (config.mss, config.min_rto.as_nanos(), config.max_burst);
    let mut line = format!("# flow,{flow},path={path},mss={mss}");
    // For a multipath flow the window is the connection's.
    if let (ReceiveWindow::Fixed(bytes), None) = (config.receive_window, connection) {
        let _ = write!(line, ",receive_window={bytes}");
    }
    let _ = write!(line, ",rto_min_ns={rto_min},burst_bytes={burst}");
    if let Some(connection) = connection {
        let _ = write!(line, ",connection={connection}");
    }
    if config.lies.conceals() {
        line += ",conceals=1";
    }
    if config.lies.ack_ahead > 0 {
        let _ = write!(line, ",ack_ahead={}", config.lies.ack_ahead);
    }
    if config.lies.ack_division > 1 {
        line += ",divides_acks=1";
    }
    if send_jitter > Time::ZERO {
        let _ = write!(line, ",send_jitter_ns={}", send_jitter.as_nanos());
    }
    writeln!(out, "{line},of={of}")
}
