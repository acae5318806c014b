//! The proxy of a client: SOCKS5 and HTTP CONNECT on one port, and forwarded ports.

pub mod connect;
mod doors;
pub mod socks;
mod udp;

use self::doors::Place;
use crate::client::ClientHandle;
use crate::config::Login;
use crate::request::{Answer, Malformed, Outcome, Partial, REQUEST_MAX, Request, Target};
use crate::stream::{Broken, BundleStream, break_off, relay};
use knee_bundle::Class;
use knee_quic::BundleId;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

pub use self::doors::Doors;

/// Time limit for an application to send its request.
const TIMEOUT: Duration = Duration::from_secs(30);
/// How long a request waits for the first link.
const FIRST_LINK: Duration = Duration::from_secs(10);
/// How long it waits for the server's answer: for links to come back, and for the name and the
/// target.
const ANSWER: Duration = Duration::from_secs(90);
/// Pause after `accept` failed for lack of file descriptors.
pub(crate) const RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves connections of applications for as long as the client runs.
pub async fn serve(
    listener: TcpListener,
    handle: Rc<ClientHandle>,
    login: Rc<Option<Login>>,
    doors: Rc<Doors>,
) {
    while let Some(connection) = next(&listener).await {
        let (handle, login) = (handle.clone(), login.clone());
        doors.enter(async move |place| {
            // An application's error ends its connection and no other.
            let _ = serve_client(connection, &handle, login.as_ref().as_ref(), &place).await;
        });
    }
}

/// Forwards all connections of a port to one target.
pub async fn forward(
    listener: TcpListener,
    handle: Rc<ClientHandle>,
    to: Target,
    doors: Rc<Doors>,
) {
    while let Some(connection) = next(&listener).await {
        let (handle, to) = (handle.clone(), to.clone());
        doors.enter(async move |place| {
            place.has_asked();
            match ask(&handle, &Request::Tcp(to), &[]).await {
                Ok(stream) => relay(connection, stream, &[], |_| true).await,
                Err(_) => break_off(&connection),
            }
        });
    }
}

pub(crate) async fn next(listener: &TcpListener) -> Option<TcpStream> {
    loop {
        match listener.accept().await {
            Ok((connection, _)) => return Some(connection),
            Err(_) => tokio::time::sleep(RETRY_DELAY).await,
        }
    }
}

/// Reads until `read` can parse what came; the bytes after it stay in `said`.
async fn understand<T>(
    connection: &mut TcpStream,
    said: &mut Vec<u8>,
    read: impl Fn(&[u8]) -> Partial<T>,
) -> io::Result<T> {
    let wrong = |Malformed(problem)| io::Error::new(io::ErrorKind::InvalidData, problem);
    let all = async {
        loop {
            if let Some((understood, taken)) = read(said).map_err(wrong)? {
                said.drain(..taken);
                return Ok(understood);
            }
            if connection.read_buf(said).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
    };
    timeout(TIMEOUT, all).await.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

async fn serve_client(
    mut connection: TcpStream,
    handle: &ClientHandle,
    login: Option<&Login>,
    place: &Place,
) -> io::Result<()> {
    let mut said = Vec::new();
    let first = |bytes: &[u8]| Ok(bytes.first().map(|first| (*first, 0)));
    if understand(&mut connection, &mut said, first).await? == socks::VERSION {
        serve_socks(connection, said, handle, login, place).await
    } else {
        serve_http(connection, said, handle, login, place).await
    }
}

async fn serve_socks(
    mut connection: TcpStream,
    mut said: Vec<u8>,
    handle: &ClientHandle,
    login: Option<&Login>,
    place: &Place,
) -> io::Result<()> {
    let methods = understand(&mut connection, &mut said, socks::greeting).await?;
    let wanted = if login.is_some() { socks::PASSWORD } else { socks::NO_AUTHENTICATION };
    if !methods.contains(&wanted) {
        return connection.write_all(&[socks::VERSION, socks::NO_METHOD]).await;
    }
    connection.write_all(&[socks::VERSION, wanted]).await?;
    if let Some(login) = login {
        let (user, password) = understand(&mut connection, &mut said, socks::credentials).await?;
        let given = [&user[..], b":", &password].concat();
        let is_right = check(place, connection.peer_addr()?.ip(), login, &given);
        connection.write_all(&[1, u8::from(!is_right)]).await?;
        if !is_right {
            return Ok(());
        }
    }
    let command = understand(&mut connection, &mut said, socks::command).await?;
    place.has_asked();
    match command {
        socks::Command::Connect(target) => {
            let asked = ask(handle, &Request::Tcp(target), &[]).await;
            let code = socks::code(asked.as_ref().map_or_else(|a| a.outcome, |_| Outcome::Done));
            connection.write_all(&socks::reply(code, None)).await?;
            if let Ok(stream) = asked {
                relay(connection, stream, &said, |_| true).await;
            }
            Ok(())
        }
        socks::Command::Associate(target) => {
            match ask(handle, &Request::Udp { duplicate: handle.duplicate_udp }, &[]).await {
                Ok(stream) => udp::associate(connection, &target, stream, handle).await,
                Err(answer) => {
                    let code = socks::code(answer.outcome);
                    connection.write_all(&socks::reply(code, None)).await
                }
            }
        }
        socks::Command::Other => {
            connection.write_all(&socks::reply(socks::UNKNOWN_COMMAND, None)).await
        }
    }
}

async fn serve_http(
    mut connection: TcpStream,
    mut said: Vec<u8>,
    handle: &ClientHandle,
    login: Option<&Login>,
    place: &Place,
) -> io::Result<()> {
    let request = match understand(&mut connection, &mut said, connect::request).await {
        Ok(request) => request,
        Err(error) if error.kind() == io::ErrorKind::InvalidData => {
            let answer = connect::refusal("400 Bad Request", "", &error.to_string());
            return connection.write_all(answer.as_bytes()).await;
        }
        Err(error) => return Err(error),
    };
    let from = connection.peer_addr()?.ip();
    let is_known = login.is_none_or(|login| {
        request.credentials.is_some_and(|given| check(place, from, login, &given))
    });
    if is_known {
        place.has_asked();
    }
    let answer = if !is_known {
        let more = "Proxy-Authenticate: Basic realm=\"knee bond\"\r\n";
        connect::refusal(
            "407 Proxy Authentication Required",
            more,
            "user and password are required",
        )
    } else if let Some(target) = request.target {
        match ask(handle, &Request::Tcp(target), &[]).await {
            Ok(stream) => {
                connection.write_all(connect::ESTABLISHED.as_bytes()).await?;
                relay(connection, stream, &said, |_| true).await;
                return Ok(());
            }
            Err(answer) => connect::refusal(connect::status(answer.outcome), "", &answer.reason),
        }
    } else {
        let advice = "this proxy supports only CONNECT: use it as SOCKS5 for plain HTTP";
        connect::refusal("405 Method Not Allowed", "Allow: CONNECT\r\n", advice)
    };
    connection.write_all(answer.as_bytes()).await
}

/// Returns whether the credentials are right and may be checked now: an address from which many wrong
/// ones came has one check in a second.
fn check(place: &Place, from: IpAddr, login: &Login, given: &[u8]) -> bool {
    let may = place.doors().may_check(from);
    let is_right = may && is_login(login, given);
    if may && !is_right {
        place.doors().note_wrong(from);
    }
    is_right
}

/// Compares the credentials in constant time.
fn is_login(login: &Login, given: &[u8]) -> bool {
    let wanted = [login.user.as_bytes(), b":", login.password.as_bytes()].concat();
    let differ = |differ: u8, (a, b): (&u8, &u8)| differ | (a ^ b);
    wanted.len() == given.len() && wanted.iter().zip(given).fold(0, differ) == 0
}

/// Opens a stream with a request, followed by `first`, and waits for the answer.
///
/// # Errors
/// The refusal of the server or of this end.
pub(crate) async fn ask(
    handle: &ClientHandle,
    request: &Request,
    first: &[u8],
) -> Result<BundleStream, Answer> {
    let failed = |outcome, reason: &str| Answer { outcome, reason: reason.to_owned() };
    let Ok(bundle) = timeout(FIRST_LINK, handle.bundle()).await else {
        return Err(failed(Outcome::Unreachable, "no link to the server is up: knee bond status"));
    };
    let asked = timeout(ANSWER, ask_in(handle, bundle, request, first)).await;
    let late = |_| Err(failed(Outcome::TimedOut, "the server did not answer in time"));
    asked.unwrap_or_else(late)
}

/// Opens a stream in a bundle with a request, and waits for the answer.
async fn ask_in(
    handle: &ClientHandle,
    bundle: BundleId,
    request: &Request,
    first: &[u8],
) -> Result<BundleStream, Answer> {
    let failed = |outcome, reason: &str| Answer { outcome, reason: reason.to_owned() };
    let stopping =
        || failed(Outcome::Unreachable, "the server is stopping: try again once it is back");
    let Some(stream) = handle.engine.open(bundle, Class::Normal) else {
        let full = || failed(Outcome::TooMany, "the server's limit of connections is reached");
        return Err(if handle.is_left(&bundle) { stopping() } else { full() });
    };
    let mut bytes = Vec::with_capacity(REQUEST_MAX);
    request.write(&mut bytes);
    bytes.extend_from_slice(first);
    // A server that is stopping resets what it was asked meanwhile.
    let broken = |error: Broken| match error {
        Broken::Reset if handle.is_left(&bundle) => stopping(),
        _ => failed(Outcome::Failed, &error.to_string()),
    };
    stream.write(&bytes).await.map_err(broken)?;
    let mut said = Vec::new();
    loop {
        // Reads no more than the answer: the bytes after it come from the target.
        let wanted = match said.get(1) {
            None => 2 - said.len(),
            Some(length) => 2 + usize::from(*length) - said.len(),
        };
        if wanted > 0 {
            match stream.read(wanted).await.map_err(broken)? {
                Some(bytes) => said.extend_from_slice(&bytes),
                None => return Err(failed(Outcome::Failed, "the server did not answer")),
            }
            continue;
        }
        return match Answer::read(&said) {
            Ok(Some((Answer { outcome: Outcome::Done, .. }, _))) => Ok(stream),
            Ok(Some((answer, _))) => Err(answer),
            Ok(None) | Err(_) => Err(failed(Outcome::Failed, "the server's answer is invalid")),
        };
    }
}
