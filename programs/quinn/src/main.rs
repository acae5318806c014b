//! Sends and fetches GET /BYTES over QUIC with quinn, as hq-interop of the QUIC interop runner:
//!
//! ```text
//! quinn server ADDRESS:PORT CERT KEY CONTROLLER
//! quinn client ADDRESS:PORT BYTES CA
//! ```
//!
//! The controller is cubic, newreno or bbr. The server prints what its stack has counted as lost, packets.
//! The client writes its TLS secrets to `SSLKEYLOGFILE`. With the feature `noq` it is the program of noq,
//! which has quinn's interface and bbr3 in place of bbr.

#[cfg(feature = "noq")]
use quinn::congestion::Bbr3Config as BbrConfig;
#[cfg(not(feature = "noq"))]
use quinn::congestion::BbrConfig;
use quinn::congestion::{ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, ServerConfig, TransportConfig,
    VarInt,
};
use rustls::RootCertStore;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::error::Error;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

type Outcome<T = ()> = Result<T, Box<dyn Error + Send + Sync>>;

const PROTOCOL: &[u8] = b"hq-interop";
/// What the BBR of the stack is called.
const BBR: &str = if cfg!(feature = "noq") { "bbr3" } else { "bbr" };
/// Longest request, bytes.
const REQUEST_MAX: usize = 64;
/// Receive window, bytes: large enough for any path, so that the sender's window decides.
const WINDOW: u32 = 64 << 20;

async fn serve(address: &str, certificate: &str, key: &str, controller: &str) -> Outcome {
    let chain = CertificateDer::pem_file_iter(certificate)?.collect::<Result<Vec<_>, _>>()?;
    let key = PrivateKeyDer::from_pem_file(key)?;
    let mut tls =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(chain, key)?;
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ServerConfig::with_crypto(Arc::new(QuicServerConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    transport.send_window(u64::from(WINDOW)).congestion_controller_factory(factory(controller)?);
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::server(config, address.parse()?)?;
    let mut asked_to_end = signal(SignalKind::terminate())?;
    let mut answers = JoinSet::new();
    loop {
        tokio::select! {
            incoming = endpoint.accept() => {
                let Some(incoming) = incoming else { break };
                answers.spawn(async move { answer(incoming.await?).await });
            }
            _ = asked_to_end.recv() => break,
        }
    }
    endpoint.close(VarInt::from_u32(0), b"done");
    while answers.join_next().await.is_some() {}
    Ok(())
}

fn factory(controller: &str) -> Outcome<Arc<dyn ControllerFactory + Send + Sync>> {
    Ok(match controller {
        "cubic" => Arc::new(CubicConfig::default()),
        "newreno" => Arc::new(NewRenoConfig::default()),
        bbr if bbr == BBR => Arc::new(BbrConfig::default()),
        other => return Err(format!("there is no {other}: write cubic, newreno or {BBR}").into()),
    })
}

/// Sends what is asked for until either end closes the connection.
async fn answer(connection: Connection) -> Outcome {
    while let Ok((sending, receiving)) = connection.accept_bi().await {
        tokio::spawn(send(sending, receiving));
    }
    println!("lost {}", lost_packets(&connection));
    Ok(())
}

#[cfg(feature = "noq")]
fn lost_packets(connection: &Connection) -> u64 {
    connection.stats().lost_packets
}

#[cfg(not(feature = "noq"))]
fn lost_packets(connection: &Connection) -> u64 {
    connection.stats().path.lost_packets
}

async fn send(mut sending: SendStream, mut receiving: RecvStream) -> Outcome {
    let request = String::from_utf8(receiving.read_to_end(REQUEST_MAX).await?)?;
    let name = request.trim().strip_prefix("GET /").ok_or("the request is no GET")?;
    let mut left: usize = name.parse()?;
    let zeros = vec![0; 1 << 16];
    while left > 0 {
        left -= sending.write(&zeros[..left.min(zeros.len())]).await?;
    }
    sending.finish()?;
    Ok(())
}

async fn fetch(address: &str, bytes: &str, authority: &str) -> Outcome {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(authority)? {
        roots.add(certificate?)?;
    }
    let mut tls =
        rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    tls.key_log = Arc::new(rustls::KeyLogFile::new());
    tls.alpn_protocols = vec![PROTOCOL.to_vec()];
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(VarInt::from_u32(WINDOW));
    config.transport_config(Arc::new(transport));
    let server: SocketAddr = address.parse()?;
    let own: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let endpoint = Endpoint::client(own)?;
    let connection = endpoint.connect_with(config, server, "server.knee")?.await?;
    let (mut sending, mut receiving) = connection.open_bi().await?;
    sending.write_all(format!("GET /{bytes}\r\n").as_bytes()).await?;
    sending.finish()?;
    let mut asked_to_end = signal(SignalKind::terminate())?;
    let (mut came, mut buffer) = (0, vec![0; 1 << 16]);
    let is_whole = loop {
        tokio::select! {
            part = receiving.read(&mut buffer) => match part? {
                Some(bytes) => came += bytes,
                None => break true,
            },
            _ = asked_to_end.recv() => break false,
        }
    };
    connection.close(VarInt::from_u32(0), b"done");
    endpoint.wait_idle().await;
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
        _ => {
            Err("write server ADDRESS:PORT CERT KEY CONTROLLER | client ADDRESS:PORT BYTES CA"
                .into())
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
