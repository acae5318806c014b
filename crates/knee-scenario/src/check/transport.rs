//! Settings of both ends.

use super::in_range;
use crate::file::{
    AckFrequencyFile, AcksWord, PacingWord, ReceiverFile, RecoveryWord, SamplerWord, TransportFile,
    WindowFile, WindowWord,
};
use crate::read::{At, Optional};
use crate::source::Reading;
use knee_cc::RecoveryPeriod;
use knee_transport::{AckFrequency, Acks, Config, Lies, Pacing, ReceiveWindow, Sampler};
use knee_units::{Bytes, Time};

/// Largest IPv4 packet, bytes.
pub(super) const PACKET_BYTES_MAX: u64 = 65_535;
/// Largest window that the window scale option can express (RFC 7323, section 2.3).
const WINDOW_BYTES_MAX: u64 = 1 << 30;

/// Size of Multipath TCP's option on each segment and ACK: kind, length and flags; data ACK, data
/// sequence number and subflow sequence number of four bytes each; data length and checksum of two
/// bytes each (RFC 8684, section 3.3).
const DATA_SEQUENCE_SIGNAL: u32 = 20;

/// Returns the defaults of flows over several paths; `base` is `given` after checking.
pub(super) fn several(given: &TransportFile, base: Config) -> Config {
    let window = given.receive_window.is_given();
    Config {
        mss: small(&given.mss).unwrap_or(base.mss - DATA_SEQUENCE_SIGNAL),
        header: small(&given.header).unwrap_or(base.header + DATA_SEQUENCE_SIGNAL),
        receive_window: if window { base.receive_window } else { ReceiveWindow::LINUX },
        ..base
    }
}

/// Applies `file` to `base`, for flows over `several` paths or over one.
pub(super) fn check(
    file: &TransportFile,
    base: Config,
    several: bool,
    reading: &mut Reading<'_>,
) -> Config {
    bounds(file, reading);
    let base = match file.acks.get().map(|word| acks(*word)) {
        Some(acks) if acks != base.acks => {
            Config { acks, ack_delay: acks.delay(), quick_acks: acks.quick(), ..base }
        }
        _ => base,
    };
    if let (Some(At { value: WindowFile::Word(WindowWord::Auto), span }), false) =
        (file.receive_window.at(), several)
    {
        let message = "automatic tuning of the receive window needs several paths";
        let help = "write \"unlimited\", or a size; a flow with paths = […] has \"auto\" by \
                    default";
        reading.problem(*span, message, help);
    }
    let config = Config {
        mss: small(&file.mss).unwrap_or(base.mss),
        header: small(&file.header).unwrap_or(base.header),
        initial_window: count(&file.initial_window).unwrap_or(base.initial_window),
        acks: base.acks,
        ack_every: count(&file.ack_every).unwrap_or(base.ack_every),
        ack_bytes: small(&file.ack_bytes).or(base.ack_bytes),
        ack_frequency: file.ack_frequency.get().map(ack_frequency).or(base.ack_frequency),
        ack_delay: file.ack_delay.get().copied().unwrap_or(base.ack_delay),
        quick_acks: count(&file.quick_acks).unwrap_or(base.quick_acks),
        lies: file.receiver.get().map_or(base.lies, lies),
        receive_window: window(&file.receive_window, base.receive_window),
        pacing: file.pacing.get().map_or(base.pacing, |word| pacing(*word)),
        ecn: file.ecn.get().copied().unwrap_or(base.ecn),
        sampler: file.sampler.get().map_or(base.sampler, |word| sampler(*word)),
        recovery: file.recovery.get().map_or(base.recovery, |word| recovery(*word)),
        min_rto: file.min_rto.get().copied().unwrap_or(base.min_rto),
        max_burst: small(&file.max_burst).unwrap_or(base.max_burst),
    };
    let receive_window = file.receive_window.at();
    if let (Some(at), ReceiveWindow::Fixed(window)) = (receive_window, config.receive_window)
        && window < u64::from(config.mss)
    {
        let message = format!("the receive window must hold a segment of {} B", config.mss);
        reading.problem(at.span, message, "write a larger window, or \"unlimited\"");
    }
    config
}

/// Gives a receiver that conceals losses Linux's largest buffer: nothing else would limit the
/// sender, and the data in flight would double with each round trip.
pub(super) fn bound(config: &mut Config, file: &TransportFile, reading: &mut Reading<'_>) {
    if !config.lies.conceals() || config.receive_window != ReceiveWindow::Unlimited {
        return;
    }
    config.receive_window = ReceiveWindow::Fixed(ReceiveWindow::LINUX_BYTES);
    if let Some(at) = file.receive_window.at() {
        let message = "a receiver that conceals losses needs a limited receive window";
        reading.problem(at.span, message, "write a size, such as \"6 MiB\"");
    }
}

fn bounds(file: &TransportFile, reading: &mut Reading<'_>) {
    in_range(&file.send_jitter, "the send jitter", Time::ZERO, Time::from_secs(1), reading);
    let bytes = |n: u64| Bytes::new(n);
    in_range(&file.mss, "the segment size", bytes(64), bytes(PACKET_BYTES_MAX - 120), reading);
    in_range(&file.header, "the header", bytes(20), bytes(120), reading);
    in_range(&file.initial_window, "the initial window", 1, 100_000, reading);
    in_range(&file.ack_every, "ack_every", 1, 1_000, reading);
    in_range(&file.ack_bytes, "ack_bytes", bytes(1), bytes(1 << 30), reading);
    if let Some(frequency) = file.ack_frequency.get() {
        let (min, max) = (Time::from_micros(1), Time::from_secs(10));
        in_range(&frequency.per_round, "per_round", 1, 1_000, reading);
        in_range(&frequency.min_delay, "the smallest delay", min, max, reading);
        in_range(&frequency.reordering, "reordering", 0, 1_000, reading);
    }
    in_range(&file.ack_delay, "the ACK delay", Time::ZERO, Time::from_secs(10), reading);
    in_range(&file.quick_acks, "quick_acks", 0, 1_000_000, reading);
    if let Some(receiver) = file.receiver.get() {
        in_range(&receiver.ack_ahead, "ack_ahead", 0, 100_000, reading);
        in_range(&receiver.ack_division, "ack_division", 1, 1_000, reading);
    }
    in_range(
        &file.min_rto,
        "the smallest timeout",
        Time::from_millis(1),
        Time::from_secs(60),
        reading,
    );
    in_range(&file.max_burst, "the largest burst", bytes(64), bytes(1 << 20), reading);
    if let Optional::Given(At { value: WindowFile::Bytes(window), span }) = &file.receive_window {
        let window = Optional::Given(At { value: *window, span: *span });
        in_range(&window, "the receive window", bytes(1), bytes(WINDOW_BYTES_MAX), reading);
    }
}

fn small(entry: &Optional<Bytes>) -> Option<u32> {
    entry.get().map(|bytes| u32::try_from(bytes.get()).unwrap_or(u32::MAX / 2))
}

fn count(entry: &Optional<u64>) -> Option<u32> {
    entry.get().map(|count| u32::try_from(*count).unwrap_or(u32::MAX / 2))
}

fn window(entry: &Optional<WindowFile>, base: ReceiveWindow) -> ReceiveWindow {
    match entry.get() {
        None => base,
        Some(WindowFile::Word(WindowWord::Unlimited)) => ReceiveWindow::Unlimited,
        Some(WindowFile::Word(WindowWord::Auto)) => ReceiveWindow::LINUX,
        Some(WindowFile::Bytes(bytes)) => ReceiveWindow::Fixed(bytes.get()),
    }
}

fn acks(word: AcksWord) -> Acks {
    match word {
        AcksWord::Tcp => Acks::Tcp,
        AcksWord::Quic => Acks::Quic,
    }
}

fn ack_frequency(file: &AckFrequencyFile) -> AckFrequency {
    AckFrequency {
        per_round: count(&file.per_round).unwrap_or(4),
        min_delay: file.min_delay.get().copied().unwrap_or(Time::from_millis(1)),
        reordering: count(&file.reordering).unwrap_or(1),
    }
}

fn lies(file: &ReceiverFile) -> Lies {
    let honest = Lies::default();
    Lies {
        conceal_loss: file.conceal_loss.get().copied().unwrap_or(honest.conceal_loss),
        ack_ahead: count(&file.ack_ahead).unwrap_or(honest.ack_ahead),
        ack_division: count(&file.ack_division).unwrap_or(honest.ack_division),
        false_duplicates: file.false_duplicates.get().copied().unwrap_or(honest.false_duplicates),
    }
}

/// Writes a receiver's misbehaviour; an honest receiver is not written.
fn write_lies(lies: Lies) -> Optional<ReceiverFile> {
    if lies.is_honest() {
        return Optional::Absent;
    }
    Optional::new(ReceiverFile {
        conceal_loss: Optional::new(lies.conceal_loss),
        ack_ahead: Optional::new(u64::from(lies.ack_ahead)),
        ack_division: Optional::new(u64::from(lies.ack_division)),
        false_duplicates: Optional::new(lies.false_duplicates),
    })
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

fn recovery(word: RecoveryWord) -> Option<RecoveryPeriod> {
    match word {
        RecoveryWord::Auto => None,
        RecoveryWord::Tcp => Some(RecoveryPeriod::Tcp),
        RecoveryWord::Quic => Some(RecoveryPeriod::Quic),
    }
}

/// Writes the settings that flows over several paths do not take from the scenario's transport.
pub(super) fn fill_several(file: &mut TransportFile, config: &Config) {
    file.mss.fill(Bytes::new(u64::from(config.mss)));
    file.header.fill(Bytes::new(u64::from(config.header)));
    file.receive_window.fill(write_window(config.receive_window));
}

fn write_window(window: ReceiveWindow) -> WindowFile {
    match window {
        ReceiveWindow::Unlimited => WindowFile::Word(WindowWord::Unlimited),
        ReceiveWindow::Fixed(bytes) => WindowFile::Bytes(Bytes::new(bytes)),
        ReceiveWindow::Auto { .. } => WindowFile::Word(WindowWord::Auto),
    }
}

/// Writes every setting.
pub(super) fn write(config: &Config) -> TransportFile {
    let bytes = |n: u32| Optional::new(Bytes::new(u64::from(n)));
    TransportFile {
        mss: bytes(config.mss),
        header: bytes(config.header),
        initial_window: Optional::new(u64::from(config.initial_window)),
        acks: Optional::new(match config.acks {
            Acks::Tcp => AcksWord::Tcp,
            Acks::Quic => AcksWord::Quic,
        }),
        ack_every: Optional::new(u64::from(config.ack_every)),
        ack_bytes: config.ack_bytes.map_or(Optional::Absent, bytes),
        ack_frequency: config.ack_frequency.map_or(Optional::Absent, |frequency| {
            Optional::new(AckFrequencyFile {
                per_round: Optional::new(u64::from(frequency.per_round)),
                min_delay: Optional::new(frequency.min_delay),
                reordering: Optional::new(u64::from(frequency.reordering)),
            })
        }),
        ack_delay: Optional::new(config.ack_delay),
        quick_acks: Optional::new(u64::from(config.quick_acks)),
        receiver: write_lies(config.lies),
        receive_window: Optional::new(write_window(config.receive_window)),
        pacing: Optional::new(match config.pacing {
            Pacing::Auto => PacingWord::Auto,
            Pacing::On => PacingWord::On,
            Pacing::Off => PacingWord::Off,
        }),
        ecn: Optional::new(config.ecn),
        sampler: Optional::new(match config.sampler {
            Sampler::Linux => SamplerWord::Linux,
            Sampler::Ns3V335 => SamplerWord::Ns3V335,
        }),
        recovery: Optional::new(match config.recovery {
            None => RecoveryWord::Auto,
            Some(RecoveryPeriod::Tcp) => RecoveryWord::Tcp,
            Some(RecoveryPeriod::Quic) => RecoveryWord::Quic,
        }),
        min_rto: Optional::new(config.min_rto),
        max_burst: bytes(config.max_burst),
        // No setting of an end: `flows` fills it.
        send_jitter: Optional::Absent,
    }
}
