//! A policy in the kernel (`bpf/steer.bpf.c`): assigns controllers to connections by the peer's
//! prefix, by the local port and by the application's hint, when they are established or while they
//! are open.
//!
//! The programs that assign are held only by links of this process, and end with it. Those that
//! undo an assignment are pinned in the BPF file system, so that any process of the same user can
//! run them, until [`crate::unpin_marks`].

use super::object::{map, namespace_cookie, program, words};
use super::{BpfError, refused_to, steering_lack};
use crate::clock::since_boot;
use crate::marks::{BACK, MARKED};
use crate::{Arm, Choice};
use ipnet::IpNet;
use libbpf_rs::{Iter, Link, MapCore, MapFlags, Object, ObjectBuilder};
use std::fs::{self, File};
use std::io::Read;
use std::net::IpAddr;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

const STEER: &[u8] = include_bytes!(env!("KNEE_BPF_STEER"));
/// Maximum number of groups (`bpf/steer.bpf.c`).
pub const GROUPS_MAX: usize = 1024;
/// Default number of addresses of sockets that have a seat for a mark: 4 MiB of memory, and up to
/// 128 bytes for each that has been used.
const SEATS: u32 = 1 << 18;
/// Length of a name in the kernel (`TCP_CA_NAME_MAX`), including the terminating zero.
const NAME: usize = 16;
/// Length of an arm (`struct arm` of `bpf/steer.bpf.c`).
const ARM: usize = NAME + 16;
/// Bits of the hint and the port in the key of the table.
const HINT_AND_PORT_BITS: u32 = 64;
/// Bits before an IPv4-mapped address in IPv6 (RFC 4291, section 2.5.5.2).
const MAPPED_BITS: u8 = 96;
const WHAT: &str = "load the steering programs";

/// Clients and a port that belong to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Prefix of the clients.
    pub prefix: IpNet,
    /// Local port; if absent, all ports that no other place names.
    pub port: Option<u16>,
    /// Number of the hint that the connections have; 0: those that no place of a hint takes.
    pub hint: u32,
    /// Number of the group, below 1024.
    pub group: u32,
    /// Whether these connections keep their controller.
    pub kept: bool,
    /// Length, in bits, of the prefixes for which a controller is drawn: all clients of one such
    /// prefix get the same one.
    pub part: u8,
}

/// What an application says of its connections before they begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// The mark of the socket (`SO_MARK` of socket(7)); that of a listening socket is its
    /// connections' as well.
    Mark(u32),
    /// The control group of the process that opened the socket, or one around it: the number of its
    /// folder (inode). Of a connection that was accepted, the listening socket counts.
    Cgroup(u64),
}

impl Hint {
    /// Its kind (`bpf/steer.bpf.c`).
    fn kind(self) -> u64 {
        match self {
            Hint::Mark(_) => 1,
            Hint::Cgroup(_) => 2,
        }
    }

    /// `struct hint`.
    fn key(self) -> Vec<u8> {
        let value = match self {
            Hint::Mark(mark) => u64::from(mark),
            Hint::Cgroup(number) => number,
        };
        [self.kind(), value].into_iter().flat_map(u64::to_ne_bytes).collect()
    }
}

/// Counts of a group's connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Assigned the controller when they were established.
    pub given: u64,
    /// Had the controller already.
    pub had: u64,
    /// Kept their controller, as the policy says.
    pub kept: u64,
    /// Refused by the kernel, because the controller no longer exists, or their route has a locked
    /// one.
    pub refused: u64,
    /// Assigned the controller while they were open.
    pub given_open: u64,
}

/// The loaded programs.
pub struct Steering {
    object: Object,
    established: Option<Link>,
    open: Link,
    lease: Duration,
    namespace: u64,
    /// Kinds of the hints that are named.
    hints: u64,
    /// Whether an arm negotiates ECN.
    ecn: bool,
}

impl Steering {
    /// Loads the programs, for the network namespace of the calling thread, and attaches them to a
    /// group of processes (cgroups(7), version 2). They do nothing until [`Steering::renew`], and
    /// then for `lease`.
    ///
    /// # Errors
    ///
    /// The host lacks or refuses something.
    pub fn attach(cgroup: &Path, lease: Duration) -> Result<Steering, BpfError> {
        Steering::attach_with_seats(cgroup, lease, SEATS)
    }

    /// As [`Steering::attach`], with this many seats for marks. Once all are taken, the kernel
    /// allocates memory for each mark of a socket elsewhere, which takes longer.
    ///
    /// # Errors
    ///
    /// The host lacks or refuses something.
    pub fn attach_with_seats(
        cgroup: &Path,
        lease: Duration,
        seats: u32,
    ) -> Result<Steering, BpfError> {
        if let Some(lack) = steering_lack() {
            return Err(lack);
        }
        libbpf_rs::set_print(None);
        let cannot = |error: libbpf_rs::Error| refused(WHAT, &error);
        let mut object = ObjectBuilder::default().open_memory(STEER).map_err(cannot)?;
        let table = object.maps_mut().find(|map| map.name() == "seats");
        table.map_or(Ok(()), |mut table| table.set_max_entries(seats)).map_err(cannot)?;
        let object = object.load().map_err(cannot)?;
        let open = program(&object, "knee_open")?.attach().map_err(cannot)?;
        let namespace = namespace_cookie().map_err(|error| BpfError::io(WHAT, &error))?;
        let mut steering =
            Steering { object, established: None, open, lease, namespace, hints: 0, ecn: false };
        steering.control(Duration::ZERO, 0)?;
        let folder = File::open(cgroup).map_err(|error| BpfError::io("open the cgroup", &error))?;
        let established = program(&steering.object, "knee_established")?;
        // This makes a link, which ends with its descriptor; the other kind of attachment would
        // persist.
        let link = established.attach_cgroup(folder.as_raw_fd()).map_err(cannot)?;
        steering.established = Some(link);
        Ok(steering)
    }

    /// Pins the programs that undo assignments as files in a folder of the BPF file system, for
    /// [`crate::return_marked`] and [`crate::marked`] in any process.
    ///
    /// # Errors
    ///
    /// The folder is in use.
    pub fn pin(&mut self, folder: &Path) -> Result<(), BpfError> {
        let what = "create a folder in /sys/fs/bpf";
        fs::create_dir_all(folder).map_err(|error| BpfError::io(what, &error))?;
        for (name, file) in [("knee_back", BACK), ("knee_marked", MARKED)] {
            let attached = program(&self.object, name)?.attach();
            let pinned = attached.and_then(|mut link| link.pin(folder.join(file)));
            pinned.map_err(|error| refused("pin the state for the rollback", &error))?;
        }
        Ok(())
    }

    /// Sets what the connections of a group get. Open connections keep what they have. The programs
    /// know that an arm negotiates ECN from the next [`Steering::renew`] on.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    ///
    /// # Panics
    ///
    /// If a name has more than 15 bytes, or the group is 1024 or more.
    pub fn choose(&mut self, group: u32, choice: &Choice) -> Result<(), BpfError> {
        assert!((group as usize) < GROUPS_MAX, "{group} is too many groups");
        let mut value = Vec::with_capacity(2 * ARM + 24);
        for Arm { controller, initial_window, paces, ecn } in &choice.arms {
            assert!(controller.len() < NAME, "{controller} is too long for the kernel");
            value.extend(controller.bytes());
            value.resize(value.len() + NAME - controller.len(), 0);
            value.extend(u32::from(initial_window.unwrap_or(0)).to_ne_bytes());
            value.extend(u32::from(*paces).to_ne_bytes());
            value.extend(u32::from(*ecn).to_ne_bytes());
            value.extend([0; 4]);
            self.ecn |= *ecn;
        }
        value.extend(choice.key);
        value.extend(choice.share.to_ne_bytes());
        value.extend([0; 4]);
        self.put("groups", &group.to_ne_bytes(), &value)
    }

    /// Gives a hint a number, for [`Place::hint`]. The programs know it from the next
    /// [`Steering::renew`] on.
    ///
    /// # Errors
    ///
    /// The kernel refuses; at most 2,048 hints are possible.
    pub fn name(&mut self, hint: Hint, number: u32) -> Result<(), BpfError> {
        self.put("hints", &hint.key(), &number.to_ne_bytes())?;
        self.hints |= hint.kind();
        Ok(())
    }

    /// Takes the number from a hint.
    ///
    /// # Errors
    ///
    /// It has none.
    pub fn forget(&mut self, hint: Hint) -> Result<(), BpfError> {
        let deleted = map(&self.object, "hints")?.delete(&hint.key());
        deleted.map_err(|error| refused("change the steered traffic", &error))
    }

    /// Adds or changes a place.
    ///
    /// # Errors
    ///
    /// The kernel refuses; at most 100,000 places are possible.
    pub fn add(&mut self, place: &Place) -> Result<(), BpfError> {
        let mapped = if place.prefix.addr().is_ipv4() { MAPPED_BITS } else { 0 };
        let mut value = place.group.to_ne_bytes().to_vec();
        value.extend([u8::from(place.kept), mapped + place.part, 0, 0]);
        self.put("rules", &key(place), &value)
    }

    /// Removes a place.
    ///
    /// # Errors
    ///
    /// It does not exist.
    pub fn remove(&mut self, place: &Place) -> Result<(), BpfError> {
        let deleted = map(&self.object, "rules")?.delete(&key(place));
        deleted.map_err(|error| refused("change the steered traffic", &error))
    }

    /// Lets the programs act for the lease, from now on.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn renew(&mut self) -> Result<(), BpfError> {
        let end = since_boot().map_err(|error| BpfError::io("read the clock", &error))?;
        self.control(end + self.lease, 0)
    }

    /// Assigns open connections the first or second controller of their group, at most `most` of
    /// them, and returns how many.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn change_open(&mut self, most: u64) -> Result<u64, BpfError> {
        let end = since_boot().map_err(|error| BpfError::io("read the clock", &error))?;
        self.control(end + self.lease, most)?;
        let what = "change open connections";
        let mut pass = Iter::new(&self.open).map_err(|error| refused(what, &error))?;
        pass.read_to_end(&mut Vec::new()).map_err(|error| BpfError::io(what, &error))?;
        let control = map(&self.object, "controls")?.lookup(&[0; 4], MapFlags::ANY);
        let control = control.map_err(|error| refused(what, &error))?.unwrap_or_default();
        Ok(most - words(&control).nth(2).unwrap_or(most).min(most))
    }

    /// Returns the counts of a group.
    ///
    /// # Errors
    ///
    /// The kernel refuses.
    pub fn done(&self, group: u32) -> Result<Done, BpfError> {
        let counted =
            map(&self.object, "counters")?.lookup_percpu(&group.to_ne_bytes(), MapFlags::ANY);
        let counted = counted.map_err(|error| refused("read the state of steering", &error))?;
        let mut sums = [0; 5];
        for processor in counted.into_iter().flatten() {
            sums.iter_mut().zip(words(&processor)).for_each(|(sum, count)| *sum += count);
        }
        let [given, had, kept, refused, given_open] = sums;
        Ok(Done { given, had, kept, refused, given_open })
    }

    /// Stops assigning controllers to new connections.
    pub fn detach(&mut self) {
        self.established = None;
    }

    fn control(&mut self, end: Duration, budget: u64) -> Result<(), BpfError> {
        let end = u64::try_from(end.as_nanos()).unwrap_or(u64::MAX);
        let value: Vec<u8> = [end, self.namespace, budget, self.hints, self.ecn.into()]
            .into_iter()
            .flat_map(u64::to_ne_bytes)
            .collect();
        self.put("controls", &[0; 4], &value)
    }

    fn put(&mut self, name: &'static str, key: &[u8], value: &[u8]) -> Result<(), BpfError> {
        let updated = map(&self.object, name)?.update(key, value, MapFlags::ANY);
        updated.map_err(|error| refused("change the steered traffic", &error))
    }
}

/// `struct place`.
fn key(place: &Place) -> Vec<u8> {
    let mapped = if place.prefix.addr().is_ipv4() { MAPPED_BITS } else { 0 };
    let bits = HINT_AND_PORT_BITS + u32::from(mapped + place.prefix.prefix_len());
    let address = match place.prefix.network() {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    };
    let port = u32::from(place.port.unwrap_or(0));
    let hint = place.hint.to_ne_bytes();
    [&bits.to_ne_bytes()[..], &hint, &port.to_be_bytes(), &address.octets()].concat()
}

fn refused(what: &'static str, error: &libbpf_rs::Error) -> BpfError {
    refused_to(what, error, "it needs Linux 5.16 or later with CONFIG_BPF_JIT=y")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hint and port first, then the address; an IPv4 address is mapped (RFC 4291).
    #[test]
    fn keys_by_hand() {
        let place = |prefix: &str, port, hint| Place {
            prefix: prefix.parse().unwrap(),
            port,
            hint,
            group: 0,
            kept: false,
            part: 32,
        };
        let mut four = (64 + 96 + 24u32).to_ne_bytes().to_vec();
        four.extend([0; 4]);
        four.extend([0, 0, 0x01, 0xbb, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 0]);
        assert_eq!(key(&place("192.0.2.0/24", Some(443), 0)), four);
        let mut six = (64 + 32u32).to_ne_bytes().to_vec();
        six.extend(3u32.to_ne_bytes());
        six.extend([0, 0, 0, 0, 0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(key(&place("2001:db8::/32", None, 3)), six);
    }
}
