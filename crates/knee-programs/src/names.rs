//! Names that programs can resolve.

use knee_host::HostError;
use knee_scenario::Scenario;
use knee_testbed::{End, Family, address};
use nix::mount::{MsFlags, mount};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

/// Files that replace those of the host, in the folder of a run.
const FOLDER: &str = "etc";

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

/// The files of a run.
#[derive(Clone, Debug)]
pub struct Names {
    folder: PathBuf,
}

impl Names {
    /// Writes the files into the folder of a run.
    ///
    /// # Errors
    ///
    /// The folder cannot be written.
    pub fn write(scenario: &Scenario, run: &Path) -> Result<Names, HostError> {
        let folder = run.join(FOLDER);
        let written = || {
            fs::create_dir_all(&folder)?;
            fs::write(folder.join("hosts"), hosts(scenario))?;
            fs::write(folder.join("resolv.conf"), "# Only names in /etc/hosts are known here.\n")?;
            let original = fs::read_to_string("/etc/nsswitch.conf").unwrap_or_default();
            fs::write(folder.join("nsswitch.conf"), switch(&original))
        };
        written().map_err(|source| {
            HostError::refused("write the names of the hosts", source, "choose another --out")
        })?;
        Ok(Names { folder })
    }

    /// Puts the files in place of the host's, in the mount namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// The host does not permit mounts.
    pub fn mount(&self) -> Result<(), HostError> {
        for name in ["hosts", "resolv.conf", "nsswitch.conf"] {
            let place = Path::new("/etc").join(name);
            // What is not there cannot be replaced, and resolves nothing.
            if !place.exists() {
                continue;
            }
            let file = self.folder.join(name);
            mount(Some(&file), &place, None::<&str>, MsFlags::MS_BIND, None::<&str>).map_err(
                |source| {
                    HostError::refused(format!("replace /etc/{name}"), source, super::host::ADVICE)
                },
            )?;
        }
        Ok(())
    }

    /// Removes the files.
    pub fn remove(self) {
        // They do no harm.
        let _ = fs::remove_dir_all(self.folder);
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
