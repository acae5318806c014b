//! Beginning and end of recovery.
//!
//! QUIC's recovery lasts one round trip (RFC 9002, section 7.3.2). TCP's lasts until everything
//! sent before it began has arrived, including retransmissions (RFC 6582, section 3.2), and another
//! one follows at once if later losses remain. QUIC does not send a packet twice; whatever leaves
//! first after a loss was found takes the place of the retransmission.
//!
//! Packets are identified by their order of sending.

use knee_cc::{Recovery, RecoveryPeriod};

/// Effect of an acknowledgement or a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// A recovery began.
    Begun,
    /// A recovery ended.
    Ended,
    /// A recovery ended, and the next one began.
    Next,
}

/// Recovery of a path.
#[derive(Clone, Copy, Debug)]
pub struct Episode {
    period: RecoveryPeriod,
    state: Recovery,
    /// Packets sent before this belong to the last recovery.
    begun: u64,
    /// Once a packet from here on is acknowledged, the losses of the recovery have been repaired.
    repeated: u64,
    /// Value that `repeated` takes for packets that were sent later and are lost.
    later: Option<u64>,
    /// Successor of the highest acknowledged order.
    acknowledged: u64,
}

impl Episode {
    /// Makes the state before any recovery.
    pub fn new(period: RecoveryPeriod) -> Episode {
        Episode {
            period,
            state: Recovery::Open,
            begun: 0,
            repeated: 0,
            later: None,
            acknowledged: 0,
        }
    }

    /// Returns the state in TCP's terms.
    pub fn state(&self) -> Recovery {
        self.state
    }

    /// Notes the loss of the packet sent as number `order`; `next` leaves next.
    pub fn on_lost(&mut self, order: u64, next: u64) {
        let is_of_last = order < self.begun;
        if is_of_last && self.state != Recovery::Open {
            self.repeated = next;
        } else if !is_of_last || self.period == RecoveryPeriod::Tcp {
            self.later = Some(next);
        }
    }

    /// Returns whether a recovery begins, after all losses of an ACK were noted.
    pub fn begin(&mut self, next: u64) -> Change {
        let may = self.state == Recovery::Open || self.period == RecoveryPeriod::Quic;
        if !may || self.later.is_none() {
            return Change::None;
        }
        self.start(Recovery::Recovery, next);
        Change::Begun
    }

    /// Notes that everything in flight was declared lost.
    pub fn on_timeout(&mut self, next: u64) {
        self.start(Recovery::Loss, next);
    }

    fn start(&mut self, state: Recovery, next: u64) {
        (self.state, self.begun, self.repeated) = (state, next, next);
        self.later = None;
    }

    /// Processes the acknowledgement of the packet sent as number `order`; `oldest` is the order of
    /// the packet that has been in flight longest.
    pub fn on_acknowledged(&mut self, order: u64, oldest: Option<u64>, next: u64) -> Change {
        self.acknowledged = self.acknowledged.max(order + 1);
        if self.state == Recovery::Open {
            return Change::None;
        }
        let ends = match self.period {
            RecoveryPeriod::Quic => self.acknowledged > self.begun,
            RecoveryPeriod::Tcp => {
                self.acknowledged > self.repeated
                    && oldest.is_none_or(|oldest| oldest >= self.begun)
            }
        };
        if !ends {
            return Change::None;
        }
        let later = self.later.take();
        self.state = Recovery::Open;
        let holes = later.is_some_and(|repeated| self.acknowledged <= repeated);
        if holes && self.period == RecoveryPeriod::Tcp {
            self.start(Recovery::Recovery, next);
            return Change::Next;
        }
        Change::Ended
    }

    /// Ends the recovery, because nothing was lost after all.
    pub fn undo(&mut self) {
        (self.state, self.later) = (Recovery::Open, None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sent: 0 to 9. Lost: 2. Then 10 leaves, and so on.
    #[test]
    fn quic_recovers_for_a_round_trip_and_tcp_until_holes_are_filled() {
        for (period, ends_at) in [(RecoveryPeriod::Quic, 10), (RecoveryPeriod::Tcp, 10)] {
            let mut episode = Episode::new(period);
            episode.on_acknowledged(5, Some(2), 10);
            episode.on_lost(2, 10);
            assert_eq!(episode.begin(10), Change::Begun);
            for order in 6..10 {
                assert_eq!(episode.on_acknowledged(order, Some(order + 1), 14), Change::None);
            }
            assert_eq!(episode.on_acknowledged(ends_at, Some(11), 15), Change::Ended);
        }
        let mut episode = Episode::new(RecoveryPeriod::Tcp);
        episode.on_lost(2, 10);
        assert_eq!(episode.begin(10), Change::Begun);
        // Found later, when 14 leaves next: 7 is lost too, and so is 12, which was sent since.
        episode.on_lost(7, 14);
        episode.on_lost(12, 15);
        assert_eq!(episode.begin(15), Change::None);
        assert_eq!(episode.on_acknowledged(11, Some(13), 18), Change::None);
        // 14 repairs 7; the repair of 12 is still in flight.
        assert_eq!(episode.on_acknowledged(14, Some(15), 20), Change::Next);
        assert_eq!(episode.on_acknowledged(19, Some(20), 24), Change::None);
        assert_eq!(episode.on_acknowledged(20, Some(21), 25), Change::Ended);
    }

    /// Losses from before a QUIC recovery began do not start a second one.
    #[test]
    fn losses_of_the_same_flight_cost_once() {
        let mut episode = Episode::new(RecoveryPeriod::Quic);
        episode.on_lost(2, 10);
        assert_eq!(episode.begin(10), Change::Begun);
        episode.on_lost(3, 11);
        assert_eq!(episode.begin(11), Change::None);
        assert_eq!(episode.on_acknowledged(10, Some(4), 12), Change::Ended);
        episode.on_lost(4, 12);
        assert_eq!(episode.begin(12), Change::None);
        episode.on_lost(11, 13);
        assert_eq!(episode.begin(13), Change::Begun);
    }
}
