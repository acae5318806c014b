//! Settings of both ends.

use super::in_range;
use crate::file::{PacingWord, SamplerWord, TransportFile, WindowFile};
use crate::read::{At, Entry};
use crate::source::Reading;
use knee_transport::{Config, Pacing, Sampler};
use knee_units::{Bytes, Time};

/// An IPv4 packet is no larger.
pub(super) const PACKET_BYTES_MAX: u64 = 65_535;
/// The largest window that the window scale option can tell (RFC 7323,
/// section 2.3).
const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// `base` with what `file` says.
pub(super) fn check(file: &TransportFile, base: Config, reading: &mut Reading<'_>) -> Config {
    bounds(file, reading);
    let config = Config {
        mss: small(&file.mss).unwrap_or(base.mss),
        header: small(&file.header).unwrap_or(base.header),
        initial_window: count(&file.initial_window).unwrap_or(base.initial_window),
        ack_every: count(&file.ack_every).unwrap_or(base.ack_every),
        ack_delay: file.ack_delay.get().copied().unwrap_or(base.ack_delay),
        quick_acks: count(&file.quick_acks).unwrap_or(base.quick_acks),
        receive_window: window(&file.receive_window, base.receive_window),
        pacing: file.pacing.get().map_or(base.pacing, |word| pacing(*word)),
        ecn: file.ecn.get().copied().unwrap_or(base.ecn),
        sampler: file.sampler.get().map_or(base.sampler, |word| sampler(*word)),
        min_rto: file.min_rto.get().copied().unwrap_or(base.min_rto),
        max_burst: small(&file.max_burst).unwrap_or(base.max_burst),
    };
    let receive_window = file.receive_window.at();
    if let (Some(at), Some(window)) = (receive_window, config.receive_window)
        && window < u64::from(config.mss)
    {
        let message = format!("the receive window must hold a segment of {} B", config.mss);
        reading.problem(at.span, message, "write a larger window, or \"unlimited\"");
    }
    config
}

fn bounds(file: &TransportFile, reading: &mut Reading<'_>) {
    let bytes = |n: u64| Bytes::new(n);
    in_range(&file.mss, "the segment size", bytes(64), bytes(PACKET_BYTES_MAX - 120), reading);
    in_range(&file.header, "the header", bytes(20), bytes(120), reading);
    in_range(&file.initial_window, "the initial window", 1, 100_000, reading);
    in_range(&file.ack_every, "ack_every", 1, 1_000, reading);
    in_range(&file.ack_delay, "the ACK delay", Time::ZERO, Time::from_secs(10), reading);
    in_range(&file.quick_acks, "quick_acks", 0, 1_000_000, reading);
    in_range(
        &file.min_rto,
        "the smallest timeout",
        Time::from_millis(1),
        Time::from_secs(60),
        reading,
    );
    in_range(&file.max_burst, "the largest burst", bytes(64), bytes(1 << 20), reading);
    if let Entry::Given(At { value: WindowFile::Bytes(window), span }) = &file.receive_window {
        let window = Entry::Given(At { value: *window, span: *span });
        in_range(&window, "the receive window", bytes(1), bytes(WINDOW_BYTES_MAX), reading);
    }
}

fn small(entry: &Entry<Bytes>) -> Option<u32> {
    entry.get().map(|bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX / 2))
}

fn count(entry: &Entry<u64>) -> Option<u32> {
    entry.get().map(|count| u32::try_from(*count).unwrap_or(u32::MAX / 2))
}

fn window(entry: &Entry<WindowFile>, base: Option<u64>) -> Option<u64> {
    match entry.get() {
        None => base,
        Some(WindowFile::Unlimited(_)) => None,
        Some(WindowFile::Bytes(bytes)) => Some(bytes.get()),
    }
}

fn pacing(word: PacingWord) -> Pacing {
    match word {
        PacingWord::Auto => Pacing::Auto,
        PacingWord::On => Pacing::On,
        PacingWord::Off => Pacing::Off,
    }
}

fn sampler(word: SamplerWord) -> Sampler {
    match word {
        SamplerWord::Linux => Sampler::Linux,
        SamplerWord::Ns3V335 => Sampler::Ns3V335,
    }
}

/// Every setting written out.
pub(super) fn write(config: &Config) -> TransportFile {
    let bytes = |n: u32| Entry::new(Bytes::new(u64::from(n)));
    let receive_window = match config.receive_window {
        None => WindowFile::UNLIMITED,
        Some(window) => WindowFile::Bytes(Bytes::new(window)),
    };
    TransportFile {
        mss: bytes(config.mss),
        header: bytes(config.header),
        initial_window: Entry::new(u64::from(config.initial_window)),
        ack_every: Entry::new(u64::from(config.ack_every)),
        ack_delay: Entry::new(config.ack_delay),
        quick_acks: Entry::new(u64::from(config.quick_acks)),
        receive_window: Entry::new(receive_window),
        pacing: Entry::new(match config.pacing {
            Pacing::Auto => PacingWord::Auto,
            Pacing::On => PacingWord::On,
            Pacing::Off => PacingWord::Off,
        }),
        ecn: Entry::new(config.ecn),
        sampler: Entry::new(match config.sampler {
            Sampler::Linux => SamplerWord::Linux,
            Sampler::Ns3V335 => SamplerWord::Ns3V335,
        }),
        min_rto: Entry::new(config.min_rto),
        max_burst: bytes(config.max_burst),
    }
}
