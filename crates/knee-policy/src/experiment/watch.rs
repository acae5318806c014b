//! Observes this host's connections as they end, and bounds the times at which they began.

use crate::PolicyError;
use knee_host::{ClosedSockets, HostError, TcpInfo, each_connection};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// Limits of one step: waiting time, and number of reports.
const REPORT_TIMEOUT: Duration = Duration::from_millis(100);
const BATCH: u64 = 50_000;

/// Report of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ConnectionReport<'t> {
    pub local_port: u16,
    pub remote: IpAddr,
    /// Lower bound of its start; `None` if it may have begun before the first listing.
    pub not_before: Option<Duration>,
    /// `TCP_INFO`, final if the connection has ended.
    pub info: TcpInfo,
    /// Bytes retransmitted and sent since the previous report.
    pub again: u64,
    pub sent: u64,
    pub has_ended: bool,
    /// Controller of a live connection that no earlier listing had.
    pub began_with: Option<&'t str>,
}

/// A live connection.
#[derive(Clone, Copy, Debug)]
struct LiveConnection {
    not_before: Option<Duration>,
    again: u64,
    sent: u64,
}

/// Receives ends of connections and periodically lists the live ones: the end does not reveal the
/// start, but a connection absent from a listing began after it.
pub(crate) struct Watch {
    closed: ClosedSockets,
    interval: Duration,
    /// The two latest listings, the newest first, with their times; `None` before there are any.
    looks: [(Option<Duration>, BTreeMap<u64, LiveConnection>); 2],
}

/// Numbers of reports received and lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub reports: u64,
    pub lost: u64,
}

impl Watch {
    /// Starts to listen. Times are those passed to [`Watch::step`].
    pub fn begin(interval: Duration) -> Result<Watch, PolicyError> {
        let closed = ClosedSockets::listen()?;
        Ok(Watch { closed, interval, looks: Default::default() })
    }

    /// Reports ended connections, without waiting if `lists`, and lists the live ones if that or
    /// when due.
    pub fn step(
        &mut self,
        now: Duration,
        lists: bool,
        mut each: impl FnMut(ConnectionReport<'_>),
    ) -> Result<Counted, PolicyError> {
        let is_due = self.looks[0].0.is_none_or(|at| now.saturating_sub(at) >= self.interval);
        if is_due && !lists {
            self.look(now, &mut each)?;
        }
        let Watch { closed, looks, .. } = self;
        let unseen = LiveConnection { not_before: looks[1].0, again: 0, sent: 0 };
        let patience = if lists { Duration::ZERO } else { REPORT_TIMEOUT };
        let heard = closed.hear(patience, BATCH, |socket| {
            let Some(info) = socket.info.filter(|_| socket.remote.port() != 0) else { return };
            let known = looks.iter_mut().find_map(|(_, living)| living.remove(&socket.cookie));
            each(report_of(&socket, info, known.unwrap_or(unseen), true));
        });
        let heard = heard
            .map_err(|error| HostError::call("receive reports of connections that end", error))?;
        // Those that have ended are reported by now, and are not in the list.
        if lists {
            self.look(now, &mut each)?;
        }
        Ok(Counted { reports: heard.reports, lost: heard.dropped })
    }

    fn look(
        &mut self,
        now: Duration,
        each: &mut impl FnMut(ConnectionReport<'_>),
    ) -> Result<(), PolicyError> {
        let (before, seen) = std::mem::take(&mut self.looks[0]);
        let mut living = BTreeMap::new();
        each_connection(|socket| {
            let Some(info) = socket.info else { return };
            let unseen = LiveConnection { not_before: before, again: 0, sent: 0 };
            let known = seen.get(&socket.cookie).copied().unwrap_or(unseen);
            let is_new = before.is_some() && !seen.contains_key(&socket.cookie);
            let began_with = socket.controller.filter(|_| is_new);
            each(ConnectionReport { began_with, ..report_of(&socket, info, known, false) });
            let counted = LiveConnection {
                not_before: known.not_before,
                again: info.retransmitted_bytes,
                sent: info.sent_bytes,
            };
            living.insert(socket.cookie, counted);
        })?;
        self.looks = [(Some(now), living), (before, seen)];
        Ok(())
    }
}

fn report_of(
    socket: &knee_host::TcpSocket<'_>,
    info: TcpInfo,
    known: LiveConnection,
    has_ended: bool,
) -> ConnectionReport<'static> {
    ConnectionReport {
        local_port: socket.local.port(),
        remote: socket.remote.ip(),
        not_before: known.not_before,
        info,
        again: info.retransmitted_bytes.saturating_sub(known.again),
        sent: info.sent_bytes.saturating_sub(known.sent),
        has_ended,
        began_with: None,
    }
}
