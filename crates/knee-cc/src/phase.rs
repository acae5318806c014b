//! Names of phases that are not known at compile time.
//!
//! Phases are `&'static str`, so that a sample is `Copy` and recording it allocates
//! nothing. Names from a file, or created by a controller at run time, are
//! interned: each distinct name is kept once, for the lifetime of the process.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Largest number of distinct names in a process; a controller has about ten.
const NAMES_MAX: usize = 4096;
/// Longest name, in bytes.
const LENGTH_MAX: usize = 64;

static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());

/// Returns the name as a static string.
///
/// Returns `None` for a name of more than 64 bytes, and if 4096 names are
/// already known: no file or controller of Knee reaches these limits, and a
/// foreign one must not fill the memory.
pub fn intern(name: &str) -> Option<&'static str> {
    if name.is_empty() {
        return Some("");
    }
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Some(known);
    }
    if names.len() >= NAMES_MAX || name.len() > LENGTH_MAX {
        return None;
    }
    let kept: &'static str = Box::leak(name.into());
    names.insert(kept);
    Some(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once() {
        let first = intern("probe_bw_up").unwrap();
        let second = intern(&String::from("probe_bw_up")).unwrap();
        assert!(std::ptr::eq(first, second));
        assert_eq!(intern(""), Some(""));
        assert_eq!(intern(&"x".repeat(LENGTH_MAX + 1)), None);
    }
}
