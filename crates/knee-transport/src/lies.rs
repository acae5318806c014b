//! Receivers that lie (RFC 9743, section 7.6): what they tell a sender to get
//! more than their share.
//!
//! ACKs before arrival, ACKs of what was lost and ACK division are those of
//! Savage, Cardwell, Wetherall and Anderson, "TCP Congestion Control with a
//! Misbehaving Receiver" (1999); false duplicates turn D-SACK (RFC 2883) against
//! the undoing of needless reductions (RFC 3708; Linux's `tcp_try_undo_recovery`).

/// ACKs after which a receiver dares to claim one segment more: a sender that
/// doubles its window in each round has then sent what they claim.
const ACKS_PER_STEP: u32 = 4;

/// What a receiver lies about. The default is an honest one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lies {
    /// Acknowledges everything below the highest segment that arrived, so that
    /// no loss is ever seen. The application gets what arrived, with gaps; a
    /// segment that others overtook is discarded.
    pub conceal_loss: bool,
    /// Segments beyond the highest one that arrived which ACKs claim too
    /// (optimistic ACKs). A receiver that does so conceals losses as well. It
    /// begins with none, claims one more with every fourth ACK, and starts
    /// again when it is sent something twice: an ACK of what was never sent
    /// counts for nothing (RFC 9293, section 3.10.7.4).
    pub ack_ahead: u32,
    /// ACKs in place of each that acknowledges something new: 1. The others
    /// acknowledge a part of a segment each, and so none as a whole (ACK
    /// division).
    pub ack_division: u32,
    /// Says of each segment that fills a gap that it has arrived twice (D-SACK),
    /// as if sending it again had been needless.
    pub false_duplicates: bool,
}

impl Default for Lies {
    fn default() -> Lies {
        Lies { conceal_loss: false, ack_ahead: 0, ack_division: 1, false_duplicates: false }
    }
}

impl Lies {
    /// Whether it does none of this.
    pub fn is_honest(&self) -> bool {
        Lies { ack_division: self.ack_division.max(1), ..*self } == Lies::default()
    }

    /// Whether losses are concealed, for whatever reason.
    pub fn conceals(&self) -> bool {
        self.conceal_loss || self.ack_ahead > 0
    }
}

/// A receiver's lies under way.
#[derive(Clone, Debug)]
pub(crate) struct Liar {
    pub lies: Lies,
    /// Segments claimed beyond the highest one that arrived.
    ahead: u32,
    /// ACKs since that last grew.
    acks: u32,
}

impl Liar {
    /// None for an honest receiver.
    pub fn new(lies: Lies) -> Option<Box<Liar>> {
        (!lies.is_honest()).then(|| Box::new(Liar { lies, ahead: 0, acks: 0 }))
    }

    /// Segments that the ACK to send now claims beyond those that arrived.
    pub fn claim(&mut self) -> u32 {
        self.acks += 1;
        if self.acks >= ACKS_PER_STEP && self.ahead < self.lies.ack_ahead {
            self.ahead += 1;
            self.acks = 0;
        }
        self.ahead
    }

    /// A segment came that is there: the sender did not believe what was claimed.
    pub fn on_again(&mut self) {
        self.ahead = 0;
        self.acks = 0;
    }
}
