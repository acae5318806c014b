//! `knee` command lines that repeat a run or an analysis, stored in records and on pages.

use crate::ground::{Ground, SIMULATOR};
use std::path::Path;

pub use knee_present::words::quoted;

/// The command that repeats a run from its directory, which holds the resolved scenario and all of
/// its inputs.
pub fn of_run(directory: &Path, grounds: &[&str]) -> String {
    let scenario = directory.join(knee_record::SCENARIO);
    format!("knee run {}{}", quoted(&scenario.to_string_lossy()), on(grounds))
}

/// Formats ` --on sim,kernel`; empty for the simulator alone, which is the default.
pub(crate) fn on(grounds: &[&str]) -> String {
    match grounds {
        [only] if *only == SIMULATOR => String::new(),
        grounds => format!(" --on {}", grounds.join(",")),
    }
}

/// The names of grounds.
pub(crate) fn names<'g>(grounds: &'g [&dyn Ground]) -> Vec<&'g str> {
    grounds.iter().map(|ground| ground.name()).collect()
}

#[cfg(test)]
mod tests {
    use super::quoted;

    /// A POSIX shell must expand the quoted word to the original.
    #[test]
    fn a_shell_reads_quoted_words_back() {
        for word in ["plain-1.toml", "a b", "it's", "$HOME", "", "x;y", "link.a.rate=20 Mbit/s"] {
            let script = format!("printf %s {}", quoted(word));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }
}
