//! Access logs: reading any input gives transfers whose figures can be used, or a message with a place
//! and a remedy.

#![no_main]

use knee_foreign::{AccessLines, Extent, FileError};
use libfuzzer_sys::fuzz_target;

fn read(data: &[u8]) -> Result<(), FileError> {
    let mut lines = AccessLines::open(data, Extent::Whole)?;
    while let Some(one) = lines.next_transfer()? {
        assert!(one.bytes > 0 && one.line > 0);
        assert!(one.rtt_ns != Some(0));
        assert!(one.delivery_rate_bps.is_none_or(|rate| rate.is_finite() && rate > 0.0));
        let most = one.duration_ns.unwrap_or(u64::MAX);
        assert!(one.server_ns.is_none_or(|server| server <= most));
    }
    Ok(())
}

fuzz_target!(|data: &[u8]| {
    if let Err(error) = read(data) {
        let message = error.to_string();
        assert!(!message.contains('\n') && message.len() < 600, "{message}");
        assert!(message.starts_with("line "), "{message}");
    }
});
