//! What happens while a policy is applied or an experiment runs, for whoever tells of it.

use crate::{Block, Plan, Returned};
use ipnet::IpNet;
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'e> {
    /// The changes of an earlier process, which ended without reverting them, were reverted.
    EarlierReverted(&'e Returned),
    /// The plan was applied for the first time; routes that the kernel refused, with its error.
    Applied {
        /// What was applied.
        plan: &'e Plan,
        /// Destinations and the kernel's words.
        refused: &'e [(IpNet, String)],
    },
    /// The host's routes have changed, and what is applied with them.
    RoutesChanged {
        /// Number of routes or prefixes added.
        added: usize,
        /// Number removed.
        removed: usize,
    },
    /// The kernel refused a route; its words.
    RouteRefused(&'e str),
    /// Somebody has changed these routes, by table, so they are left as they are.
    LeftAlone(&'e [(u32, IpNet)]),
    /// The kernel refused the controller for this many connections, the first time.
    ControllersRefused(u64),
    /// All open connections that should have their controller have it: this many.
    OpenConnectionsChanged(u64),
    /// The policy has expired: all changes are reverted.
    Expired,
    /// This many blocks of an earlier process count.
    EarlierBlocks(usize),
    /// A block of a site begins after this time.
    Waits {
        /// Number of the block, from 0.
        number: u64,
        /// Time until it begins.
        time: Duration,
        /// This host has no pair of blocks before the first triple.
        has_no_pair: bool,
    },
    /// The first block of this process begins.
    Begins {
        /// Its number, from 0.
        number: u64,
    },
    /// B was stopped in a group.
    Stopped {
        /// Name of the group.
        group: &'e str,
        /// The reason.
        why: &'e str,
    },
    /// A block has ended, the last of these.
    BlockEnded(&'e [Block]),
    /// All changes were reverted.
    Reverted(&'e Returned),
}
