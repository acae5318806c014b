//! Pages that browsers recorded: reading any input gives objects that can be fetched, or a message with
//! a place and a remedy.

#![no_main]

use knee_foreign::read_loaded_page;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| match read_loaded_page(data) {
    Ok(page) => {
        assert!(!page.objects.is_empty());
        for (number, object) in page.objects.iter().enumerate() {
            assert!(object.bytes > 0 && object.origin < page.origins.len());
            // It waits for what was requested before it.
            assert!(object.after.len() <= 2 && object.after.iter().all(|before| *before < number));
            assert!(object.delay.as_secs_f64() <= 3.0 * 86_400.0);
            assert!(object.name.chars().count() <= 61);
        }
        assert!(!page.to_string().contains('\n'));
    }
    Err(error) => {
        let message = error.to_string();
        assert!(!message.contains('\n') && message.len() < 1500, "{message}");
        assert!(message.starts_with("line "), "{message}");
    }
});
