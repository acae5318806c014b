//! Service of packets: the departure of each is computed from the departures before it.

mod rate;
mod trace;

use crate::RateModel;
use knee_units::Time;
use rate::RateServer;
use trace::TraceServer;

pub(crate) use trace::{NANOS_PER_MILLISECOND, OPPORTUNITY_BYTES, period};

/// Serves packets one after the other.
#[derive(Clone)]
pub(crate) enum Server {
    /// At once.
    Unlimited,
    /// At a rate, constant or in steps.
    Rate(RateServer),
    /// At recorded opportunities.
    Trace(TraceServer),
}

impl Server {
    pub fn new(model: &RateModel) -> Server {
        match model {
            RateModel::Unlimited => Server::Unlimited,
            RateModel::Constant(rate) => Server::Rate(RateServer::new(&[(Time::ZERO, *rate)])),
            RateModel::Steps(steps) => Server::Rate(RateServer::new(&steps.0)),
            RateModel::Trace(trace) => Server::Trace(TraceServer::new(trace.clone())),
        }
    }

    /// Returns the departure of a packet of `size` bytes that is ready at
    /// `ready`, after all packets served so far; [`Time::MAX`] for never.
    #[inline]
    pub fn serve(&mut self, ready: Time, size: u32) -> Time {
        match self {
            Server::Rate(server) => server.serve(ready, size),
            Server::Trace(server) => server.serve(ready, size),
            Server::Unlimited => ready,
        }
    }

    /// Returns when the service of a packet ready at `ready` would begin.
    pub fn start(&self, ready: Time) -> Time {
        match self {
            Server::Unlimited => ready,
            Server::Rate(server) => server.start(ready),
            Server::Trace(server) => server.start(ready),
        }
    }

    /// Returns when the service of a packet ready at `ready` would begin, if
    /// `bytes` had to be served before it.
    pub fn start_behind(&self, ready: Time, mut bytes: u64) -> Time {
        if bytes == 0 {
            return self.start(ready);
        }
        let mut copy = self.clone();
        while bytes > 0 {
            let piece = bytes.min(1 << 30);
            copy.serve(ready, piece as u32);
            bytes -= piece;
        }
        copy.start(ready)
    }

    /// Returns when all work accepted so far is done, and how much more could
    /// have been done by then, in bit/s x ns: the rest of an opportunity, less
    /// the remaining fraction of a nanosecond.
    pub fn end(&self) -> (Time, i128) {
        match self {
            Server::Unlimited => (Time::ZERO, 0),
            Server::Rate(server) => server.end(),
            Server::Trace(server) => server.end(),
        }
    }

    /// Discards all work not done by `at`: the queue was emptied.
    pub fn clear(&mut self, at: Time) {
        match self {
            Server::Unlimited => {}
            Server::Rate(server) => server.clear(at),
            Server::Trace(server) => server.clear(),
        }
    }
}
