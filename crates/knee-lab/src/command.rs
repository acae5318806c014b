//! Lines for the command line `knee` that do something again. Records and
//! pages hold them.

use crate::ground::{Ground, SIMULATOR};
use std::path::Path;

/// A word as a POSIX shell takes it.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./=:%+,@".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_string();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The line that repeats a run from its directory, which has the resolved
/// scenario and all that it names.
pub fn of_run(directory: &Path, grounds: &[&str]) -> String {
    let scenario = directory.join(knee_record::SCENARIO);
    format!("knee run {}{}", quoted(&scenario.to_string_lossy()), on(grounds))
}

/// ` --on sim,kernel`; nothing for the simulator alone, which is the default.
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

    /// What a POSIX shell makes of it is the word again.
    #[test]
    fn a_shell_reads_quoted_words_back() {
        for word in ["plain-1.toml", "a b", "it's", "$HOME", "", "x;y", "link.a.rate=20 Mbit/s"] {
            let script = format!("printf %s {}", quoted(word));
            let out = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(String::from_utf8(out.stdout).unwrap(), word);
        }
    }
}
