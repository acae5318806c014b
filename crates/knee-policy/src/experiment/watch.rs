//! Connections of this host as they end, with what is known of when they began.

use crate::PolicyError;
use knee_host::{ClosedSockets, HostError, TcpInfo, each_connection};
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::time::Duration;

/// How long one step waits for news, at most, and how many it takes.
const PATIENCE: Duration = Duration::from_millis(100);
const BATCH: u64 = 50_000;

/// What there is to tell of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Told {
    pub local_port: u16,
    pub remote: IpAddr,
    /// It began then or later.
    pub not_before: Duration,
    /// `TCP_INFO`, at its end where it has ended.
    pub info: TcpInfo,
    /// Bytes retransmitted and sent since it was told of before.
    pub again: u64,
    pub sent: u64,
    pub has_ended: bool,
}

/// A connection that lives.
#[derive(Clone, Copy, Debug)]
struct Living {
    not_before: Duration,
    again: u64,
    sent: u64,
}

/// Hears of ends, and looks at what lives from time to time: an end does not tell the
/// beginning, but who was not there at a look began after it.
pub(crate) struct Watch {
    closed: ClosedSockets,
    interval: Duration,
    /// The last look first, each with when it began.
    looks: [(Duration, BTreeMap<u64, Living>); 2],
    looked: bool,
}

/// Reports that came, and those that were lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    pub reports: u64,
    pub lost: u64,
}

impl Watch {
    /// Begins to hear. Times are those that [`Watch::step`] is told.
    pub fn begin(interval: Duration) -> Result<Watch, PolicyError> {
        let closed = ClosedSockets::listen()?;
        Ok(Watch { closed, interval, looks: Default::default(), looked: false })
    }

    /// Takes what has ended, and looks when it is time.
    pub fn step(
        &mut self,
        now: Duration,
        mut each: impl FnMut(Told),
    ) -> Result<Counted, PolicyError> {
        if !self.looked || now.saturating_sub(self.looks[0].0) >= self.interval {
            self.look(now, &mut each)?;
            self.looked = true;
        }
        let Watch { closed, looks, .. } = self;
        let unseen = Living { not_before: looks[1].0, again: 0, sent: 0 };
        let heard = closed.hear(PATIENCE, BATCH, |socket| {
            let Some(info) = socket.info.filter(|_| socket.remote.port() != 0) else { return };
            let known = looks.iter_mut().find_map(|(_, living)| living.remove(&socket.cookie));
            each(told(&socket, info, known.unwrap_or(unseen), true));
        });
        let heard =
            heard.map_err(|error| HostError::call("hear of connections that end", error))?;
        Ok(Counted { reports: heard.reports, lost: heard.dropped })
    }

    fn look(&mut self, now: Duration, each: &mut impl FnMut(Told)) -> Result<(), PolicyError> {
        let (before, seen) = std::mem::take(&mut self.looks[0]);
        let mut living = BTreeMap::new();
        each_connection(|socket| {
            let Some(info) = socket.info else { return };
            let unseen = Living { not_before: before, again: 0, sent: 0 };
            let known = seen.get(&socket.cookie).copied().unwrap_or(unseen);
            each(told(&socket, info, known, false));
            let counted = Living {
                not_before: known.not_before,
                again: info.retransmitted_bytes,
                sent: info.sent_bytes,
            };
            living.insert(socket.cookie, counted);
        })?;
        self.looks = [(now, living), (before, seen)];
        Ok(())
    }
}

fn told(socket: &knee_host::TcpSocket<'_>, info: TcpInfo, known: Living, has_ended: bool) -> Told {
    Told {
        local_port: socket.local.port(),
        remote: socket.remote.ip(),
        not_before: known.not_before,
        info,
        again: info.retransmitted_bytes.saturating_sub(known.again),
        sent: info.sent_bytes.saturating_sub(known.sent),
        has_ended,
    }
}
