//! Lists of the open connections. They tell what reports over sock_diag lack: the controller, and
//! bounds of the time at which a connection was established.

use crate::LiveError;
use crate::assigned::Established;
use crate::observer::boot_ns;
use knee_host::{TcpInfo, each_connection};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Margin for times of the kernel that are in timer ticks, of 10 ms at most.
const TICKS_MS: u64 = 20;

/// The last two lists, the newest first: a report may have waited while the newest was made.
#[derive(Default)]
pub(crate) struct Lists([List; 2]);

/// The connections that were open at a time.
#[derive(Default)]
struct List {
    /// When it was begun and complete, nanoseconds since the boot.
    begun_ns: u64,
    complete_ns: u64,
    connections: BTreeMap<u64, Listed>,
}

/// A connection on a list.
#[derive(Clone)]
pub(crate) struct Listed {
    pub controller: Arc<str>,
    pub established: Established,
}

impl Lists {
    /// Lists the connections that are open now. `interned` returns a controller's name.
    pub fn renew(&mut self, mut interned: impl FnMut(&str) -> Arc<str>) -> Result<(), LiveError> {
        let begun_ns = boot_ns()?;
        let mut connections = BTreeMap::new();
        let before = &self.0[0];
        each_connection(|socket| {
            let Some(name) = socket.controller else { return };
            if !socket.info.is_some_and(|info| info.is_established()) {
                return;
            }
            // The end of the list follows below.
            let new = Established { not_before_ns: before.begun_ns, not_after_ns: 0 };
            let earlier = before.connections.get(&socket.cookie);
            let established = earlier.map_or(new, |earlier| earlier.established);
            connections.insert(socket.cookie, Listed { controller: interned(name), established });
        })?;
        let complete_ns = boot_ns()?;
        for one in connections.values_mut().filter(|one| one.established.not_after_ns == 0) {
            one.established.not_after_ns = complete_ns;
        }
        self.0.swap(0, 1);
        self.0[0] = List { begun_ns, complete_ns, connections };
        Ok(())
    }

    /// Returns a connection, by its cookie.
    pub fn get(&self, cookie: u64) -> Option<&Listed> {
        self.0.iter().find_map(|list| list.connections.get(&cookie))
    }

    /// Bounds of the time at which a connection was established that is on none of the lists, from
    /// a report that the kernel wrote after `written_after_ns` and that was read before
    /// `read_ns`, both since the boot. The kernel writes reports later than connections end, and
    /// much later if it is busy: a connection may have ended before a list that lacks it. So only
    /// lists count that were complete when its last ACK arrived.
    pub fn unlisted(&self, info: &TcpInfo, written_after_ns: u64, read_ns: u64) -> Established {
        let ago_ns = (u64::from(info.last_ack_ms) + TICKS_MS) * 1_000_000;
        let open_ns = written_after_ns.saturating_sub(ago_ns);
        let list = self.0.iter().find(|list| list.complete_ns <= open_ns);
        let not_before_ns = list.map_or(0, |list| list.begun_ns);
        Established { not_before_ns, not_after_ns: read_ns }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lists from 1.0 to 1.1 s and from 2.0 to 2.1 s after the boot. The report is read at 3 s; all
    /// reports that the kernel had written before 2.9 s had been read by then.
    #[test]
    fn late_reports_are_of_earlier_connections() {
        let ms = |ms: u64| ms * 1_000_000;
        let list = |begun: u64, complete: u64| List {
            begun_ns: ms(begun),
            complete_ns: ms(complete),
            connections: BTreeMap::new(),
        };
        let lists = Lists([list(2000, 2100), list(1000, 1100)]);
        let not_before = |last_ack_ms: u32, written_after: u64| {
            let mut info = TcpInfo::default();
            info.last_ack_ms = last_ack_ms;
            let found = lists.unlisted(&info, ms(written_after), ms(3000));
            assert_eq!(found.not_after_ns, ms(3000));
            found.not_before_ns / 1_000_000
        };
        // It had an ACK after the second list, which lacks it.
        assert_eq!([0, 5, 780].map(|ago| not_before(ago, 2900)), [2000; 3]);
        // It may have ended before that list was complete, or before the first.
        assert_eq!([781, 1500, 1780].map(|ago| not_before(ago, 2900)), [1000; 3]);
        assert_eq!([1781, u32::MAX].map(|ago| not_before(ago, 2900)), [0; 2]);
        // The report may have waited since before the lists.
        assert_eq!([2119, 1119].map(|written_after| not_before(0, written_after)), [1000, 0]);
    }
}
