//! Where Linux gets a controller from: its releases, and Knee's BPF programs.

use crate::controllers;

/// Controllers that releases of Linux have, at least as a module.
const RELEASES: [&str; 5] = ["bbr", "cubic", "dctcp", "reno", "vegas"];
/// Controllers of which Knee has a BPF program (`bpf/`), with any parameters.
const PROGRAMS: [&str; 4] = ["bbr", "bbr3", "copa", "fixed"];

/// Returns whether releases of Linux have the controller. They have no presets.
pub fn is_in_linux(name: &str) -> bool {
    RELEASES.contains(&name)
}

/// Returns whether Knee has a BPF program of the controller, or of the one that it is a preset of.
pub fn is_in_bpf(name: &str) -> bool {
    controllers().iter().any(|entry| {
        let named = entry.name == name || entry.presets.iter().any(|preset| preset.name == name);
        named && PROGRAMS.contains(&entry.name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_name_controllers() {
        let known = |name: &&str| controllers().iter().any(|entry| entry.name == *name);
        assert!(RELEASES.iter().chain(&PROGRAMS).all(known));
    }

    #[test]
    fn presets_are_in_the_program_of_their_controller_only() {
        for name in ["bbr-low-delay", "bbr3-linux", "copa", "fixed"] {
            assert!(is_in_bpf(name) && !is_in_linux(name), "{name}");
        }
        for name in ["gcc", "remycc", "prague", "unknown"] {
            assert!(!is_in_bpf(name) && !is_in_linux(name), "{name}");
        }
        assert!(is_in_bpf("bbr") && is_in_linux("bbr"));
    }
}
