//! Access logs and page files: reading any input gives sizes or objects that can be transferred, or
//! a message with a place and a remedy.

#![no_main]

use knee_workload::{PageObject, read_access_log, read_page};
use libfuzzer_sys::fuzz_target;

/// Returns whether every object can be fetched: repeatedly takes those whose dependencies have all
/// arrived.
fn all_arrive(objects: &[PageObject]) -> bool {
    let mut here = vec![false; objects.len()];
    loop {
        let ready = |object: &PageObject| object.after.iter().all(|before| here[*before]);
        let next: Vec<bool> = objects.iter().map(ready).collect();
        if next == here {
            return here.iter().all(|arrived| *arrived);
        }
        here = next;
    }
}

fn check_message(message: &str) {
    assert!(!message.contains('\n') && message.len() < 1500, "{message}");
    assert!(message.starts_with("line "), "{message}");
}

fuzz_target!(|data: &[u8]| {
    match read_access_log(data) {
        Ok(log) => assert!(!log.sizes.is_empty() && log.sizes.iter().all(|size| size > 0)),
        Err(error) => check_message(&error.to_string()),
    }
    match read_page(data) {
        Ok(page) => {
            assert!(!page.objects.is_empty());
            assert!(all_arrive(&page.objects), "an object is never known");
            assert!(page.objects.iter().all(|object| object.origin < page.origins.len()));
        }
        Err(error) => check_message(&error.to_string()),
    }
});
