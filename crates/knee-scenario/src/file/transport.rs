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
        /// Rules by which the receiver acknowledges. Default: "tcp".
        acks: Optional<AcksWord>,
        /// Segments that one delayed ACK covers; 1 acknowledges each segment.
        /// Default: 2.
        ack_every: Optional<u64>,
        /// Payload after which an ACK is also due, whatever the number of
        /// segments. Default: none.
        ack_bytes: Optional<Bytes>,
        /// Frequency of ACKs that the sender requests
        /// (draft-ietf-quic-ack-frequency). Default: none.
        ack_frequency: Optional<AckFrequencyFile>,
        /// Maximum delay of an ACK. Default: 40 ms; 25 ms with QUIC's ACKs.
        ack_delay: Optional<Time>,
        /// Segments acknowledged at once at the start. Default: 16; 0 with
        /// QUIC's ACKs.
        quick_acks: Optional<u64>,
        /// Misbehaviour of the receiver (RFC 9743, section 7.6). Default: none.
        receiver: Optional<ReceiverFile>,
        /// Receive window, "unlimited", or "auto": tuned as Linux does, up to 6
        /// MiB, for flows with several paths. "unlimited" is TCP's largest
        /// window, 1 GiB. Over QUIC either word means 64 MiB. Default:
        /// "unlimited"; "auto" with several paths; 6 MiB if the receiver
        /// conceals losses.
        receive_window: Optional<WindowFile>,
        /// Whether segments are paced. Default: "auto".
        pacing: Optional<PacingWord>,
        /// Whether ECN is used if the controller supports it. Default: false.
        ecn: Optional<bool>,
        /// How the delivery rate is sampled. Default: "linux".
        sampler: Optional<SamplerWord>,
        /// How recovery from losses ends. Default: "auto".
        recovery: Optional<RecoveryWord>,
        /// Smallest retransmission timeout. Default: 200 ms.
        min_rto: Optional<Time>,
        /// Largest burst that segmentation offload sends at once. Default: 64
        /// KiB.
        max_burst: Optional<Bytes>,
        /// Random delay of the sending host, uniform up to this, before each packet
        /// enters its first link; the packets stay in order. With the time that a packet
        /// takes at the bottleneck, equal senders do not move in lockstep (Floyd and
        /// Jacobson 1992). Default: "0 s".
        send_jitter: Optional<Time>,
    }
}

table! {
    /// ACK frequency that the sender requests, updated with each ACK: a number
    /// of ACKs for each window and smoothed RTT.
    "an ACK frequency" AckFrequencyFile {
        /// ACKs per round trip. Default: 4.
        per_round: Optional<u64>,
        /// Shortest delay that the receiver accepts. Default: 1 ms.
        min_delay: Optional<Time>,
        /// Reordering threshold: distance from a missing segment at which an
        /// arriving one is acknowledged at once; with 1 every segment out of
        /// order, with 0 none. Default: 1.
        reordering: Optional<u64>,
    }
}

table! {
    /// A receiver that misbehaves to get more than its share. For bulk over one
    /// path.
    "a receiver" ReceiverFile {
        /// Acknowledges everything below the highest segment that arrived, so
        /// that the sender sees no loss; lost data is never delivered. Default:
        /// false.
        conceal_loss: Optional<bool>,
        /// Maximum number of segments beyond the highest one that arrived which
        /// its ACKs claim: it claims one more with every fourth ACK, and
        /// conceals losses. Default: 0.
        ack_ahead: Optional<u64>,
        /// Number of ACKs sent in place of each ACK of new data; all but the
        /// last acknowledge a part of a segment. Default: 1.
        ack_division: Optional<u64>,
        /// Reports each segment that fills a gap as a duplicate (D-SACK), so
        /// that reductions are undone. Default: false.
        false_duplicates: Optional<bool>,
    }
}

words! {
    /// Rules by which a receiver acknowledges.
    "ACKs" AcksWord {
        /// Linux's TCP: immediate ACKs for a segment that ends a burst, is out
        /// of order or fills a gap, and for the first segments.
        Tcp = "tcp",
        /// QUIC's: immediate ACKs for a packet that is out of order or fills a
        /// gap, and for a change of marking (RFC 9000, section 13.2).
        Quic = "quic",
    }
}

words! {
    /// Whether segments are paced.
    "pacing" PacingWord {
        /// As the controller requires.
        Auto = "auto",
        /// Always.
        On = "on",
        /// Never, even if the controller requests it.
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
        /// As the controller requires; all of Knee's controllers require TCP's.
        Auto = "auto",
        /// As in TCP: when everything sent before it began is acknowledged (RFC
        /// 6675).
        Tcp = "tcp",
        /// As in QUIC: when a packet sent after it began is acknowledged, after
        /// one round trip (RFC 9002, section 7.3.2).
        Quic = "quic",
    }
}

words! {
    /// A receive window without a size.
    "receive window" WindowWord {
        /// No limit.
        Unlimited = "unlimited",
        /// Tuned to the delivered data, as in Linux.
        Auto = "auto",
    }
}

/// A receive window.
#[derive(Clone, Copy, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub(crate) enum WindowFile {
    /// Without a size.
    Word(WindowWord),
    /// Number of bytes.
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
