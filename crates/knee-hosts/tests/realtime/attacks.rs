//! Who is not known gets nothing, for a bounded time.

use crate::far::{BULK, Far, flows};
use knee_bond::config::Pins;
use knee_bond::key;
use knee_hosts::{HostConfig, HostsError, LimitsConfig, Session, run};
use knee_quic::PublicKey;
use knee_record::Control;
use knee_trials::{Pauses, Skipped, alone};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrIn, SockaddrStorage, bind, connect as connect_to,
    socket,
};
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpStream};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Far longer than any time limit of a server: a test that waits so long fails.
const NEVER: Duration = Duration::from_secs(60);

fn connect(far: &Far) -> TcpStream {
    let stream = TcpStream::connect(far.at).unwrap();
    stream.set_read_timeout(Some(NEVER)).unwrap();
    stream
}

/// Waits until the server has closed a connection, without a word.
fn is_closed(mut stream: TcpStream) -> bool {
    let mut buffer = [0; 1];
    match stream.read(&mut buffer) {
        Ok(count) => count == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

pub fn an_unknown_key_is_refused() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    let stranger = far.file("stranger.key");
    key::generate(&stranger).unwrap();
    let with_key = HostConfig { key: stranger, ..far.host() };
    let to_other = HostConfig { host_key: Pins(vec![PublicKey::new([7; 32])]), ..far.host() };
    for host in [with_key, to_other] {
        let refused = Session::begin(&host);
        assert!(matches!(refused, Err(HostsError::Unknown { .. })), "{refused:?}");
    }
    assert_eq!(far.said(), "");
    assert!(Session::begin(&far.host()).is_ok());
    Ok(())
}

pub fn garbage_is_refused() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    let _session = Session::begin(&far.host()).unwrap();
    let wrong_token = [b"knee-1\r\n".as_slice(), &[7; 32], &[0; 4096]].concat();
    let http = [b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n".as_slice(), &[b'x'; 64]].concat();
    // A TLS record of a type that is not there.
    let tls = [22, 3, 1, 0, 4, 99, 0, 0, 0];
    for garbage in [wrong_token.as_slice(), &http, &tls] {
        let mut stream = connect(&far);
        stream.write_all(garbage).unwrap();
        let mut answer = Vec::new();
        // An alert of TLS at most.
        let _ = stream.read_to_end(&mut answer);
        assert!(answer.len() <= 7, "{answer:?}");
        assert!(is_closed(stream));
    }
    Ok(())
}

/// A handshake message has at most 64 KiB here, however long it says that it is.
pub fn an_endless_handshake_is_refused() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    let mut stream = connect(&far);
    // A ClientHello of 16 MiB, in records of 16 KiB.
    let first = [22, 3, 1, 0x40, 0, 1, 0xff, 0xff, 0xff];
    let mut sent = 0;
    let refused = (0..1024).any(|number| {
        let header: &[u8] = if number == 0 { &first } else { &first[..5] };
        let record = [header, &vec![0; 0x4005 - header.len()]].concat();
        sent += record.len();
        stream.write_all(&record).is_err()
    });
    assert!(refused, "{sent} bytes were taken");
    assert!(Session::begin(&far.host()).is_ok());
    Ok(())
}

pub fn a_silent_connection_is_closed() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    let silent = connect(&far);
    let mut half = connect(&far);
    half.write_all(b"knee-1").unwrap();
    let mut hello = connect(&far);
    hello.write_all(&[22, 3, 1]).unwrap();
    for stream in [silent, half, hello] {
        assert!(is_closed(stream));
    }
    Ok(())
}

/// Many times the connections that may be unknown at a time.
pub fn strangers_do_not_keep_a_client_out() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let far = Far::serve(LimitsConfig::default());
    let mut silent: Vec<TcpStream> = (0..400).map(|_| connect(&far)).collect();
    let (_, received) = run(&flows("200 ms", BULK), &far.host(), &Control::default()).unwrap();
    assert!(received.bytes.is_some_and(|bytes| bytes > 0) && received.over.is_none());
    // The oldest was closed for newer ones.
    assert!(is_closed(silent.remove(0)));
    Ok(())
}

/// Who opens many connections loses his own oldest one, not that of another address.
pub fn many_strangers_push_out_their_own() -> Result<(), Skipped> {
    let _alone = alone(Pauses::UpToMs(1000));
    let far = Far::serve(LimitsConfig::default());
    let open = |from: &str| {
        let flags = SockFlag::SOCK_CLOEXEC;
        let socket = socket(AddressFamily::Inet, SockType::Stream, flags, None).unwrap();
        let from: SocketAddrV4 = format!("{from}:0").parse().unwrap();
        bind(socket.as_raw_fd(), &SockaddrIn::from(from)).unwrap();
        connect_to(socket.as_raw_fd(), &SockaddrStorage::from(far.at)).unwrap();
        TcpStream::from(socket)
    };
    let mut many: Vec<TcpStream> = (0..100).map(|_| open("127.0.0.2")).collect();
    let mut other = open("127.0.0.3");
    many.extend((0..300).map(|_| open("127.0.0.2")));
    let first = many.remove(0);
    first.set_read_timeout(Some(NEVER)).unwrap();
    assert!(is_closed(first));
    other.set_nonblocking(true).unwrap();
    let error = other.read(&mut [0; 1]).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::WouldBlock);
    Ok(())
}

/// Measurements that are over wait for their client, which must not have any number of them.
pub fn a_client_that_begins_and_never_ends_is_refused() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    let mut begun = Vec::new();
    let refused = (0..50).find_map(|_| match Session::begin(&far.host()) {
        Ok(session) => {
            begun.push(session);
            None
        }
        Err(HostsError::Refused { reason, .. }) => Some(reason),
        Err(error) => panic!("{error}"),
    });
    assert!(refused.is_some_and(|reason| reason.contains("wait ten seconds")));
    Ok(())
}

/// A client that stops without a word holds nothing for ever.
pub fn a_silent_client_is_given_up() -> Result<(), Skipped> {
    let far = Far::serve(LimitsConfig::default());
    // Nobody speaks for it until it runs.
    let _silent = Session::begin(&far.host()).unwrap();
    assert!(
        knee_trials::namespaces::soon(|| far.said().contains("lab has ended")),
        "{}",
        far.said()
    );
    Ok(())
}
