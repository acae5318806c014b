//! The part of a plan that BPF programs carry out.

use crate::plan::{best, held_out, hold_out, longest_match, part_length};
use crate::{Kept, Policy, PolicyGroup, Why};
use ipnet::IpNet;
use knee_host::Route;
use std::collections::BTreeMap;

/// Clients with the same treatment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the group.
    pub group: usize,
    /// The clients; longer prefixes take precedence.
    pub prefix: IpNet,
    /// Local port; `None`: all.
    pub port: Option<u16>,
    /// Prefix length of the units that an experiment assigns.
    pub part: u8,
    /// Their treatment.
    pub what: What,
}

/// Treatment of clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The group's controller.
    Steered,
    /// Unchanged, randomly held out for comparison.
    HeldOut,
    /// Unchanged, since an administrator has chosen the controller.
    Kept,
}

/// Prefixes of a policy with their treatment, and those that are left alone.
pub(crate) fn places(policy: &Policy, main: &[Route]) -> (Vec<Placed>, Vec<Kept>) {
    let main = best(main);
    let (mut places, mut left) = (Vec::new(), Vec::new());
    for (index, group) in policy.groups.iter().enumerate() {
        for prefix in &group.prefixes {
            let (within, kept) = within(&main, *prefix);
            left.extend(kept.into_iter().map(|(prefix, why)| Kept { group: index, prefix, why }));
            for (net, what) in hold_out(within, &held_out(policy, group, prefix)) {
                // The same within all of the prefix, as an experiment counts.
                let part = part_length(group, prefix);
                let place = |port| Placed { group: index, prefix: net, port, part, what };
                places.extend(ports(group).map(place));
            }
        }
    }
    (places, left)
}

/// Ports of a group; `None`: all.
fn ports(group: &PolicyGroup) -> impl Iterator<Item = Option<u16>> {
    let all = group.ports.is_empty().then_some(None);
    all.into_iter().chain(group.ports.iter().copied().map(Some))
}

/// Whether a prefix is steered, outer prefixes first; and prefixes left alone, with the reason.
type Within = (Vec<(IpNet, bool)>, Vec<(IpNet, Why)>);

/// Treatment of a prefix and of exceptions within it: a route on which an administrator named a
/// controller keeps it.
fn within(main: &BTreeMap<IpNet, &Route>, prefix: IpNet) -> Within {
    let inner = main.range(prefix..).skip_while(|(net, _)| **net == prefix);
    let inner = inner.take_while(|(net, _)| prefix.contains(*net));
    let inner = inner.map(|(net, route)| (*net, Some(*route)));
    let (mut places, mut kept) = (Vec::new(), Vec::new());
    for (net, route) in [(prefix, longest_match(main, &prefix).copied())].into_iter().chain(inner) {
        match route.and_then(Route::controller) {
            Some(name) => {
                places.push((net, false));
                kept.push((net, Why::Chosen(name.to_string())));
            }
            // Other routes within a steered prefix do not matter.
            None if net == prefix || !kept.is_empty() => places.push((net, true)),
            None => {}
        }
    }
    (places, kept)
}
