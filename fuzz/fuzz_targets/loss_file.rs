//! Loss files: reading any input gives one entry for each 0 or 1 outside of comments, or a message
//! with a place and a remedy.

#![no_main]

use knee_link::read_loss;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match read_loss(text) {
        Ok(lost) => {
            let ones = text.matches('1').count();
            let zeros = text.matches('0').count();
            assert!(!lost.is_empty() && lost.len() <= ones + zeros);
            assert!(lost.iter().filter(|lost| **lost).count() <= ones);
            if !text.contains('#') {
                assert_eq!(lost.len(), ones + zeros);
            }
            // Written out plainly, it reads the same.
            let plain: String = lost.iter().map(|lost| if *lost { '1' } else { '0' }).collect();
            assert_eq!(read_loss(&plain).expect("plain digits"), lost);
        }
        Err(error) => {
            let message = error.to_string();
            assert!(!message.contains('\n') && message.len() < 300, "{message}");
        }
    }
});
