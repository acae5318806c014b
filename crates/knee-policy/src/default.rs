//! The default controller: what determines it on this host, now and at the next boot, and a
//! reversible setting of Knee's own.
//!
//! Settings at boot come from files (sysctl.d(5), sysctl.conf(5)). Knee's setting is one such file;
//! it also records the previous value, so it is its own journal.

use crate::PolicyError;
use knee_host::{set_sysctl, sysctl};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const KEY: &str = "net.ipv4.tcp_congestion_control";
const AVAILABLE: &str = "net.ipv4.tcp_available_congestion_control";
/// Folders of settings, in order of precedence for files with the same name.
const FOLDERS: [&str; 4] =
    ["etc/sysctl.d", "run/sysctl.d", "usr/local/lib/sysctl.d", "usr/lib/sysctl.d"];
/// Read after all of them.
const LAST: &str = "etc/sysctl.conf";
const OWN: &str = "etc/sysctl.d/98-knee-congestion-control.conf";
/// Prefix of the line in Knee's file that records the previous value.
const BEFORE: &str = "# before: ";

/// A line of a file that sets the default controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The file.
    pub path: PathBuf,
    /// Line number, from 1.
    pub line: usize,
    /// The controller.
    pub controller: String,
    /// Whether it is Knee's own setting.
    pub own: bool,
    /// Whether the file belongs to an administrator rather than a package.
    administrator: bool,
}

/// Everything that determines the default controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefaultState {
    /// Current default.
    pub now: String,
    /// Controllers in the kernel.
    pub available: Vec<String>,
    /// Controllers available as modules, loaded on demand.
    pub loadable: Vec<String>,
    /// Settings in the order in which they are read at boot: the last one applies.
    pub settings: Vec<Setting>,
    /// Previous value recorded by Knee's setting, if there is one.
    pub before: Option<String>,
}

impl DefaultState {
    /// The setting that applies after the next boot, as far as files determine it.
    pub fn at_next_start(&self) -> Option<&Setting> {
        self.settings.last()
    }

    /// A conflicting setting by an administrator, or one that is read after Knee's.
    fn against(&self, controller: &str) -> Option<&Setting> {
        let own = Path::new(OWN).file_name();
        self.settings.iter().find(|setting| {
            let after = setting.path.file_name() > own || setting.path.ends_with(LAST);
            !setting.own && setting.controller != controller && (setting.administrator || after)
        })
    }
}

/// The default controller of a host.
#[derive(Debug)]
pub struct HostDefault {
    root: PathBuf,
}

impl HostDefault {
    /// The default of this host.
    pub fn of_this_host() -> HostDefault {
        HostDefault { root: PathBuf::from("/") }
    }

    /// Reads everything that determines the default.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Setting`] if a file cannot be read.
    pub fn state(&self) -> Result<DefaultState, PolicyError> {
        let asked = |name| sysctl(name).map_err(|source| failed("read", Path::new(name), source));
        let available: Vec<String> =
            asked(AVAILABLE)?.split_whitespace().map(str::to_string).collect();
        let mut loadable = self.modules();
        loadable.retain(|name| !available.contains(name));
        let own = self.text(&self.root.join(OWN))?;
        let before = own.lines().find_map(|line| line.strip_prefix(BEFORE));
        Ok(DefaultState {
            now: asked(KEY)?,
            before: before.map(|name| name.trim().to_string()),
            settings: self.settings()?,
            available,
            loadable,
        })
    }

    /// Checks that another controller can be set, and returns the state.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Decided`] if an administrator, or a file read after Knee's, sets it;
    /// [`PolicyError::Lacking`] if the kernel has no such controller; [`PolicyError::Setting`].
    pub fn allows(&self, controller: &str) -> Result<DefaultState, PolicyError> {
        let state = self.state()?;
        if !state.available.iter().chain(&state.loadable).any(|name| name == controller) {
            let have = [state.available, state.loadable].concat();
            return Err(PolicyError::Lacking { controller: controller.to_string(), have });
        }
        if let Some(setting) = state.against(controller) {
            return Err(PolicyError::Decided(setting.clone()));
        }
        Ok(state)
    }

    /// Sets the default now and for each boot. The file is written first.
    ///
    /// # Errors
    ///
    /// The errors of [`HostDefault::allows`], or a refusal by the kernel. Nothing has changed then.
    pub fn set(&self, controller: &str) -> Result<(), PolicyError> {
        let state = self.allows(controller)?;
        let path = self.root.join(OWN);
        let earlier = self.text(&path)?;
        let before = state.before.as_deref().unwrap_or(&state.now);
        self.write(&format!(
            "# Written by knee steer host. `knee steer host --undo` removes this file and sets\n\
             # again what was set before.\n{BEFORE}{before}\n{KEY} = {controller}\n"
        ))?;
        if let Err(error) = set_sysctl(KEY, controller) {
            match earlier.is_empty() {
                true => remove(&path)?,
                false => self.write(&earlier)?,
            }
            return Err(error.into());
        }
        Ok(())
    }

    /// Removes Knee's setting and restores the previous value, unless somebody has changed it
    /// since. Returns `Some(true)` if it was restored, `Some(false)` if it was left alone, `None`
    /// if Knee had set nothing.
    ///
    /// # Errors
    ///
    /// [`PolicyError::Setting`], or a refusal by the kernel; the file then still exists.
    pub fn undo(&self) -> Result<Option<bool>, PolicyError> {
        let state = self.state()?;
        let own = state.settings.iter().find(|setting| setting.own);
        let (Some(before), Some(own)) = (state.before, own) else { return Ok(None) };
        let ours = state.now == own.controller;
        if ours {
            set_sysctl(KEY, &before)?;
        }
        remove(&own.path)?;
        Ok(Some(ours))
    }

    fn settings(&self) -> Result<Vec<Setting>, PolicyError> {
        let mut files: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for folder in FOLDERS {
            for entry in fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten() {
                if entry.path().extension().is_some_and(|extension| extension == "conf") {
                    files.entry(entry.file_name()).or_insert(entry.path());
                }
            }
        }
        let mut paths: Vec<PathBuf> = files.into_values().collect();
        let last = self.root.join(LAST);
        // Distributions link it into the folders as well.
        let target = fs::canonicalize(&last).ok();
        paths.retain(|path| target.is_none() || fs::canonicalize(path).ok() != target);
        paths.push(last);
        let mut settings = Vec::new();
        for path in paths {
            for (index, line) in self.text(&path)?.lines().enumerate() {
                let Some(controller) = set_by(line) else { continue };
                settings.push(Setting {
                    line: index + 1,
                    controller: controller.to_string(),
                    own: path == self.root.join(OWN),
                    administrator: !path.starts_with(self.root.join("usr")),
                    path: path.clone(),
                });
            }
        }
        Ok(settings)
    }

    /// Controllers available as modules of the running kernel.
    fn modules(&self) -> Vec<String> {
        let release = sysctl("kernel.osrelease").unwrap_or_default();
        let folder = self.root.join("lib/modules").join(release).join("kernel/net/ipv4");
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let name = |entry: fs::DirEntry| {
            let file = entry.file_name().into_string().ok()?;
            let (name, rest) = file.strip_prefix("tcp_")?.split_once('.')?;
            // tcp_diag serves ss(8); it is not a controller.
            (rest.starts_with("ko") && name != "diag").then(|| name.to_string())
        };
        entries.filter_map(name).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Contents of a file; empty if there is none.
    fn text(&self, path: &Path) -> Result<String, PolicyError> {
        match fs::read(path) {
            Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
            Err(error) => Err(failed("read", path, error)),
        }
    }

    /// Writes Knee's file atomically.
    fn write(&self, text: &str) -> Result<(), PolicyError> {
        let path = self.root.join(OWN);
        let beside = path.with_extension("part");
        let written = (|| {
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder)?;
            }
            // Left by a killed process.
            let _ = fs::remove_file(&beside);
            let mut options = fs::OpenOptions::new();
            let mut file = options.write(true).create_new(true).mode(0o644).open(&beside)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&beside, &path)
        })();
        written.map_err(|source| failed("write", &path, source))
    }
}

/// The controller that a line in the syntax of sysctl.d(5) sets.
fn set_by(line: &str) -> Option<&str> {
    let line = line.trim();
    let (key, value) = line.strip_prefix('-').unwrap_or(line).split_once('=')?;
    (key.trim().replace('/', ".") == KEY).then(|| value.trim())
}

fn remove(path: &Path) -> Result<(), PolicyError> {
    fs::remove_file(path).map_err(|source| failed("remove", path, source))
}

fn failed(what: &'static str, path: &Path, source: io::Error) -> PolicyError {
    PolicyError::Setting { what, path: path.to_path_buf(), source }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(files: &[(&str, &str)]) -> (tempfile::TempDir, HostDefault) {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let host = HostDefault { root: folder.path().to_path_buf() };
        (folder, host)
    }

    fn places(host: &HostDefault) -> Vec<(String, usize, String)> {
        let settings = host.settings().unwrap().into_iter();
        let name = |path: PathBuf| path.file_name().unwrap().to_string_lossy().into_owned();
        settings.map(|found| (name(found.path), found.line, found.controller)).collect()
    }

    /// Order, precedence and line syntax of sysctl.d(5).
    #[test]
    fn settings_are_read_as_at_a_start() {
        let (_folder, host) = host(&[
            ("usr/lib/sysctl.d/50-a.conf", "net.ipv4.tcp_congestion_control=cubic\n"),
            ("usr/lib/sysctl.d/60-b.conf", "net.ipv4.tcp_congestion_control = hidden\n"),
            ("run/sysctl.d/60-b.conf", "# x\n-net/ipv4/tcp_congestion_control = reno\n"),
            ("etc/sysctl.d/10-c.conf", "#net.ipv4.tcp_congestion_control = bic\n; no\nvm.x=1\n"),
            ("etc/sysctl.d/note.txt", "net.ipv4.tcp_congestion_control = no\n"),
            ("etc/sysctl.conf", "net.ipv4.tcp_congestion_control=bbr"),
        ]);
        let line = |file: &str, line, name: &str| (file.to_string(), line, name.to_string());
        let expected = [
            line("50-a.conf", 1, "cubic"),
            line("60-b.conf", 2, "reno"),
            line("sysctl.conf", 1, "bbr"),
        ];
        assert_eq!(places(&host), expected);
    }

    /// Only a package's setting that is read before Knee's is not a conflict.
    #[test]
    fn what_is_against_a_setting_is_named() {
        let key = "net.ipv4.tcp_congestion_control = cubic\n";
        for (file, against) in [
            ("usr/lib/sysctl.d/50-a.conf", false),
            ("usr/lib/sysctl.d/99-a.conf", true),
            ("etc/sysctl.d/50-a.conf", true),
            ("etc/sysctl.conf", true),
        ] {
            let (_folder, host) = host(&[(file, key)]);
            let state = host.state().unwrap();
            assert_eq!(state.against("reno").is_some(), against, "{file}");
            assert_eq!(state.against("cubic"), None);
            assert_eq!(state.at_next_start().unwrap().controller, "cubic");
            if against {
                let refused = host.set("reno").unwrap_err().to_string();
                assert!(refused.contains(&format!("{file}:1")), "{refused}");
                assert!(!host.root.join(OWN).exists());
            }
        }
    }

    #[test]
    fn a_controller_that_is_not_there_is_named() {
        let (_folder, host) = host(&[]);
        let refused = host.set("hasty").unwrap_err().to_string();
        assert!(refused.contains("hasty"), "{refused}");
        assert!(!host.root.join(OWN).exists());
        assert_eq!(host.undo().unwrap(), None);
    }
}
