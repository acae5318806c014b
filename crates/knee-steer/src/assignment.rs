//! Assignment of clients to the groups and arms of a policy or an experiment, as the process that
//! steers publishes it for programs that record connections.

use crate::design::is_second;
use ipnet::IpNet;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

/// Schema of [`Assignment`].
pub const ASSIGNMENT_SCHEMA: &str = "knee-assignment/1";

/// Arm of clients that get the controller of a policy.
pub const TREATED: &str = "treated";
/// Arm of clients that a policy holds out at random.
pub const HELD_OUT: &str = "held out";
/// Clients without an arm: a route of an administrator names their controller.
pub const KEPT: &str = "kept";

/// Who gets what, from one change to the next: contents of a file.
///
/// It is in force as long as a process holds a lock on the file (flock(2)), but not after the
/// file's time of modification, which is no date: it is on the clock of `since_boot_ns`, and is put
/// off about once a second.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// `knee-assignment/1`.
    pub schema: String,
    /// Name of the policy.
    pub policy: String,
    /// Clock of the host when it was in force, nanoseconds since the boot (`CLOCK_BOOTTIME`):
    /// connections established after it get what this assignment says.
    pub since_boot_ns: u64,
    /// Number of the experiment's block; none for a policy.
    pub block: Option<u64>,
    /// The groups.
    pub groups: Vec<AssignedGroup>,
    /// Their clients.
    pub places: Vec<AssignedPlace>,
}

/// A group of clients and its arms.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedGroup {
    /// Name of the group.
    pub name: String,
    /// Arms of those that get the first and the second controller.
    pub arms: [String; 2],
    /// Key of the draw between the two.
    pub key: [u8; 16],
    /// Share of the parts that get the second, in 2^-32.
    pub share: u32,
}

/// Clients with the same treatment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignedPlace {
    /// Index of the group.
    pub group: usize,
    /// Prefix of the clients; longer ones take precedence.
    pub prefix: IpNet,
    /// Local port; none: all that no other place names.
    pub port: Option<u16>,
    /// Length of the prefixes for which an arm is drawn.
    pub part: u8,
    /// Arm of all of them; none: it is drawn.
    pub arm: Option<String>,
}

/// Group and arm of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// Name of the group.
    pub group: Arc<str>,
    /// Arm; empty for [`KEPT`] clients.
    pub arm: Arc<str>,
    /// Number of the experiment's block; `None` for a policy.
    pub block: Option<u64>,
}

/// Finds the arm of a connection in an [`Assignment`].
#[derive(Clone, Debug)]
pub struct Arms {
    block: Option<u64>,
    groups: Vec<Draw>,
    places: BTreeMap<(Option<u16>, IpNet), Place>,
    /// Lengths of the prefixes, the longest first, for IPv4 and IPv6.
    lengths: [Vec<u8>; 2],
    ports: BTreeSet<Option<u16>>,
}

#[derive(Clone, Debug)]
struct Draw {
    name: Arc<str>,
    arms: [Arc<str>; 2],
    key: [u8; 16],
    share: u32,
}

#[derive(Clone, Debug)]
struct Place {
    group: usize,
    part: u8,
    arm: Option<Arc<str>>,
}

impl Arms {
    /// Prepares an assignment for searching. `None` if a place names a group that does not exist.
    pub fn new(assignment: &Assignment) -> Option<Arms> {
        let groups: Vec<Draw> = assignment
            .groups
            .iter()
            .map(|group| Draw {
                name: group.name.as_str().into(),
                arms: group.arms.each_ref().map(|arm| arm.as_str().into()),
                key: group.key,
                share: group.share,
            })
            .collect();
        let mut places = BTreeMap::new();
        let mut lengths = [BTreeSet::new(), BTreeSet::new()];
        for place in &assignment.places {
            groups.get(place.group)?;
            let arm = place.arm.as_deref();
            let arm = arm.map(|arm| if arm == KEPT { "" } else { arm }.into());
            let found = Place { group: place.group, part: place.part, arm };
            lengths[usize::from(place.prefix.addr().is_ipv6())].insert(place.prefix.prefix_len());
            places.insert((place.port, place.prefix.trunc()), found);
        }
        let ports = places.keys().map(|(port, _)| *port).collect();
        let lengths = lengths.map(|each| each.into_iter().rev().collect());
        Some(Arms { block: assignment.block, groups, places, lengths, ports })
    }

    /// Returns group and arm of a connection with this local port and this peer; `None` if it is in
    /// no group. A place with the port takes precedence over one without, and of these the one with
    /// the longest prefix.
    pub fn of(&self, local_port: u16, peer: IpAddr) -> Option<Assigned> {
        let lengths = &self.lengths[usize::from(peer.is_ipv6())];
        let ports = [Some(local_port), None].into_iter().filter(|port| self.ports.contains(port));
        let place = ports.into_iter().find_map(|port| {
            lengths.iter().find_map(|length| {
                let net = IpNet::new(peer, *length).ok()?.trunc();
                self.places.get(&(port, net))
            })
        })?;
        let group = &self.groups[place.group];
        let arm = match &place.arm {
            Some(arm) => arm,
            None => {
                let part = IpNet::new(peer, place.part).ok()?;
                &group.arms[usize::from(is_second(&group.key, part, group.share))]
            }
        };
        Some(Assigned { group: group.name.clone(), arm: arm.clone(), block: self.block })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::in_half;

    fn group(name: &str, arms: [&str; 2], share: u32) -> AssignedGroup {
        AssignedGroup { name: name.into(), arms: arms.map(String::from), key: [7; 16], share }
    }

    fn place(group: usize, prefix: &str, port: Option<u16>, arm: Option<&str>) -> AssignedPlace {
        let prefix = prefix.parse().unwrap();
        AssignedPlace { group, prefix, port, part: 32, arm: arm.map(String::from) }
    }

    fn assignment(groups: Vec<AssignedGroup>, places: Vec<AssignedPlace>) -> Assignment {
        Assignment {
            schema: ASSIGNMENT_SCHEMA.into(),
            policy: "test".into(),
            since_boot_ns: 0,
            block: Some(3),
            groups,
            places,
        }
    }

    /// As in a longest-prefix table of port and address: the port first, then the longest prefix.
    #[test]
    fn places_by_hand() {
        let groups = vec![group("web", [TREATED, ""], 0), group("rest", [TREATED, ""], 0)];
        let places = vec![
            place(0, "192.0.2.0/24", Some(443), None),
            place(0, "192.0.2.16/28", Some(443), Some(HELD_OUT)),
            place(0, "192.0.2.18/32", Some(443), Some(KEPT)),
            place(1, "192.0.0.0/16", None, None),
            place(1, "192.0.2.17/32", None, Some(HELD_OUT)),
            place(1, "2001:db8::/32", None, Some(HELD_OUT)),
        ];
        let arms = Arms::new(&assignment(groups, places)).unwrap();
        let of = |port, peer: &str| {
            let found = arms.of(port, peer.parse().unwrap())?;
            assert_eq!(found.block, Some(3));
            Some((found.group.to_string(), found.arm.to_string()))
        };
        let both = |group: &str, arm: &str| Some((group.to_string(), arm.to_string()));
        assert_eq!(of(443, "192.0.2.1"), both("web", TREATED));
        assert_eq!(of(443, "192.0.2.17"), both("web", HELD_OUT));
        assert_eq!(of(443, "192.0.2.18"), both("web", ""));
        assert_eq!(of(443, "192.0.3.1"), both("rest", TREATED));
        assert_eq!(of(80, "192.0.2.17"), both("rest", HELD_OUT));
        assert_eq!(of(80, "2001:db8::9"), both("rest", HELD_OUT));
        assert_eq!((of(80, "192.1.0.1"), of(80, "2001:db9::1")), (None, None));
        let wrong = assignment(Vec::new(), vec![place(0, "192.0.2.0/24", None, None)]);
        assert!(Arms::new(&wrong).is_none());
    }

    /// A half is drawn as in the experiment.
    #[test]
    fn halves_are_those_of_the_experiment() {
        let groups = vec![group("g", ["half A", "half B"], 1 << 31)];
        let arms =
            Arms::new(&assignment(groups, vec![place(0, "10.0.0.0/8", None, None)])).unwrap();
        let mut second = 0;
        for number in 0..1000u16 {
            let [high, low] = number.to_be_bytes();
            let peer = IpAddr::from([10, 1, high, low]);
            let is_second = in_half(&[7; 16], peer.into());
            second += u32::from(is_second);
            let expected = if is_second { "half B" } else { "half A" };
            assert_eq!(&*arms.of(1, peer).unwrap().arm, expected);
        }
        // Four standard deviations.
        assert!((437..=563).contains(&second), "{second}");
    }
}
