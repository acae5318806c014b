//! Sends and fetches GET /BYTES over QUIC with s2n-quic, as hq-interop of the QUIC interop runner:
//!
//! ```text
//! s2n-quic server ADDRESS:PORT CERT KEY CONTROLLER
//! s2n-quic client ADDRESS:PORT BYTES CA
//! ```
//!
//! The controller is cubic or bbr. The server prints what its stack has counted as lost, packets. The
//! client writes its TLS secrets to `SSLKEYLOGFILE`.

use s2n_quic::client::Connect;
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::event::{ConnectionInfo, ConnectionMeta, Subscriber, events};
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection, Server};
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::process::ExitCode;
use tokio::signal::unix::{SignalKind, signal};

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const PROTOCOL: &str = "hq-interop";
/// Longest request, bytes.
const REQUEST_MAX: usize = 64;
/// Receive window, bytes: large enough for any path, so that the sender's window decides.
const WINDOW: u64 = 64 << 20;

/// Counts the packets that a connection takes for lost.
struct Lost;

impl Subscriber for Lost {
    type ConnectionContext = u64;

    fn create_connection_context(&mut self, _: &ConnectionMeta, _: &ConnectionInfo) -> u64 {
        0
    }

    fn on_packet_lost(&mut self, lost: &mut u64, _: &ConnectionMeta, _: &events::PacketLost) {
        *lost += 1;
    }

    fn on_connection_closed(
        &mut self,
        lost: &mut u64,
        _: &ConnectionMeta,
        _: &events::ConnectionClosed,
    ) {
        println!("lost {lost}");
    }
}

fn limits() -> Outcome<Limits> {
    Ok(Limits::new()
        .with_data_window(WINDOW)?
        .with_bidirectional_local_data_window(WINDOW)?
        .with_max_send_buffer_size(WINDOW as u32)?)
}

async fn serve(address: &str, certificate: &str, key: &str, controller: &str) -> Outcome {
    let tls = rustls::Server::builder()
        .with_certificate(Path::new(certificate), Path::new(key))?
        .with_application_protocols([PROTOCOL].iter())?
        .build()?;
    let builder = Server::builder()
        .with_tls(tls)?
        .with_io(address.parse::<SocketAddr>()?)?
        .with_limits(limits()?)?
        .with_event(Lost)?;
    let mut server = match controller {
        "cubic" => builder.with_congestion_controller(Cubic::default())?.start()?,
        "bbr" => builder.with_congestion_controller(Bbr::default())?.start()?,
        other => return Err(format!("s2n-quic has no {other}: write cubic or bbr").into()),
    };
    let mut asked_to_end = signal(SignalKind::terminate())?;
    loop {
        tokio::select! {
            connection = server.accept() => {
                let Some(connection) = connection else { break };
                tokio::spawn(answer(connection));
            }
            _ = asked_to_end.recv() => break,
        }
    }
    Ok(())
}

/// Sends what is asked for until either end closes the connection.
async fn answer(mut connection: Connection) {
    while let Ok(Some(stream)) = connection.accept_bidirectional_stream().await {
        tokio::spawn(send(stream));
    }
}

async fn send(mut stream: BidirectionalStream) -> Outcome {
    let mut request = Vec::new();
    while let Some(part) = stream.receive().await? {
        request.extend_from_slice(&part);
        if request.len() > REQUEST_MAX {
            return Err("the request is too long".into());
        }
    }
    let request = String::from_utf8(request)?;
    let name = request.trim().strip_prefix("GET /").ok_or("the request is no GET")?;
    let mut left: usize = name.parse()?;
    let zeros = vec![0_u8; 1 << 16];
    while left > 0 {
        let part = left.min(zeros.len());
        stream.send(zeros[..part].to_vec().into()).await?;
        left -= part;
    }
    stream.close().await?;
    Ok(())
}

async fn fetch(address: &str, bytes: &str, authority: &str) -> Outcome {
    let tls = rustls::Client::builder()
        .with_certificate(Path::new(authority))?
        .with_application_protocols([PROTOCOL].iter())?
        .with_key_logging()?
        .build()?;
    let server: SocketAddr = address.parse()?;
    let own: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let mut client =
        Client::builder().with_tls(tls)?.with_io(own)?.with_limits(limits()?)?.start()?;
    let mut connection =
        client.connect(Connect::new(server).with_server_name("server.knee")).await?;
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(format!("GET /{bytes}\r\n").into_bytes().into()).await?;
    stream.finish()?;
    let mut asked_to_end = signal(SignalKind::terminate())?;
    let mut came = 0;
    let is_whole = loop {
        tokio::select! {
            part = stream.receive() => match part? {
                Some(part) => came += part.len(),
                None => break true,
            },
            _ = asked_to_end.recv() => break false,
        }
    };
    connection.close(0_u32.into());
    client.wait_idle().await?;
    println!("{came}");
    match is_whole && came.to_string() != bytes {
        true => Err(format!("{came} of {bytes} bytes came").into()),
        false => Ok(()),
    }
}

#[tokio::main]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match words.as_slice() {
        ["server", address, certificate, key, controller] => {
            serve(address, certificate, key, controller).await
        }
        ["client", address, bytes, authority] => fetch(address, bytes, authority).await,
        _ => Err("s2n-quic server ADDRESS:PORT CERT KEY CONTROLLER | client ADDRESS:PORT BYTES CA"
            .into()),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
