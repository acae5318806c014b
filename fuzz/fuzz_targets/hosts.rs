//! What another machine sends to `knee serve`, and back: any input is a message, refused, or waited on,
//! but waiting ends. Configurations of both machines: any text is accepted or refused.

#![no_main]

use knee_hosts::frames::{Reply, Request, message};
use knee_hosts::{HostConfig, Hours, ServeConfig};
use libfuzzer_sys::fuzz_target;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt::Debug;

/// Maximum length of a message, with its own.
const MOST: usize = 2 + 1024;

/// Reading all bytes gives the same as reading only those that were consumed, fewer never suffice, and
/// what was read can be written and read again.
fn check<M: Debug + PartialEq + Serialize + DeserializeOwned>(bytes: &[u8]) {
    match message::<M>(bytes) {
        Ok(Some((one, taken))) => {
            assert!(taken <= bytes.len() && taken <= MOST);
            let again = message(&bytes[..taken]).expect("it was a message");
            assert_eq!(again.map(|(again, _): (M, usize)| again).as_ref(), Some(&one));
            assert!(matches!(message::<M>(&bytes[..taken - 1]), Ok(None)));
            let text = serde_json::to_vec(&one).expect("it was read from JSON");
            let again: M = serde_json::from_slice(&text).expect("it was written as JSON");
            assert_eq!(again, one);
        }
        Ok(None) => assert!(bytes.len() < MOST, "it waits for ever"),
        Err(_) => {}
    }
}

fuzz_target!(|data: &[u8]| {
    let [which, bytes @ ..] = data else { return };
    let text = std::str::from_utf8(bytes);
    match (which % 5, text) {
        (0, _) => check::<Request>(bytes),
        (1, _) => check::<Reply>(bytes),
        (2, Ok(text)) => {
            if let Ok(hours) = Hours::parse(text) {
                assert_eq!(Hours::parse(&hours.to_string()), Ok(hours));
            }
        }
        (3, Ok(text)) => drop(toml::from_str::<ServeConfig>(text)),
        (4, Ok(text)) => drop(toml::from_str::<HostConfig>(text)),
        _ => {}
    }
});
