//! The first bytes of applications and peers: any input is accepted, refused, or waited on, but
//! waiting ends, and is never for bytes already read.

#![no_main]

use knee_bond::proxy::{connect, socks};
use knee_bond::request::{Answer, Partial, Request, Target};
use knee_bundle::Join;
use libfuzzer_sys::fuzz_target;
use std::fmt::Debug;

/// Maximum length of any of these messages.
const MOST: usize = 1 << 17;

/// Reading all bytes gives the same as reading only those that were consumed, and with fewer bytes
/// more are needed.
fn check<T: Debug + PartialEq>(read: impl Fn(&[u8]) -> Partial<T>, bytes: &[u8]) {
    match read(bytes) {
        Ok(Some((value, taken))) => {
            assert!(taken <= bytes.len());
            let Ok(Some((again, same))) = read(&bytes[..taken]) else {
                panic!("{value:?} needs what follows it");
            };
            assert_eq!((again, same), (value, taken));
            if let Some(shorter) = taken.checked_sub(1) {
                assert!(!matches!(read(&bytes[..shorter]), Ok(Some((_, n))) if n > shorter));
            }
        }
        Ok(None) => assert!(bytes.len() < MOST, "it waits for ever"),
        Err(_) => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let [which, bytes @ ..] = data else { return };
    match which % 9 {
        0 => check(socks::greeting, bytes),
        1 => check(socks::credentials, bytes),
        2 => check(socks::command, bytes),
        3 => {
            if let Some(inner) = socks::datagram(bytes) {
                assert!(bytes.ends_with(inner));
            }
        }
        4 => check(connect::request, bytes),
        5 => {
            check(Request::read, bytes);
            if let Ok(Some((request, _))) = Request::read(bytes) {
                let mut written = Vec::new();
                request.write(&mut written);
                assert_eq!(Request::read(&written), Ok(Some((request, written.len()))));
            }
        }
        6 => check(Answer::read, bytes),
        7 => {
            if let Ok(text) = std::str::from_utf8(bytes) {
                let _ = Target::parse(text);
            }
        }
        _ => {
            if let Ok(Some(join)) = Join::read(bytes) {
                let mut written = Vec::new();
                join.write(&mut written);
                assert_eq!(Join::read(&written), Ok(Some(join)));
            }
        }
    }
});
