//! Reports a panic as a single line.

use crate::{failure, screen};
use std::panic::PanicHookInfo;

/// Makes a panic on any thread print one line and end the process with exit code 4, except for
/// panics due to a damaged file, which its reader reports.
pub fn one_sentence() {
    std::panic::set_hook(Box::new(|info| {
        if knee_record::is_decoding() {
            return;
        }
        screen::complain(&sentence(info));
        std::process::exit(i32::from(failure::INTERNAL));
    }));
}

fn sentence(info: &PanicHookInfo<'_>) -> String {
    let text = info.payload().downcast_ref::<&str>().map(|text| text.to_string());
    let text = text.or_else(|| info.payload().downcast_ref::<String>().cloned());
    let what = text.unwrap_or_else(|| "no reason given".to_string()).replace('\n', " ");
    let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
    let place = place.unwrap_or_default();
    format!("Knee stopped because of a bug, please report it with your command: {what}{place}")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    /// Not a test of its own: the test below runs it in a separate process.
    #[test]
    #[ignore = "run by panics_end_in_one_sentence"]
    fn panicking() {
        super::one_sentence();
        let _ = std::thread::spawn(|| panic!("two\nlines")).join();
        unreachable!("the hook ends the process");
    }

    #[test]
    fn panics_end_in_one_sentence() {
        let child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "panic::tests::panicking", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        assert_eq!(child.status.code(), Some(4));
        let said = String::from_utf8(child.stderr).unwrap();
        assert_eq!(said.lines().count(), 1, "{said}");
        assert!(said.starts_with("error: Knee stopped") && said.contains("two lines"), "{said}");
    }
}
