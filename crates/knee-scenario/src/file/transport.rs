//! Settings of both ends of a connection.

use crate::read::{Optional, Value, table, words};
use crate::source::Reading;
use crate::tree::Node;
use knee_units::{Bytes, Time};
use schemars::JsonSchema;

table! {
    /// Settings of both ends of a connection.
    "the transport" TransportFile {
        /// Payload of a full segment. Default: 1448 B; 1428 B with several
        /// paths.
        mss: Optional<Bytes>,
        /// IP and TCP headers of each segment and ACK. Default: 52 B; 72 B
        /// with several paths, whose data sequence signal takes 20 B (RFC
        /// 8684, section 3.3).
        header: Optional<Bytes>,
        /// Initial window in segments. Default: 10 (RFC 6928).
        initial_window: Optional<u64>,
        /// By whose rules the receiver acknowledges. Default: "tcp".
        acks: Optional<AcksWord>,
        /// Segments that one delayed ACK covers; 1 acknowledges each.
        /// Default: 2.
        ack_every: Optional<u64>,
        /// Payload after which an ACK is due too, however few segments hold
        /// it. Default: none.
        ack_bytes: Optional<Bytes>,
        /// The sender asks for ACKs as it needs them
        /// (draft-ietf-quic-ack-frequency). Default: none.
        ack_frequency: Optional<AckFrequencyFile>,
        /// Longest time an ACK is held back. Default: 40 ms; 25 ms with QUIC's
        /// ACKs.
        ack_delay: Optional<Time>,
        /// Segments acknowledged at once at the start. Default: 16; 0 with
        /// QUIC's ACKs.
        quick_acks: Optional<u64>,
        /// What the receiver lies about (RFC 9743, section 7.6). Default:
        /// none.
        receiver: Optional<ReceiverFile>,
        /// Receive window, "unlimited", or "auto": tuned as Linux does, up
        /// to 6 MiB, for flows with several paths. Unlimited is TCP's
        /// largest, 1 GiB. Default: "unlimited"; "auto" with several paths;
        /// 6 MiB where the receiver conceals losses.
        receive_window: Optional<WindowFile>,
        /// Whether segments are paced. Default: "auto".
        pacing: Optional<PacingWord>,
        /// Use ECN if the controller can. Default: false.
        ecn: Optional<bool>,
        /// How the delivery rate is sampled. Default: "linux".
        sampler: Optional<SamplerWord>,
        /// How recovery from losses ends. Default: "auto".
        recovery: Optional<RecoveryWord>,
        /// Smallest retransmission timeout. Default: 200 ms.
        min_rto: Optional<Time>,
        /// Largest burst that segmentation offload lets leave at once.
        /// Default: 64 KiB.
        max_burst: Optional<Bytes>,
    }
}

table! {
    /// What the sender asks of ACKs, anew with each that comes: one for each
    /// part of its window and of its smoothed RTT.
    "an ACK frequency" AckFrequencyFile {
        /// ACKs in a round trip. Default: 4.
        per_round: Optional<u64>,
        /// The receiver takes no shorter delay. Default: 1 ms.
        min_delay: Optional<Time>,
        /// Distance from a missing segment at which one that arrives is
        /// acknowledged at once; with 1 whatever is out of order, with 0
        /// nothing. Default: 1.
        reordering: Optional<u64>,
    }
}

table! {
    /// A receiver that lies to get more than its share. For bulk over one path.
    "a receiver" ReceiverFile {
        /// It acknowledges everything below the highest segment that arrived,
        /// so that no loss is ever seen; what was lost is never delivered.
        /// Default: false.
        conceal_loss: Optional<bool>,
        /// Segments beyond the highest one that arrived which its ACKs claim,
        /// at most: it claims one more with every fourth ACK, and conceals
        /// losses. Default: 0.
        ack_ahead: Optional<u64>,
        /// ACKs in place of each that acknowledges something new; all but the
        /// last acknowledge a part of a segment. Default: 1.
        ack_division: Optional<u64>,
        /// It says of each segment that fills a gap that it came twice
        /// (D-SACK), so that reductions are undone. Default: false.
        false_duplicates: Optional<bool>,
    }
}

words! {
    /// By whose rules a receiver acknowledges.
    "ACKs" AcksWord {
        /// Linux's TCP: at once what ends a burst, is out of order or fills a
        /// gap, and the first segments.
        Tcp = "tcp",
        /// QUIC's: at once what is out of order or fills a gap, and a change of
        /// marking (RFC 9000, section 13.2).
        Quic = "quic",
    }
}

words! {
    /// Whether segments are paced.
    "pacing" PacingWord {
        /// As the controller needs it.
        Auto = "auto",
        /// Always.
        On = "on",
        /// Never, even if the controller asks for it.
        Off = "off",
    }
}

words! {
    /// How the delivery rate is sampled.
    "sampler" SamplerWord {
        /// As Linux does.
        Linux = "linux",
        /// With the defect of ns-3 up to 3.40.
        Ns3V335 = "ns3-3.35",
    }
}

words! {
    /// How recovery from losses ends.
    "recovery" RecoveryWord {
        /// As the controller needs it; all that Knee has need TCP's.
        Auto = "auto",
        /// As TCP's: when all that was sent before it began is acknowledged
        /// (RFC 6675).
        Tcp = "tcp",
        /// As QUIC's: when something sent after it began is acknowledged, one
        /// round trip (RFC 9002, section 7.3.2).
        Quic = "quic",
    }
}

words! {
    /// A receive window without a size.
    "receive window" WindowWord {
        /// Never the limit.
        Unlimited = "unlimited",
        /// Tuned to what is delivered, as Linux does.
        Auto = "auto",
    }
}

/// A receive window.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum WindowFile {
    /// One without a size.
    Word(WindowWord),
    /// So many bytes.
    Bytes(Bytes),
}

impl Value for WindowFile {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<WindowFile> {
        let mut words = WindowWord::WORDS.iter();
        match words.find(|(word, _)| node.as_str() == Some(*word)) {
            Some((_, word)) => Some(WindowFile::Word(*word)),
            None => Bytes::read(node, reading).map(WindowFile::Bytes),
        }
    }
    fn write(&self) -> Node {
        match self {
            WindowFile::Word(word) => word.write(),
            WindowFile::Bytes(bytes) => bytes.write(),
        }
    }
}
