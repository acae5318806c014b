//! Files that describe what Linux permits. Reading them has no side effects.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

/// A host, accessed through its files.
#[derive(Debug)]
pub struct Host {
    root: PathBuf,
}

/// Capabilities by their number in `linux/capability.h`.
#[derive(Clone, Copy, Debug)]
pub enum Capability {
    /// Network interfaces, TUN.
    NetAdmin = 12,
    /// Namespaces, and everything without its own capability.
    SysAdmin = 21,
    /// Real-time scheduling.
    SysNice = 23,
    /// BPF programs.
    Bpf = 39,
}

impl Host {
    /// The current host.
    pub fn this() -> Host {
        Host { root: PathBuf::from("/") }
    }

    /// A host whose files are below `root`.
    #[cfg(test)]
    pub fn below(root: &std::path::Path) -> Host {
        Host { root: root.to_path_buf() }
    }

    /// Contents of a file without surrounding whitespace.
    pub fn text(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_string())
    }

    /// Contents of a file as a number.
    pub fn number(&self, path: &str) -> Option<i64> {
        self.text(path)?.parse().ok()
    }

    /// Whether a file or folder exists.
    pub fn has(&self, path: &str) -> bool {
        self.root.join(path).exists()
    }

    /// Whether a file can be opened for reading and writing.
    pub fn opens(&self, path: &str) -> std::io::Result<()> {
        OpenOptions::new().read(true).write(true).open(self.root.join(path)).map(|_| ())
    }

    /// Whether this process has a capability in effect: proc(5), `CapEff`.
    pub fn may(&self, capability: Capability) -> bool {
        let status = self.text("proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
        let bits = line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok());
        bits.is_some_and(|bits| bits >> (capability as u32) & 1 == 1)
    }

    /// The soft limit of a resource: proc(5), `limits`.
    pub fn limit(&self, name: &str) -> Option<String> {
        let limits = self.text("proc/self/limits")?;
        let line = limits.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next().map(str::to_string)
    }

    /// Names of files with a prefix, at any depth below a folder.
    pub fn files(&self, folder: &str, beginning: &str) -> Vec<String> {
        let mut found = Vec::new();
        let mut folders = vec![self.root.join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let name = entry.file_name().to_string_lossy().into_owned();
                if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
                    folders.push(entry.path());
                } else if name.starts_with(beginning) {
                    found.push(name);
                }
            }
        }
        found.sort();
        found
    }
}
