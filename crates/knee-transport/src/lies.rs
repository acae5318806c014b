//! Receivers that lie (RFC 9743, section 7.6) to make a sender send more than their share.
//!
//! ACKs before arrival, ACKs of lost segments and ACK division are from Savage,
//! Cardwell, Wetherall and Anderson, "TCP Congestion Control with a Misbehaving
//! Receiver" (1999); false duplicates turn D-SACK (RFC 2883) against the undoing of
//! unnecessary reductions (RFC 3708; Linux's `tcp_try_undo_recovery`).

/// ACKs after which a receiver claims one segment more: a sender that doubles
/// its window in each round has by then sent what they claim.
const ACKS_PER_STEP: u32 = 4;

/// Lies of a receiver. The default is honest.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// Whether to acknowledge everything below the highest segment that
    /// arrived, so that no loss is ever visible. The application gets what
    /// arrived, with gaps; a segment that others overtook is discarded.
    pub conceal_loss: bool,
    /// Segments beyond the highest one that arrived that ACKs also claim
    /// (optimistic ACKs). A receiver that does this also conceals losses. It
    /// begins with none, claims one more with every fourth ACK, and starts over
    /// when it receives a segment twice: an ACK for data that was never sent is
    /// ignored (RFC 9293, section 3.10.7.4).
    pub ack_ahead: u32,
    /// Number of ACKs sent instead of each one that acknowledges new data: 1.
    /// The additional ones each acknowledge a part of a segment, and so no
    /// whole segment (ACK division).
    pub ack_division: u32,
    /// Whether to report each segment that fills a gap as having arrived twice
    /// (D-SACK), as if its retransmission had been unnecessary.
    pub false_duplicates: bool,
}

impl Default for Lies {
    fn default() -> Lies {
        Lies { conceal_loss: false, ack_ahead: 0, ack_division: 1, false_duplicates: false }
    }
}

impl Lies {
    /// Whether there are no lies.
    pub fn is_honest(&self) -> bool {
        Lies { ack_division: self.ack_division.max(1), ..*self } == Lies::default()
    }

    /// Whether losses are concealed, for any reason.
    pub fn conceals(&self) -> bool {
        self.conceal_loss || self.ack_ahead > 0
    }
}

/// A lying receiver's state.
#[derive(Clone, Debug)]
pub(crate) struct Liar {
    pub lies: Lies,
    /// Segments claimed beyond the highest one that arrived.
    ahead: u32,
    /// ACKs since `ahead` last grew.
    acks: u32,
}

impl Liar {
    /// Creates the state of a lying receiver, or returns `None` for an honest one.
    pub fn new(lies: Lies) -> Option<Box<Liar>> {
        (!lies.is_honest()).then(|| Box::new(Liar { lies, ahead: 0, acks: 0 }))
    }

    /// Returns the segments that the next ACK claims beyond those that arrived.
    pub fn claim(&mut self) -> u32 {
        self.acks += 1;
        if self.acks >= ACKS_PER_STEP && self.ahead < self.lies.ack_ahead {
            self.ahead += 1;
            self.acks = 0;
        }
        self.ahead
    }

    /// Called when a segment arrives again: the sender did not accept the claim.
    pub fn on_again(&mut self) {
        self.ahead = 0;
        self.acks = 0;
    }
}
