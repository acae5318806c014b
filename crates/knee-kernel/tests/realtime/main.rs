//! Runs over the kernel's TCP, of a few seconds each. `main` lists them.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod applications;
#[cfg(feature = "bpf")]
mod bbr3;
mod cleanup;
mod connections;
#[cfg(feature = "bpf")]
mod copa;
mod files;
#[cfg(feature = "bpf")]
mod fixed;
mod host;
#[cfg(feature = "bpf")]
mod low_delay;
mod multipath;
mod observed;
mod ports;
mod rows;
mod seen;
mod self_check;
mod starved;

use host::{scenario, sound_run};
use knee_kernel::{Control, KernelError, run};
use knee_record::{FlowSample, Records};
use knee_trials::{Pauses, Skipped, trials, turn};
use knee_units::Time;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::time::Duration;

fn text(duration: &str, link: &str, flow: &str) -> String {
    format!(
        "name = \"test\"\nduration = \"{duration}\"\n\
         [link.bottleneck]\n{link}\n\
         [path.main]\nforward = [\"bottleneck\"]\nreverse_delay = \"30 ms\"\n\
         [[flow]]\nname = \"flow\"\n{flow}\n"
    )
}

const TEN_MEGABIT: &str = "rate = \"10 Mbit/s\"\ndelay = \"30 ms\"\nbuffer = \"20 BDP\"";

fn after(records: &Records, seconds: u64) -> Vec<FlowSample> {
    records.samples.iter().filter(|row| row.time_ns >= seconds * 1_000_000_000).collect()
}

fn median(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// Returns the bits per second between the first and the last of these rows.
fn goodput(rows: &[FlowSample]) -> f64 {
    let (first, last) = (rows[0], rows[rows.len() - 1]);
    let bytes = (last.delivered_bytes - first.delivered_bytes) as f64;
    bytes * 8e9 / (last.time_ns - first.time_ns) as f64
}

/// One BBR flow on Linux 6.18 over another emulator: 9.41 Mbit/s and a median smoothed RTT of 70.4
/// ms; such figures vary by 2 % and 10 %.
///
/// A pause of the host, too short to make a run invalid, leaves a queue that BBR keeps until
/// PROBE_RTT drains it: one of three runs must match.
fn bbr_does_what_was_measured_elsewhere() -> Result<(), Skipped> {
    let text = text("8 s", TEN_MEGABIT, "cc = \"bbr\"");
    let mut seen = Vec::new();
    for _ in 0..3 {
        let (records, _) = sound_run(&text)?;
        let rows = after(&records, 3);
        let rate = goodput(&rows) / 9.41e6;
        let rtt = median(rows.iter().map(|row| row.srtt_ns).collect()) as f64 / 70.4e6;
        assert_eq!(records.flows[0].retransmitted_bytes, 0);
        assert!(rows.iter().all(|row| row.phase.starts_with("probe_bw")));
        let min_rtt = 60_000_000..63_000_000;
        assert!(rows.iter().all(|row| min_rtt.contains(&row.min_rtt_estimate_ns)));
        // Full use of the link is 9.65 Mbit/s; the difference is PROBE_RTT, every ten seconds.
        if (0.98..1.03).contains(&rate) && (0.9..1.1).contains(&rtt) {
            return Ok(());
        }
        seen.push((rate, rtt));
    }
    panic!("goodput and RTT over the reference: {seen:?}");
}

/// CUBIC fills a queue of one BDP: the RTT is at most that of path and queue, and what the link
/// dropped was retransmitted.
fn cubic_fills_the_queue_and_repeats_what_is_dropped() -> Result<(), Skipped> {
    let link = TEN_MEGABIT.replace("20 BDP", "1 BDP");
    let text = text("6 s", &link, "cc = \"cubic\"");
    let (records, _) = sound_run(&text)?;
    let flow = &records.flows[0];
    let dropped = records.links.last().unwrap().dropped_packets;
    assert!(dropped > 0);
    let repeated = flow.retransmitted_bytes / 1448;
    assert!(repeated >= dropped / 2 && repeated <= dropped + 10, "{repeated} for {dropped}");
    assert!(flow.rtt_max_ns < 130_000_000, "{}", flow.rtt_max_ns);
    assert!(flow.recoveries > 0);
    Ok(())
}

/// 500 kB at 10 Mbit/s take 0.41 s on the wire, plus the handshake, slow start, and the delay of
/// the last ACK.
fn a_file_is_delivered_to_its_last_byte() -> Result<(), Skipped> {
    for header in ["52 B", "72 B"] {
        let flow =
            format!("cc = \"cubic\"\nworkload = {{ file = \"500 kB\" }}\nheader = \"{header}\"");
        let text = text("4 s", TEN_MEGABIT, &flow);
        let (records, _) = sound_run(&text)?;
        let flow = &records.flows[0];
        assert_eq!((flow.delivered_bytes, flow.size_bytes), (500_000, 500_000));
        let millis = flow.completion_ns.unwrap() / 1_000_000;
        assert!((415 + 120..1_200).contains(&millis), "{millis} ms");
    }
    Ok(())
}

/// Marks arrive at the receiver and their echo at the sender, and the flow loses nothing although
/// the queue stays short.
fn marks_take_the_place_of_drops() -> Result<(), Skipped> {
    let link = format!("{TEN_MEGABIT}\naqm = \"codel\"\necn = true");
    let text = text("5 s", &link, "cc = \"cubic\"\necn = true");
    let (records, health) = sound_run(&text)?;
    let (link, flow) = (records.links.last().unwrap(), &records.flows[0]);
    assert!(link.marked_packets > 0);
    assert_eq!(flow.retransmitted_bytes, 0);
    assert!(flow.marked_bytes > 0);
    // Packets dropped instead of marked are those of the probe, which is not ECN-capable.
    let probes = health.probes.iter();
    let probes_lost: u64 = probes.map(|one| one.sent - one.round_trips.len() as u64).sum();
    assert!(link.dropped_packets <= probes_lost, "{} of {probes_lost}", link.dropped_packets);
    let rows = after(&records, 3);
    assert!(median(rows.iter().map(|row| row.srtt_ns).collect()) < 90_000_000);
    Ok(())
}

/// The transport repairs the link's random loss.
fn loss_of_the_link_is_repaired() -> Result<(), Skipped> {
    let link = format!("{TEN_MEGABIT}\nloss = \"2 %\"");
    let text = text("6 s", &link, "cc = \"bbr\"");
    let (records, _) = sound_run(&text)?;
    let (link, flow) = (records.links.last().unwrap(), &records.flows[0]);
    let lost = link.lost_packets as f64 / link.entered_packets as f64;
    // Some 5000 packets: three standard deviations are 0.6 points.
    assert!((0.014..0.026).contains(&lost), "{lost}");
    let repeated = flow.retransmitted_bytes as f64 / flow.sent_bytes as f64;
    assert!((repeated - lost).abs() < 0.005, "{repeated} for {lost}");
    Ok(())
}

/// No probe is faster than the path, and half of them are at most half a millisecond slower,
/// whatever else the host does.
fn probes_take_as_long_as_the_path() -> Result<(), Skipped> {
    let flow = "cc = \"cubic\"\nworkload = { file = \"1 kB\" }";
    let text = text("3 s", TEN_MEGABIT, flow);
    let (_, health) = sound_run(&text)?;
    let probe = &health.probes[0];
    // Two times 30 ms, and 44 bytes at 10 Mbit/s.
    let path = Time::from_nanos(60_035_200);
    let (least, median) = (probe.rtt_at(0.0).unwrap(), probe.rtt_at(0.5).unwrap());
    assert!(least >= path, "{least:?}");
    assert!(median <= path + Time::from_micros(500), "{median:?}");
    assert!(probe.round_trips.len() as u64 + 10 >= probe.sent, "{}", probe.sent);
    Ok(())
}

fn stopping_keeps_the_records() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let control = Control::default();
    let scenario = scenario(&text("60 s", TEN_MEGABIT, "cc = \"bbr\""));
    let records = std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&scenario, &control));
        while control.now_ns.load(Ordering::Relaxed) < 500_000_000 {
            std::thread::park_timeout(Duration::from_millis(10));
        }
        control.stop.store(true, Ordering::Relaxed);
        running.join().unwrap().unwrap_or_else(|error| panic!("{error}")).0
    });
    assert!(records.interrupted);
    assert!((500_000_000..5_000_000_000).contains(&records.end_ns), "{}", records.end_ns);
    assert!(records.flows[0].delivered_bytes > 0);
    Ok(())
}

fn what_the_kernel_cannot_do_is_refused_with_advice() -> Result<(), Skipped> {
    let refusal = |flow: &str| {
        let scenario = scenario(&text("1 s", TEN_MEGABIT, flow));
        match run(&scenario, &Control::default()) {
            Err(error @ (KernelError::Unsupported { .. } | KernelError::Controller { .. })) => {
                error.to_string()
            }
            other => panic!("{other:?}"),
        }
    };
    // Coupled controllers belong to MPTCP, and the kernel's MPTCP has none.
    assert!(refusal("cc = \"olia\"").contains("has no controller \"olia\", only"));
    assert!(refusal("cc = \"cubic\"\ninitial_window = 40").contains("leave it at 10"));
    assert!(refusal("cc = \"cubic\"\nmax_burst = \"3 kB\"").contains("the kernel's own"));
    assert!(refusal("cc = \"cubic\"\nheader = \"50 B\"").contains("52 B"));
    Ok(())
}

/// A path with an RTT of 1 ms: the first datagrams of the self-check's burst arrive while the
/// thread that answered probes may still be asleep.
fn a_burst_over_a_short_path_arrives_whole() -> Result<(), Skipped> {
    let _turn = turn(Pauses::UpToMs(20))?;
    let text = text("1 s", &TEN_MEGABIT.replace("30 ms", "0.5 ms"), "cc = \"cubic\"");
    let text = text.replace("reverse_delay = \"30 ms\"", "reverse_delay = \"0.5 ms\"");
    let run = run(&scenario(&text), &Control::default());
    let (_, health) = run.unwrap_or_else(|error| panic!("{error}"));
    assert!(health.self_check.iter().all(|check| check.rate.is_some()));
    Ok(())
}

fn main() -> ExitCode {
    if std::env::var_os(cleanup::VICTIM).is_some() {
        cleanup::victim();
        return ExitCode::SUCCESS;
    }
    if std::env::var_os(files::LIMITS).is_some() {
        files::limited();
        return ExitCode::SUCCESS;
    }
    let trials = trials![
        cubic_fills_the_queue_and_repeats_what_is_dropped,
        marks_take_the_place_of_drops,
        a_burst_over_a_short_path_arrives_whole,
        stopping_keeps_the_records,
        what_the_kernel_cannot_do_is_refused_with_advice,
        applications::a_mix_is_made_of_transfers,
        connections::a_file_is_acknowledged_to_its_last_byte,
        cleanup::killed,
        files::a_run_without_enough_files_says_so,
        files::a_run_raises_the_soft_limit_of_files,
        ports::a_host_has_ports_for_a_busy_mix,
        rows::rows_reach_the_sink_during_the_run,
        rows::a_full_disk_ends_the_run,
        self_check::a_slow_link_passes_the_self_check,
        observed::an_observer_sees_the_same,
        seen::the_observer_agrees_with_kernel_and_links,
        seen::a_capture_has_every_packet,
        multipath::two_paths_carry_what_both_have,
        starved::a_starved_emulator_is_invalid;
        nightly:
        bbr_does_what_was_measured_elsewhere,
        a_file_is_delivered_to_its_last_byte,
        loss_of_the_link_is_repaired,
        probes_take_as_long_as_the_path,
        applications::a_page_arrives_object_by_object,
        applications::bursts_come_with_their_pauses,
        applications::a_video_plays,
        connections::what_the_link_loses_is_sent_again,
        connections::a_narrow_window_limits_for_most_of_the_time,
        connections::a_page_has_a_row_for_each_connection,
        connections::what_a_stop_cuts_off_is_not_complete,
        self_check::paths_that_share_a_slow_link_pass_the_self_check,
        self_check::a_link_that_stands_still_at_first_is_probed_slowly,
        seen::the_observer_agrees_in_24_cells,
        multipath::a_file_over_two_paths_is_delivered_to_its_last_byte,
        multipath::a_path_that_is_down_at_first_is_waited_for,
        multipath::a_backup_carries_what_the_first_path_cannot,
    ];
    #[cfg(feature = "bpf")]
    let trials = trials.into_iter().chain(trials![
        copa::pacing_cannot_be_switched_off,
        low_delay::a_run_brings_its_controllers;
        nightly:
        bbr3::bbr3_fills_a_shallow_buffer_with_little_loss,
        copa::copa_fills_the_link_with_a_queue_of_packets,
        fixed::a_fixed_window_is_what_is_in_flight,
        low_delay::two_flows_have_a_short_queue,
        low_delay::five_flows_have_a_short_queue,
        low_delay::beside_others_it_keeps_four_packets_per_round_trip,
    ]);
    knee_trials::run(trials)
}
