//! What a log says of links and flows before their packets.

use knee_link::{Buffer, Config, Loss, RateModel, Steps};
use knee_transport::ReceiveWindow;
use knee_units::Rate;
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
    if let Some(jitter) = config.delay.jitter {
        let (amount, reorder) = (jitter.amount.as_nanos(), u8::from(jitter.reorder));
        line += &format!(",jitter_ns={amount},reorder={reorder}");
    }
    match config.buffer {
        Buffer::Unlimited => {}
        Buffer::Bytes(bytes) => line += &format!(",buffer_bytes={bytes}"),
        Buffer::Packets(packets) => line += &format!(",buffer_packets={packets}"),
    }
    line += &config.aqm.log();
    line += &loss(&config.loss);
    if let Some(policer) = config.policer {
        line += &format!(",policer={}:{}", policer.rate.as_bits_per_second(), policer.burst);
    }
    if !config.down.is_empty() {
        let spans = config.down.iter();
        let spans = spans.map(|(from, until)| format!("{}-{}", from.as_nanos(), until.as_nanos()));
        line += &format!(",down_ns={}", spans.collect::<Vec<_>>().join(";"));
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

/// A constant as one number, changes as `<time>:<number>;…`.
fn steps<T>(steps: &Steps<T>, value: impl Fn(&T) -> u64) -> String {
    if let [(_, only)] = steps.0.as_slice() {
        return value(only).to_string();
    }
    let steps = steps.0.iter().map(|(at, each)| format!("{}:{}", at.as_nanos(), value(each)));
    steps.collect::<Vec<_>>().join(";")
}

fn loss(loss: &Loss) -> String {
    match loss {
        Loss::None => String::new(),
        Loss::Independent(_) | Loss::GilbertElliott { .. } => ",loss=random".to_string(),
        Loss::Periodic(every) => format!(",loss=every:{every}"),
        Loss::Recorded(record) => {
            let bits: String = record.iter().map(|lost| if *lost { '1' } else { '0' }).collect();
            format!(",loss=recorded:{bits}")
        }
    }
}

/// Writes the line of a flow.
pub fn describe_flow(
    out: &mut impl Write,
    flow: u32,
    path: usize,
    config: &knee_transport::Config,
    connection: Option<u32>,
) -> io::Result<()> {
    let (mss, rto_min, burst) = (config.mss, config.min_rto.as_nanos(), config.max_burst);
    let mut line = format!("# flow,{flow},path={path},mss={mss}");
    // Over several paths the window is the connection's.
    if let (ReceiveWindow::Fixed(bytes), None) = (config.receive_window, connection) {
        let _ = write!(line, ",receive_window={bytes}");
    }
    let _ = write!(line, ",rto_min_ns={rto_min},burst_bytes={burst}");
    if let Some(connection) = connection {
        let _ = write!(line, ",connection={connection}");
    }
    writeln!(out, "{line}")
}
