//! Messages before the payload: SOCKS5, CONNECT, requests and answers between the ends. The
//! examples are written byte by byte from RFC 1928, 1929 and 9110.

use knee_bond::proxy::socks::Command;
use knee_bond::proxy::{connect, socks};
use knee_bond::request::{Answer, Outcome, Request, Target};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};

#[test]
fn socks5_byte_for_byte() {
    assert_eq!(socks::greeting(&[5, 2, 0, 2]), Ok(Some((vec![0, 2], 4))));
    assert_eq!(socks::greeting(&[5, 2, 0]), Ok(None));
    assert!(socks::greeting(&[4, 1, 0]).is_err());
    let said = b"\x01\x03ann\x04pass";
    assert_eq!(
        socks::credentials(said),
        Ok(Some(((b"ann".to_vec(), b"pass".to_vec()), said.len())))
    );
    let name = Target::Name("example.org".to_owned(), 443);
    let said = b"\x05\x01\x00\x03\x0bexample.org\x01\xbb";
    assert_eq!(socks::command(said), Ok(Some((Command::Connect(name), said.len()))));
    let said = [5, 3, 0, 1, 192, 0, 2, 1, 0, 53, 99];
    let address = Target::Address(IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 53);
    assert_eq!(socks::command(&said), Ok(Some((Command::Associate(address), 10))));
    assert_eq!(socks::command(&[5, 2, 0, 1, 1, 1, 1, 1, 0, 1]), Ok(Some((Command::Other, 10))));
    assert_eq!(
        socks::reply(0, Some("127.0.0.1:1080".parse().unwrap())),
        [5, 0, 0, 1, 127, 0, 0, 1, 4, 56]
    );
    // Fragments are not reassembled.
    assert_eq!(socks::datagram(&[0, 0, 1, 1, 1, 1, 1, 1, 0, 53]), None);
    assert_eq!(socks::datagram(&[0, 0, 0, 1, 1, 1, 1, 1, 0, 53, 7]).unwrap().len(), 8);
}

#[test]
fn connect_byte_for_byte() {
    let head = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\
        proxy-authorization: Basic YW5uOmI=\r\n\r\n";
    let (asked, taken) = connect::request(&[&head[..], b"rest"].concat()).unwrap().unwrap();
    assert_eq!(taken, head.len());
    assert_eq!(asked.target, Some(Target::Name("example.org".to_owned(), 443)));
    assert_eq!(asked.credentials, Some(b"ann:b".to_vec()));
    let get = b"GET http://example.org/ HTTP/1.1\r\n\r\n";
    assert_eq!(connect::request(get).unwrap().unwrap().0.target, None);
    assert_eq!(connect::request(&head[..20]), Ok(None));
    assert!(connect::request(b"CONNECT example.org HTTP/1.1\r\n\r\n").is_err());
    assert!(connect::request(&vec![b'a'; connect::HEAD_MAX + 1]).is_err());
}

#[test]
fn targets_in_words() {
    for (text, wanted) in [
        ("example.org:443", Some("example.org:443")),
        ("[2001:db8::1]:80", Some("[2001:db8::1]:80")),
        ("192.0.2.1:80", Some("192.0.2.1:80")),
        ("2001:db8::1:80", None),
        ("example.org", None),
        (":80", None),
        ("exa mple.org:80", None),
        ("example.org:65536", None),
    ] {
        let read = Target::parse(text);
        assert_eq!(read.ok().map(|target| target.to_string()).as_deref(), wanted, "{text}");
    }
}

fn target() -> impl Strategy<Value = Target> {
    prop_oneof![
        (any::<IpAddr>(), any::<u16>()).prop_map(|(address, port)| Target::Address(address, port)),
        ("[a-z][a-z0-9.-]{0,200}[a-z]", any::<u16>())
            .prop_map(|(name, port)| Target::Name(name, port)),
    ]
}

proptest! {
    #[test]
    fn what_is_written_is_read(target in target(), more in prop::collection::vec(any::<u8>(), 0..9)) {
        for request in [
            Request::Tcp(target),
            Request::Udp { duplicate: false },
            Request::Udp { duplicate: true },
            Request::Dns,
            Request::Flows { duplicate: false },
            Request::Flows { duplicate: true },
        ] {
            let mut bytes = Vec::new();
            request.write(&mut bytes);
            let taken = bytes.len();
            for cut in 0..taken {
                prop_assert_eq!(Request::read(&bytes[..cut]), Ok(None));
            }
            bytes.extend(&more);
            prop_assert_eq!(Request::read(&bytes), Ok(Some((request, taken))));
        }
    }

    #[test]
    fn answers_are_read_as_written(reason in "[ -~]{0,200}", outcome in 0..3_usize) {
        let outcome = [Outcome::Done, Outcome::Denied, Outcome::Failed][outcome];
        let answer = Answer { outcome, reason };
        let mut bytes = Vec::new();
        answer.write(&mut bytes);
        prop_assert_eq!(Answer::read(&bytes[..bytes.len() - 1]), Ok(None));
        let taken = bytes.len();
        prop_assert_eq!(Answer::read(&bytes), Ok(Some((answer, taken))));
    }

    /// Any input is parsed, refused or waited on, and never more is consumed than there is.
    #[test]
    fn no_bytes_do_harm(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let within = |taken: Option<usize>| taken.is_none_or(|taken| taken <= bytes.len());
        prop_assert!(within(socks::greeting(&bytes).ok().flatten().map(|read| read.1)));
        prop_assert!(within(socks::credentials(&bytes).ok().flatten().map(|read| read.1)));
        prop_assert!(within(socks::command(&bytes).ok().flatten().map(|read| read.1)));
        prop_assert!(within(connect::request(&bytes).ok().flatten().map(|read| read.1)));
        prop_assert!(within(Request::read(&bytes).ok().flatten().map(|read| read.1)));
        prop_assert!(within(Answer::read(&bytes).ok().flatten().map(|read| read.1)));
        let _ = socks::datagram(&bytes);
    }
}

/// RFC 9110, section 11.1: the name of a scheme may be in any case.
#[test]
fn the_scheme_of_a_password_may_be_in_any_case() {
    for scheme in ["Basic", "basic", "BASIC"] {
        let head = format!(
            "CONNECT a.example:1 HTTP/1.1\r\nProxy-Authorization: {scheme} YW5uOnBhc3M=\r\n\r\n"
        );
        let (request, _) = connect::request(head.as_bytes()).unwrap().unwrap();
        assert_eq!(request.credentials.as_deref(), Some(&b"ann:pass"[..]), "{scheme}");
    }
    let head = b"CONNECT a.example:1 HTTP/1.1\r\nProxy-Authorization: Bearer YW5uOnBhc3M=\r\n\r\n";
    assert_eq!(connect::request(head).unwrap().unwrap().0.credentials, None);
}

/// A server's reason stays in its line of the log, and leaves the terminal as it is.
#[test]
fn reasons_of_a_server_are_one_line() {
    let mut bytes = Vec::new();
    let reason = "no\nlaptop disconnected.\u{1b}[2J".to_owned();
    Answer { outcome: Outcome::Failed, reason }.write(&mut bytes);
    let (answer, _) = Answer::read(&bytes).unwrap().unwrap();
    assert_eq!(answer.reason, "no laptop disconnected. [2J");
}
