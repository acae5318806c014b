//! Paths.

use crate::read::{At, List, Optional, Required, table};
use knee_units::Time;

table! {
    /// A path: forward and reverse direction.
    "a path" PathFile {
        /// Name of a ready-made path (`knee list paths`), whose links it gets: one of its own name
        /// forward, and one with "-back" behind it in reverse. What is written for the path or for
        /// these links goes before. Default: none.
        like: Optional<String>,
        /// Names of the links from sender to receiver. Default: that of the path that it is like;
        /// required otherwise.
        forward: Optional<Vec<At<String>>>,
        /// Delay of the reverse direction, without links.
        reverse_delay: Optional<Time>,
        /// Reverse direction: names of the links from receiver to sender.
        reverse: Optional<Vec<At<String>>>,
        /// Spans in which the path is absent and the hosts know it, as when an
        /// interface is removed. Only for flows with `paths`.
        absent: List<AbsentFile>,
        /// Name of the tunnel that carries its packets both ways. All paths of a
        /// tunnel are one flow to a queue that separates flows (fq-codel). The
        /// outer header adds no bytes: `header` has them. Default: none.
        tunnel: Optional<String>,
    }
}

table! {
    /// A span in which a path is absent.
    "an absence" AbsentFile {
        /// Start of the span.
        from: Required<Time>,
        /// End of the span. Default: the path does not return.
        until: Optional<Time>,
    }
}
