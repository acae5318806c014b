//! Whether a server listens.

use std::fs::File;
use std::io::{self, Read};

/// Maximum size of a table of sockets that is read, bytes: some 50,000 sockets.
const TABLE_BYTES_MAX: u64 = 8 << 20;
/// State of a listening TCP socket (include/net/tcp_states.h).
const LISTEN: &str = "0A";

/// Transport of a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    Tcp,
    Udp,
}

/// Whether a socket listens on the port in the network of a process (proc_pid_net(5)).
///
/// # Errors
///
/// The process has ended.
pub fn listens(process: u32, transport: Transport, port: u16) -> io::Result<bool> {
    let names = match transport {
        Transport::Tcp => ["tcp", "tcp6"],
        Transport::Udp => ["udp", "udp6"],
    };
    for name in names {
        match read(&format!("/proc/{process}/net/{name}")) {
            Ok(table) if has_listener(&table, transport, port) => return Ok(true),
            Ok(_) => {}
            // A host without IPv6.
            Err(error) if error.kind() == io::ErrorKind::NotFound && name.ends_with('6') => {}
            Err(error) => return Err(error),
        }
    }
    Ok(false)
}

fn read(path: &str) -> io::Result<String> {
    let mut text = String::new();
    File::open(path)?.take(TABLE_BYTES_MAX).read_to_string(&mut text)?;
    Ok(text)
}

fn has_listener(table: &str, transport: Transport, port: u16) -> bool {
    table.lines().skip(1).any(|line| {
        let mut words = line.split_ascii_whitespace().skip(1);
        let (local, state) = (words.next(), words.nth(1));
        let number = local.and_then(|local| local.rsplit_once(':'));
        number.is_some_and(|(_, number)| u16::from_str_radix(number, 16) == Ok(port))
            && (transport == Transport::Udp || state == Some(LISTEN))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};

    /// Compared with sockets of this process.
    #[test]
    fn only_listening_sockets_count() {
        let here = |transport, port| listens(std::process::id(), transport, port).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        assert!(here(Transport::Tcp, port));
        let client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        assert!(!here(Transport::Tcp, client.local_addr().unwrap().port()));
        let socket =
            UdpSocket::bind("[::1]:0").or_else(|_| UdpSocket::bind("127.0.0.1:0")).unwrap();
        assert!(here(Transport::Udp, socket.local_addr().unwrap().port()));
        // A closed one is not asked for: a process that another test starts holds it for a moment.
    }
}
