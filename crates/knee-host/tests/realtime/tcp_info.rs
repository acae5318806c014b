//! The decoder of `TCP_INFO` compared with the header of the C library, which it does not read:
//! each field's offset is computed from the declarations.

use knee_host::TcpInfo;
use knee_trials::{Skipped, Trial, trials};
use std::collections::BTreeMap;

const HEADER: &str = "/usr/include/linux/tcp.h";

/// Returns offset and size of each field of `struct tcp_info` in C's layout: each at a multiple of
/// its size, bit fields in one byte per line.
fn fields() -> Result<BTreeMap<String, (usize, usize)>, Skipped> {
    let header = std::fs::read_to_string(HEADER)
        .map_err(|_| Skipped::lack(format!("the host lacks {HEADER} (linux-libc-dev)")))?;
    let (_, body) = header.split_once("struct tcp_info {").unwrap();
    let (body, _) = body.split_once("\n};").unwrap();
    let mut fields = BTreeMap::new();
    let mut at = 0_usize;
    for line in body.lines() {
        let mut words = line.split_whitespace();
        let size = match words.next() {
            Some("__u8") => 1,
            Some("__u16") => 2,
            Some("__u32") => 4,
            Some("__u64") => 8,
            _ => continue,
        };
        let name = words.next().unwrap().split([':', ';']).next().unwrap();
        at = at.next_multiple_of(size);
        fields.insert(name.to_string(), (at, size));
        at += size;
    }
    Ok(fields)
}

/// Decodes a structure in which one field has a value and the others are zero.
fn with(fields: &BTreeMap<String, (usize, usize)>, name: &str, value: u64) -> Option<TcpInfo> {
    let (at, size) = *fields.get(name)?;
    let mut bytes = [0; 256];
    bytes[at..at + size].copy_from_slice(&value.to_ne_bytes()[..size]);
    Some(TcpInfo::decode(&bytes))
}

type Get = fn(&TcpInfo) -> Option<u64>;

/// Fields used for rows of connections, and the decoded value if the field is 1000.
const READ: [(&str, Get, u64); 21] = [
    ("tcpi_snd_mss", |info| Some(info.mss.into()), 1000),
    ("tcpi_last_ack_recv", |info| Some(info.last_ack_ms.into()), 1000),
    ("tcpi_rtt", |info| Some(info.srtt_us.into()), 1000),
    ("tcpi_rttvar", |info| Some(info.rttvar_us.into()), 1000),
    ("tcpi_snd_ssthresh", |info| info.threshold_packets().map(Into::into), 1000),
    ("tcpi_snd_cwnd", |info| Some(info.window.into()), 1000),
    ("tcpi_total_retrans", |info| Some(info.retransmitted_packets.into()), 1000),
    ("tcpi_pacing_rate", |info| Some(info.pacing_bps()), 8000),
    ("tcpi_bytes_acked", |info| Some(info.acked_bytes), 1000),
    ("tcpi_bytes_received", |info| Some(info.received_bytes), 1000),
    ("tcpi_min_rtt", |info| Some(info.min_rtt_us.into()), 1000),
    ("tcpi_data_segs_out", |info| Some(info.sent_packets.into()), 1000),
    ("tcpi_delivery_rate", |info| info.delivery_rate_bps, 8000),
    ("tcpi_busy_time", |info| info.busy_us, 1000),
    ("tcpi_rwnd_limited", |info| info.receive_limited_us, 1000),
    ("tcpi_sndbuf_limited", |info| info.send_buffer_limited_us, 1000),
    ("tcpi_delivered", |info| info.delivered_packets.map(Into::into), 1000),
    ("tcpi_delivered_ce", |info| Some(info.marked_packets.into()), 1000),
    ("tcpi_bytes_sent", |info| Some(info.sent_bytes), 1000),
    ("tcpi_bytes_retrans", |info| Some(info.retransmitted_bytes), 1000),
    ("tcpi_dsack_dups", |info| info.dsacks.map(Into::into), 1000),
];

fn every_field_is_read_where_the_header_has_it() -> Result<(), Skipped> {
    let fields = fields()?;
    let mut seen = 0;
    for (name, get, expected) in READ {
        // An older header may end before it.
        let Some(info) = with(&fields, name, 1000) else { continue };
        assert_eq!(get(&info), Some(expected), "{name}");
        seen += 1;
    }
    assert!(seen >= 15, "{seen} fields of {HEADER}");
    let reordered = with(&fields, "tcpi_reord_seen", 7).map(|info| info.reorderings);
    assert!(matches!(reordered, None | Some(Some(7))), "{reordered:?}");
    let timeouts = with(&fields, "tcpi_total_rto", 7).map(|info| info.total_timeouts);
    assert!(matches!(timeouts, None | Some(Some(7))), "{timeouts:?}");
    // The first bit of the byte.
    let first = if cfg!(target_endian = "little") { 1 } else { 128 };
    let limited = with(&fields, "tcpi_delivery_rate_app_limited", first).unwrap();
    assert!(limited.app_limited && !TcpInfo::default().app_limited);
    Ok(())
}

/// A field that the kernel did not send is `None`, and zero is zero.
fn what_was_not_sent_is_none() -> Result<(), Skipped> {
    let fields = fields()?;
    let (at, size) = fields["tcpi_busy_time"];
    let bytes = [0; 256];
    let short = TcpInfo::decode(&bytes[..at]);
    assert_eq!((short.busy_us, short.delivered_packets, short.dsacks), (None, None, None));
    let longer = TcpInfo::decode(&bytes[..at + size]);
    assert_eq!((longer.busy_us, longer.receive_limited_us), (Some(0), None));
    let whole = TcpInfo::decode(&bytes);
    assert_eq!((whole.total_timeouts, whole.reorderings), (Some(0), Some(0)));
    assert_eq!(TcpInfo::decode(&[]), TcpInfo::default());
    Ok(())
}

/// The trials of this file.
pub fn all() -> Vec<Trial> {
    trials![every_field_is_read_where_the_header_has_it, what_was_not_sent_is_none,]
}
