//! Paths.

use crate::read::{At, List, Optional, Required, table};
use knee_units::Time;

table! {
    /// The way there and the way back.
    "a path" PathFile {
        /// Names of the links from sender to receiver.
        forward: Required<Vec<At<String>>>,
        /// The way back is a pure delay.
        reverse_delay: Optional<Time>,
        /// The way back: names of the links from receiver to sender.
        reverse: Optional<Vec<At<String>>>,
        /// Spans in which the path is not there, and the hosts know it, as
        /// when an interface is gone.
        absent: List<AbsentFile>,
    }
}

table! {
    /// A span in which a path is not there.
    "an absence" AbsentFile {
        /// From this time on.
        from: Required<Time>,
        /// Until before this time. Default: it does not come back.
        until: Optional<Time>,
    }
}
