//! The past of clients' prefixes: what is known of a connection before it begins.

use super::observed::{connection, files};
use crate::error::Error;
use ipnet::IpNet;
use knee_advise::{MANY_RETRANSMITTED, SITES_RTT_S};
use knee_record::read_connections;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Fewest connections of a prefix that make a history.
const CONNECTIONS_MIN: usize = 10;
/// Number of classes of RTT: each has twice the RTT of the one before.
const RTT_CLASSES: i32 = 6;

/// RTT and retransmissions of prefixes, as classes with a name.
#[derive(Clone, Debug, Default)]
pub struct History {
    names: BTreeMap<IpNet, String>,
}

#[derive(Default)]
struct Past {
    rtts_s: Vec<f64>,
    sent_bytes: u64,
    retransmitted_bytes: u64,
}

impl History {
    /// Reads the connections of files and folders, as [`Observed::read`](super::Observed::read) does.
    ///
    /// # Errors
    /// A file that cannot be read or has other contents; a folder without connections.
    pub fn read(paths: &[PathBuf]) -> Result<History, Error> {
        let mut past: BTreeMap<IpNet, Past> = BTreeMap::new();
        for path in paths {
            for file in files(path)? {
                for row in read_connections(&file)? {
                    let (Ok(prefix), Some(one)) = (row.prefix.parse(), connection(&row)) else {
                        continue;
                    };
                    let own = past.entry(prefix).or_default();
                    own.rtts_s.push(one.rtt_min_s);
                    own.sent_bytes += one.sent_bytes;
                    own.retransmitted_bytes += one.retransmitted_bytes;
                }
            }
        }
        let name = |(prefix, past): (IpNet, Past)| Some((prefix, past.name()?));
        Ok(History { names: past.into_iter().filter_map(name).collect() })
    }

    /// Returns the name of a prefix's class: its median of the smallest RTTs, in classes that double
    /// from 15 ms on, and the retransmitted part of its payload, below 1 % or not. `None` if it has
    /// fewer than ten connections.
    pub fn name_of(&self, prefix: IpNet) -> Option<String> {
        self.names.get(&prefix).cloned()
    }
}

impl Past {
    fn name(mut self) -> Option<String> {
        if self.rtts_s.len() < CONNECTIONS_MIN {
            return None;
        }
        self.rtts_s.sort_by(f64::total_cmp);
        let rtt_s = self.rtts_s[self.rtts_s.len() / 2];
        let limit_ms = |class: i32| 1e3 * SITES_RTT_S * 2f64.powi(class);
        let class = (rtt_s / SITES_RTT_S).log2().ceil().max(0.0) as i32;
        let rtt = match class.min(RTT_CLASSES - 1) {
            0 => format!("RTT up to {} ms", limit_ms(0)),
            class if class == RTT_CLASSES - 1 => format!("RTT over {} ms", limit_ms(class - 1)),
            class => format!("RTT {} to {} ms", limit_ms(class - 1), limit_ms(class)),
        };
        let part = self.retransmitted_bytes as f64 / self.sent_bytes.max(1) as f64;
        let much = if part < MANY_RETRANSMITTED { "under" } else { "over" };
        Some(format!("{rtt}, {much} {} % retransmitted", 100.0 * MANY_RETRANSMITTED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bounds belong to the class below for RTTs, and to the class above for retransmissions.
    #[test]
    fn classes_double_from_fifteen_milliseconds() {
        for (rtt_ms, retransmitted, name) in [
            (0.05, 0, "RTT up to 15 ms, under 1 % retransmitted"),
            (15.0, 99, "RTT up to 15 ms, under 1 % retransmitted"),
            (15.1, 100, "RTT 15 to 30 ms, over 1 % retransmitted"),
            (30.0, 100, "RTT 15 to 30 ms, over 1 % retransmitted"),
            (59.0, 0, "RTT 30 to 60 ms, under 1 % retransmitted"),
            (240.0, 0, "RTT 120 to 240 ms, under 1 % retransmitted"),
            (241.0, 0, "RTT over 240 ms, under 1 % retransmitted"),
            (9000.0, 9999, "RTT over 240 ms, over 1 % retransmitted"),
        ] {
            let past = |count: usize| Past {
                rtts_s: vec![rtt_ms / 1e3; count],
                sent_bytes: 10_000,
                retransmitted_bytes: retransmitted,
            };
            assert_eq!(past(10).name().as_deref(), Some(name));
            assert_eq!(past(9).name(), None);
        }
        // The median, not the mean.
        let mut rtts_s = vec![0.02; 6];
        rtts_s.extend([5.0; 4]);
        let past = Past { rtts_s, sent_bytes: 0, retransmitted_bytes: 0 };
        assert_eq!(past.name().unwrap(), "RTT 15 to 30 ms, under 1 % retransmitted");
    }
}
