//! Names that programs can resolve.

use knee_host::HostError;
use knee_scenario::Scenario;
use knee_testbed::{End, Family, address};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

/// Returns `/etc/hosts` of both hosts: `sender.knee` (or `server.knee`) and `receiver.knee` (or
/// `client.knee`) over the first path, and `PATH.sender.knee` over each.
fn hosts(scenario: &Scenario) -> String {
    let mut text = "127.0.0.1 localhost\n::1 localhost\n".to_owned();
    for (end, name, role) in
        [(End::Sender, "sender", "server"), (End::Receiver, "receiver", "client")]
    {
        for (index, path) in scenario.paths.iter().enumerate() {
            let short =
                if index == 0 { format!("{name}.knee {role}.knee ") } else { String::new() };
            for family in [Family::V4, Family::V6] {
                let at = address(index, end, family);
                // Writing to a string cannot fail.
                let _ = writeln!(text, "{at} {short}{}.{name}.knee", path.name);
            }
        }
    }
    text
}

/// Returns `/etc/nsswitch.conf` with hosts that are looked up in files, and then over DNS, for which
/// there is no server: some other services would answer over a socket that is not of the network.
fn switch(original: &str) -> String {
    let others = original.lines().filter(|line| !line.trim_start().starts_with("hosts:"));
    others.chain(["hosts: files dns"]).fold(String::new(), |text, line| text + line + "\n")
}

/// Place of a file system in memory for the files, until they are in theirs. Any folder would do.
const MOUNTED_AT: &str = "/tmp";

/// The files that replace those of the host, by name.
#[derive(Clone, Debug)]
pub struct Names {
    files: [(&'static str, String); 3],
}

impl Names {
    /// Makes the files of a run.
    pub fn new(scenario: &Scenario) -> Names {
        let original = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
        let resolver = "# Only names in /etc/hosts are known here.\n".to_owned();
        let hosts = hosts(scenario);
        Names {
            files: [
                ("hosts", hosts),
                ("resolv.conf", resolver),
                ("nsswitch.conf", switch(&original)),
            ],
        }
    }

    /// Puts the files in place of the host's, in the mount namespace of the calling thread. They are
    /// in memory, and end with it.
    ///
    /// # Errors
    ///
    /// The host does not permit mounts.
    pub fn mount(&self) -> Result<(), HostError> {
        let refused = |source: io::Error| {
            HostError::refused("replace files in /etc", source, super::host::ADVICE)
        };
        self.mount_files().map_err(refused)
    }

    fn mount_files(&self) -> io::Result<()> {
        let memory = MsFlags::MS_NOSUID | MsFlags::MS_NODEV | MsFlags::MS_NOEXEC;
        mount(Some("tmpfs"), MOUNTED_AT, Some("tmpfs"), memory, Some("mode=755,size=16m"))?;
        for (name, text) in &self.files {
            let place = Path::new("/etc").join(name);
            // What is not there cannot be replaced, and resolves nothing.
            if !place.exists() {
                continue;
            }
            let file = Path::new(MOUNTED_AT).join(name);
            fs::write(&file, text)?;
            mount(Some(&file), &place, None::<&str>, MsFlags::MS_BIND, None::<&str>)?;
        }
        // The files stay where they are bound.
        umount2(MOUNTED_AT, MntFlags::MNT_DETACH)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// nsswitch.conf(5): one line for each database.
    #[test]
    fn hosts_are_looked_up_in_files_alone() {
        let original = "passwd: files systemd\nhosts: mymachines resolve dns\nservices: db files\n";
        let expected = "passwd: files systemd\nservices: db files\nhosts: files dns\n";
        assert_eq!(switch(original), expected);
        assert_eq!(switch(""), "hosts: files dns\n");
    }
}
