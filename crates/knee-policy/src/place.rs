//! What a policy asks for where BPF programs carry it out.

use crate::plan::{best, held_out, part_length};
use crate::{Kept, Policy, PolicyGroup, Why};
use ipnet::IpNet;
use knee_host::Route;
use std::collections::BTreeMap;

/// Clients that are treated alike.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// Index of the group.
    pub group: usize,
    /// The clients; a longer prefix counts before a shorter one.
    pub prefix: IpNet,
    /// Port at this host; none: all.
    pub port: Option<u16>,
    /// Length of the prefixes that draws of an experiment are for.
    pub part: u8,
    /// What they get.
    pub what: What,
}

/// What clients get.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// The group's controller.
    Steered,
    /// What they have, drawn to be compared with.
    HeldOut,
    /// What they have, since an administrator has chosen it.
    Kept,
}

/// Where the clients of a policy are, and which of them are left alone.
pub(crate) fn places(policy: &Policy, main: &[Route]) -> (Vec<Placed>, Vec<Kept>) {
    let main = best(main);
    let (mut places, mut left) = (Vec::new(), Vec::new());
    for (index, group) in policy.groups.iter().enumerate() {
        for prefix in &group.prefixes {
            let own = held_out(policy, group, prefix);
            let (within, kept) = within(&main, *prefix, &own);
            left.extend(kept.into_iter().map(|(prefix, why)| Kept { group: index, prefix, why }));
            let held = own.iter().map(|part| (*part, What::HeldOut));
            let each = within.into_iter().filter(|(net, _)| !own.contains(net)).chain(held);
            for (net, what) in each {
                let part = part_length(group, prefix).max(net.prefix_len());
                let place = |port| Placed { group: index, prefix: net, port, part, what };
                places.extend(ports(group).map(place));
            }
        }
    }
    (places, left)
}

/// The ports of a group; none: all.
fn ports(group: &PolicyGroup) -> impl Iterator<Item = Option<u16>> {
    let all = group.ports.is_empty().then_some(None);
    all.into_iter().chain(group.ports.iter().copied().map(Some))
}

/// What prefixes get, the longer ones after those around them; and what is kept, and why.
type Within = (Vec<(IpNet, What)>, Vec<(IpNet, Why)>);

/// A prefix, and what within it differs: an administrator who named a controller on a
/// route has decided for what the route leads to.
fn within(main: &BTreeMap<IpNet, &Route>, prefix: IpNet, held_out: &[IpNet]) -> Within {
    let around = (0..=prefix.prefix_len()).rev().find_map(|length| {
        let net = IpNet::new(prefix.network(), length).ok()?.trunc();
        main.get(&net).copied()
    });
    let inner = main.range(prefix..).skip_while(|(net, _)| **net == prefix);
    let inner = inner.take_while(|(net, _)| prefix.contains(*net));
    let inner = inner.filter(|(net, _)| !held_out.iter().any(|part| part.contains(*net)));
    let (mut places, mut kept) = (Vec::new(), Vec::new());
    for (net, route) in
        [(prefix, around)].into_iter().chain(inner.map(|(net, route)| (*net, Some(*route))))
    {
        match route.and_then(Route::controller) {
            Some(name) => {
                places.push((net, What::Kept));
                kept.push((net, Why::Chosen(name.to_string())));
            }
            // Within what is steered a route changes nothing.
            None if net == prefix || !kept.is_empty() => places.push((net, What::Steered)),
            None => {}
        }
    }
    (places, kept)
}
