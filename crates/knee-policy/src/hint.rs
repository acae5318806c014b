//! What an application says of its connections before they begin.

use crate::{Policy, PolicyGroup};
use knee_host::{TcpSocket, cgroup_root};
use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// An application's hint, by which a group has a part of the connections of its clients.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hint {
    /// The mark of the socket (`SO_MARK` of socket(7)), not 0; that of a listening socket is that of
    /// the connections that it accepts.
    Mark(u32),
    /// The control group (cgroups(7), version 2) of the process that opened the socket, or one around
    /// it, from the root: `/system.slice/nginx.service`. Of a connection that was accepted, the
    /// listening socket counts.
    Cgroup(String),
}

impl Hint {
    /// Order in which hints are asked: marks before control groups, inner control groups before
    /// outer ones.
    fn rank(&self) -> (u8, Reverse<usize>) {
        match self {
            Hint::Mark(_) => (0, Reverse(0)),
            Hint::Cgroup(name) => (1, Reverse(name.matches('/').count())),
        }
    }

    /// Returns what is wrong with the name of a control group, and what to write instead.
    pub(crate) fn wrong(name: &str) -> Option<(String, String)> {
        let is_plain = |part: &str| !part.is_empty() && part != "." && part != "..";
        let parts = name.strip_prefix('/').map(|rest| rest.split('/').all(is_plain));
        if parts == Some(true) && !name.contains('\0') {
            return None;
        }
        let what = format!("`{name}` is not the path of a control group");
        let help = "what /proc/PID/cgroup has after 0::, such as /system.slice/nginx.service";
        Some((what, help.to_string()))
    }
}

impl Display for Hint {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Hint::Mark(mark) => write!(f, "mark {mark}"),
            Hint::Cgroup(name) => write!(f, "control group {name}"),
        }
    }
}

/// Folder of a control group below the folder of all; `None` if it does not exist at present.
fn folder(root: &Path, name: &str) -> Option<PathBuf> {
    let folder = root.join(name.trim_start_matches('/'));
    folder.is_dir().then_some(folder)
}

/// Number of a control group, by which the kernel knows it; `None` if it does not exist at present.
#[cfg(feature = "bpf")]
pub(crate) fn number(root: &Path, name: &str) -> Option<u64> {
    Some(fs::metadata(folder(root, name)?).ok()?.ino())
}

/// Finds the groups of a policy that connections are in, as its programs do.
pub struct GroupOf<'p> {
    policy: &'p Policy,
    /// Groups in the order in which they are asked, each with the numbers of its control groups.
    groups: Vec<(usize, BTreeSet<u64>)>,
}

impl<'p> GroupOf<'p> {
    /// Reads the numbers of the control groups that exist at present.
    pub fn new(policy: &'p Policy) -> GroupOf<'p> {
        let root = cgroup_root();
        let numbers = |group: &PolicyGroup| match &group.hint {
            Some(Hint::Cgroup(name)) => {
                let folder = root.as_deref().and_then(|root| folder(root, name));
                folder.map(|folder| within(&folder)).unwrap_or_default()
            }
            _ => BTreeSet::new(),
        };
        let all = policy.groups.iter().enumerate();
        let mut groups: Vec<_> = all.map(|(index, group)| (index, numbers(group))).collect();
        groups.sort_by_key(|(index, _)| {
            policy.groups[*index].hint.as_ref().map_or((2, Reverse(0)), Hint::rank)
        });
        GroupOf { policy, groups }
    }

    /// Returns the group of a connection; without CAP_NET_ADMIN its mark is not seen.
    pub fn of(&self, socket: &TcpSocket<'_>) -> Option<usize> {
        let is_in = |(index, cgroups): &&(usize, BTreeSet<u64>)| {
            let group = &self.policy.groups[*index];
            let has_hint = match &group.hint {
                Some(Hint::Mark(mark)) => socket.mark == Some(*mark),
                Some(Hint::Cgroup(_)) => socket.cgroup.is_some_and(|own| cgroups.contains(&own)),
                None => true,
            };
            has_hint
                && (group.ports.is_empty() || group.ports.contains(&socket.local.port()))
                && group.prefixes.iter().any(|prefix| prefix.contains(&socket.remote.ip()))
        };
        self.groups.iter().find(is_in).map(|(index, _)| *index)
    }

    /// The hints of groups whose control group does not exist at present.
    pub fn missing(&self) -> impl Iterator<Item = &Hint> {
        let none = self.groups.iter().filter(|(_, numbers)| numbers.is_empty());
        let hints = none.filter_map(|(index, _)| self.policy.groups[*index].hint.as_ref());
        hints.filter(|hint| matches!(hint, Hint::Cgroup(_)))
    }
}

/// Numbers of a control group and of all within it.
fn within(folder: &Path) -> BTreeSet<u64> {
    let mut numbers = BTreeSet::new();
    let mut left = vec![folder.to_path_buf()];
    while let Some(folder) = left.pop() {
        numbers.extend(fs::metadata(&folder).map(|about| about.ino()));
        let inner = fs::read_dir(&folder).into_iter().flatten().flatten();
        left.extend(inner.map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    numbers
}
