//! Rows of connections from `TCP_INFO`, compared with the counts of the emulator and the
//! applications.

use crate::host::sound_run;
use crate::{TEN_MEGABIT, text};
use knee_record::{ConnectionRecord, LinkSample, Records};
use knee_trials::Skipped;

/// RTT of the path without queue.
const RTT_NS: u64 = 60_000_000;

fn only(records: &Records) -> &ConnectionRecord {
    let [row] = &records.connections[..] else { panic!("{:?}", records.connections) };
    row
}

/// Exactly the file's bytes, although the kernel counts SYN and FIN; busy for at least their time
/// on the wire.
pub fn a_file_is_acknowledged_to_its_last_byte() -> Result<(), Skipped> {
    let flow = "cc = \"cubic\"\nworkload = { file = \"500 kB\" }";
    let (records, _) = sound_run(&text("4 s", TEN_MEGABIT, flow))?;
    let row = only(&records);
    let size = Some(500_000);
    assert_eq!((row.acked_bytes, row.size_bytes, row.delivered_bytes), (size, size, size));
    assert_eq!((row.sent_bytes, row.retransmitted_bytes), (size, Some(0)));
    // 345 full segments and the rest, 440 bytes; the count may or may not include the SYN.
    assert_eq!((row.sent_packets, row.mss_bytes), (Some(346), Some(1448)));
    assert!(matches!(row.delivered_packets, Some(346 | 347)), "{row:?}");
    assert_eq!((row.received_bytes, row.retransmitted_packets), (Some(0), Some(0)));
    assert_eq!((&*row.workload, &*row.cc, row.cc_source.name()), ("file", "cubic", "scenario"));
    let took = row.completion_ns.unwrap();
    assert_eq!(row.start_ns.unwrap() + took, row.end_ns);
    let busy = row.busy_ns.unwrap();
    assert!((415_000_000..=took).contains(&busy), "{busy} of {took}");
    let (least, smooth) = (row.rtt_min_ns.unwrap(), row.srtt_ns.unwrap());
    assert!((RTT_NS..RTT_NS + 5_000_000).contains(&least) && smooth >= least, "{row:?}");
    assert!(records.epoch_unix_ns > 1_700_000_000_000_000_000);
    Ok(())
}

/// Every fiftieth packet is lost, including probes of the emulator: the connection retransmits what
/// it lost on the link.
pub fn what_the_link_loses_is_sent_again() -> Result<(), Skipped> {
    let link = format!("{TEN_MEGABIT}\nloss = {{ every = 50 }}");
    let flow = "cc = \"cubic\"\nworkload = { file = \"600 kB\" }";
    let (records, health) = sound_run(&text("8 s", &link, flow))?;
    let row = only(&records);
    assert!(row.completion_ns.is_some(), "{row:?}");
    assert_eq!(row.acked_bytes, Some(600_000));
    let end = row.end_ns;
    let until = records.links.iter().filter(|one| one.time_ns <= end);
    let LinkSample { lost_packets, .. } = until.max_by_key(|one| one.time_ns).unwrap();
    let probes: u64 = health.probes.iter().map(|one| one.sent - one.round_trips.len() as u64).sum();
    let (again, bytes) = (row.retransmitted_packets.unwrap(), row.retransmitted_bytes.unwrap());
    // The counters are seen a sampling interval late, and a tail loss probe or a segment that RACK
    // declared lost may be unnecessary.
    assert!(again + probes + 2 >= lost_packets, "{again} of {lost_packets}, {probes} probes");
    assert!(again <= lost_packets + 8, "{again} of {lost_packets}");
    assert!(bytes <= again * 1448 && bytes + 2 * 1448 >= again * 1448, "{bytes} in {again}");
    assert_eq!(row.sent_bytes, Some(600_000 + bytes));
    Ok(())
}

/// A window of 25 kB over 60 ms is a third of the link: the receiver limits a bulk flow for most of
/// its time, and the flow is cut off.
pub fn a_narrow_window_limits_for_most_of_the_time() -> Result<(), Skipped> {
    let flow = "cc = \"cubic\"\nreceive_window = \"25 kB\"";
    let (records, _) = sound_run(&text("4 s", TEN_MEGABIT, flow))?;
    let row = only(&records);
    assert_eq!((row.completion_ns, row.size_bytes), (None, None));
    assert_eq!(&*row.workload, "bulk");
    let life = row.end_ns - row.start_ns.unwrap();
    let (busy, limited) = (row.busy_ns.unwrap(), row.receive_limited_ns.unwrap());
    assert!(busy <= life && busy + 3 * RTT_NS >= life, "{busy} of {life}");
    assert!(limited <= busy && limited * 10 >= busy * 6, "{limited} of {busy}");
    // Acknowledged data has been delivered, and was sent.
    let (acked, delivered) = (row.acked_bytes.unwrap(), row.delivered_bytes.unwrap());
    let new = row.sent_bytes.unwrap() - row.retransmitted_bytes.unwrap();
    assert!(acked <= new && delivered + 50_000 >= acked && acked + 200_000 >= delivered);
    Ok(())
}

/// A page has a row for each connection, with eight bytes read for each requested object.
pub fn a_page_has_a_row_for_each_connection() -> Result<(), Skipped> {
    let flow = "cc = \"cubic\"\nworkload = { page = { http = \"1.1\", connections = 6 } }";
    let (records, _) = sound_run(&text("8 s", TEN_MEGABIT, flow))?;
    let rows = &records.connections;
    let used: std::collections::BTreeSet<u32> =
        records.objects.iter().map(|object| object.connection).collect();
    assert_eq!(rows.len(), used.len());
    let sum = |get: fn(&ConnectionRecord) -> Option<u64>| -> u64 {
        rows.iter().map(|row| get(row).unwrap()).sum()
    };
    let bytes: u64 = records.objects.iter().map(|object| object.size_bytes).sum();
    assert_eq!((sum(|row| row.size_bytes), sum(|row| row.acked_bytes)), (bytes, bytes));
    assert_eq!(sum(|row| row.received_bytes), 8 * records.objects.len() as u64);
    assert_eq!(sum(|row| row.sent_bytes), records.flows[0].sent_bytes);
    assert!(records.transfers.is_empty());
    Ok(())
}

/// A transfer that a stop cuts off has an end, and its whole size, but no completion time.
pub fn what_a_stop_cuts_off_is_not_complete() -> Result<(), Skipped> {
    let mix = "mix = { arrival_interval = \"300 ms\", sizes = \"1 MB\" }";
    let flow = format!("cc = \"cubic\"\nstop = \"2 s\"\nworkload = {{ {mix} }}");
    let (records, _) = sound_run(&text("5 s", TEN_MEGABIT, &flow))?;
    let rows = &records.connections;
    assert!(rows.iter().all(|row| row.size_bytes == Some(1_000_000)), "{rows:?}");
    let whole = |row: &&ConnectionRecord| row.delivered_bytes == row.size_bytes;
    assert_eq!(
        rows.iter().filter(|row| row.completion_ns.is_some()).count(),
        rows.iter().filter(whole).count()
    );
    assert!(
        rows.iter().any(|row| row.completion_ns.is_none() && row.end_ns < 4_900_000_000),
        "{rows:?}"
    );
    Ok(())
}
