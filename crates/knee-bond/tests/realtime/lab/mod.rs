//! A client with links to a server, each in a network namespace of its own, with the emulator
//! between them, and services behind the server.

use knee_bond::status::{self, Status};
use knee_bond::{Client, ClientConfig, Server, ServerConfig, key};
use knee_host::{Namespace, set_sysctl};
use knee_record::{Control, Records};
use knee_scenario::{Scenario, Source};
use knee_testbed::{Family, Health, Hosts, PathSettings, Testbed, TestbedError, address};
use knee_trials::{Pauses, Skipped, turn};
use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::{Arc, LazyLock, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

/// Address of the server and of the services behind it.
pub const SERVER: Ipv4Addr = Ipv4Addr::new(10, 99, 0, 1);
/// Pause of an application after a read; otherwise it wakes for every packet, and takes processor
/// time from both ends and the emulator.
const READING: Duration = Duration::from_millis(1);
/// Maximum bytes of a file that are written or read at a time.
const PART: usize = 1 << 16;
/// Port of the file service.
pub const FILES: u16 = 80;
/// Port of the UDP echo.
pub const ECHO: u16 = 7;

/// 10 and 5 Mbit/s, 10 ms each way.
pub const TWO: &str = r#"
[link.a0]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.b0]
rate = "10 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.a1]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
[link.b1]
rate = "5 Mbit/s"
delay = "10 ms"
buffer = "64 kB"
"#;
/// Both links, by name.
pub const BOTH: &str = "link = [{ interface = \"knee0\" }, { interface = \"knee1\" }]\n";
/// The addresses of the lab are private.
pub const ALLOW: &str = "[egress]\nallow = [\"10.99.0.0/16\"]\n";

/// How long the answers of a call are awaited after its end.
const GRACE: Duration = Duration::from_millis(500);

/// Departure time of a datagram, relative to the start of a call.
fn period(number: u16) -> Duration {
    Duration::from_millis(20) * u32::from(number)
}

/// Two hosts.
pub struct Lab {
    hosts: Arc<Hosts>,
    folder: TempDir,
}

/// A running end; dropping it stops it.
pub struct End {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    said: Arc<Mutex<Vec<String>>>,
    socket: PathBuf,
}

/// Runs a test on two hosts with these links between them (keys of a scenario).
pub fn on(links: &str, count: usize, test: impl FnOnce(&Lab) + Send) -> Result<(), Skipped> {
    measured(links, count, test).map(drop)
}

/// The same, and returns the condition of the host meanwhile.
pub fn measured(
    links: &str,
    count: usize,
    test: impl FnOnce(&Lab) + Send,
) -> Result<Health, Skipped> {
    let _turn = turn(Pauses::UpToMs(50))?;
    let paths: String = (0..count)
        .map(|n| format!("[path.p{n}]\nforward = [\"a{n}\"]\nreverse = [\"b{n}\"]\n"))
        .collect();
    let flow = "[[flow]]\nname = \"none\"\npath = \"p0\"\ncc = \"reno\"\n";
    let text = format!("name = \"bond\"\nduration = \"60 min\"\n{links}\n{paths}\n{flow}");
    let source = Source { name: "bond.toml", loader: &knee_scenario::Embedded(&[]) };
    let scenario = knee_scenario::parse(&text, &source, &[]);
    let scenario: Scenario = scenario.unwrap_or_else(|errors| panic!("{errors}"));
    let settings = vec![PathSettings { mtu: 1500, v6: false }; count];
    let (hosts, devices) = Hosts::create(&settings, |_| {
        // Applications are beside their proxies: little is lost, and pacing would cost timers.
        set_sysctl("net.ipv4.tcp_congestion_control", "reno")
    })
    .map_err(Skipped::lack)?;
    let hosts = Arc::new(hosts);
    hosts.receiver.within(|| ip(&["addr", "add", &format!("{SERVER}/32"), "dev", "lo"])).unwrap();
    for link in 0..count {
        let (device, metric) = (format!("knee{link}"), link.to_string());
        let to = format!("{SERVER}/32");
        let route = ["route", "append", &to, "dev", &device, "metric", &metric];
        hosts.sender.within(|| ip(&route)).unwrap();
    }
    let lab = Lab { hosts: hosts.clone(), folder: tempfile::tempdir().unwrap() };
    let testbed = Testbed { scenario: &scenario, hosts: &hosts };
    let checked = testbed.self_check(devices).map_err(Skipped::lack)?;
    let control = Control::default();
    let played = testbed.play(checked, &control, &mut (), None, |_, _, _| {
        lab.serve();
        test(&lab);
        Ok::<_, TestbedError>(Records::default())
    });
    Ok(played.unwrap_or_else(|error| panic!("{error}")).health)
}

fn ip(arguments: &[&str]) -> Result<(), knee_testbed::TestbedError> {
    let done = Command::new("ip").args(arguments).output().unwrap();
    assert!(done.status.success(), "ip {arguments:?}: {done:?}");
    Ok(())
}

fn start(host: &Namespace, command: &[String]) -> Child {
    let start = || Ok::<_, TestbedError>(Command::new(&command[0]).args(&command[1..]).spawn());
    host.within(start).unwrap().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Makes the answers of [`Lab::name`] (RFC 1035, section 4.1).
fn named(question: &[u8], whole: bool) -> Vec<u8> {
    let is_long = question[13..].starts_with(b"long");
    let records = match (is_long, whole) {
        (true, true) => 60,
        (true, false) => 0,
        (false, _) => 1,
    };
    let mut answer = question.to_vec();
    answer[2] = if is_long && !whole { 0x83 } else { 0x81 };
    answer[3] = 0x80;
    answer[7] = records;
    for _ in 0..records {
        // A pointer to the name of the question, A, IN, one minute, four bytes.
        answer.extend([0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4]);
        answer.extend(SERVER.octets());
    }
    answer
}

/// Bytes after which files repeat themselves: a prime, so that no misplaced block matches.
const PERIOD: usize = 1_000_003;

/// Returns `count` bytes, at most [`PART`], of every file from a place on. They are computed once,
/// because a processor that computes them lacks the transfer.
fn content(place: u64, count: usize) -> &'static [u8] {
    static BYTES: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let byte = |place: u64| (place.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8;
        (0..PERIOD as u64).chain(0..PART as u64).map(byte).collect()
    });
    &BYTES[(place % PERIOD as u64) as usize..][..count]
}

/// Returns the parts of a file of this size.
fn parts(bytes: u64) -> impl Iterator<Item = &'static [u8]> {
    let part = move |from| content(from, (bytes - from).min(PART as u64) as usize);
    (0..bytes).step_by(PART).map(part)
}

impl Lab {
    /// Starts the file service and the echo.
    fn serve(&self) {
        let bind = || -> Result<_, TestbedError> {
            Ok((
                TcpListener::bind((SERVER, FILES)).unwrap(),
                UdpSocket::bind((SERVER, ECHO)).unwrap(),
            ))
        };
        let (files, echo) = self.hosts.receiver.within(bind).unwrap();
        thread::spawn(move || {
            for connection in files.incoming().map_while(Result::ok) {
                thread::spawn(move || give(connection));
            }
        });
        thread::spawn(move || {
            let mut buffer = [0; 2048];
            while let Ok((count, from)) = echo.recv_from(&mut buffer) {
                let _ = echo.send_to(&buffer[..count], from);
            }
        });
    }

    /// Asks the proxy for a flow of datagrams (UDP ASSOCIATE, RFC 1928, section 7). Returns the
    /// connection, with which the flow ends, and the address for its datagrams.
    pub fn associate(&self) -> (TcpStream, SocketAddr) {
        self.associate_from(Ipv4Addr::UNSPECIFIED, 0)
    }

    /// The same, for datagrams from an address that the application declares.
    pub fn associate_from(&self, from: Ipv4Addr, port: u16) -> (TcpStream, SocketAddr) {
        let mut control = self.local(1080);
        control.write_all(&[5, 1, 0]).unwrap();
        control.read_exact(&mut [0; 2]).unwrap();
        let declared = [&from.octets()[..], &port.to_be_bytes()].concat();
        control.write_all(&[&[5, 3, 0, 1], &declared[..]].concat()).unwrap();
        let mut reply = [0; 10];
        control.read_exact(&mut reply).unwrap();
        assert_eq!(reply[..2], [5, 0]);
        let port = u16::from_be_bytes([reply[8], reply[9]]);
        (control, SocketAddr::from(([127, 0, 0, 1], port)))
    }

    /// Sends a flow of `count` datagrams to the echo through the proxy, 1 kB every 20 ms; returns
    /// the round trips of those that came back.
    pub fn call(&self, count: u16) -> Vec<Duration> {
        let (_control, relay) = self.associate();
        let socket = self.datagrams();
        let [a, b, c, d] = SERVER.octets();
        let head = [0, 0, 0, 1, a, b, c, d, 0, ECHO as u8];
        let mut sent: Vec<Instant> = Vec::new();
        let mut took = vec![None; count.into()];
        let mut buffer = [0; 2048];
        let began = Instant::now();
        while sent.len() < count.into() || began.elapsed() < period(count) + GRACE {
            if sent.len() < count.into() && began.elapsed() >= period(sent.len() as u16) {
                let number = (sent.len() as u16).to_be_bytes();
                let datagram = [&head[..], &number[..], &[7; 998][..]].concat();
                sent.push(Instant::now());
                socket.send_to(&datagram, relay).unwrap();
            }
            let next = period(sent.len() as u16).saturating_sub(began.elapsed());
            let wait = next.clamp(Duration::from_micros(500), Duration::from_millis(20));
            socket.set_read_timeout(Some(wait)).unwrap();
            if let Ok((length, _)) = socket.recv_from(&mut buffer) {
                assert_eq!(length, head.len() + 1000);
                let number = u16::from_be_bytes([buffer[10], buffer[11]]);
                let place: &mut Option<Duration> = &mut took[usize::from(number)];
                assert!(place.is_none(), "datagram {number} came twice");
                *place = Some(sent[usize::from(number)].elapsed());
            }
        }
        took.into_iter().flatten().collect()
    }

    /// Runs `work` on the client's host.
    pub fn here<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        self.hosts.sender.within(|| Ok::<_, TestbedError>(work())).unwrap()
    }

    /// Starts a nameserver on the server's host that answers every question with one A record of
    /// the server's address. The answer for `long.` has sixty records; over UDP it has none and the
    /// TC flag.
    pub fn name(&self) {
        let bind = || {
            let datagrams = UdpSocket::bind((SERVER, 53)).unwrap();
            Ok::<_, TestbedError>((datagrams, TcpListener::bind((SERVER, 53)).unwrap()))
        };
        let (datagrams, connections) = self.hosts.receiver.within(bind).unwrap();
        thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((count, from)) = datagrams.recv_from(&mut buffer) {
                let _ = datagrams.send_to(&named(&buffer[..count], false), from);
            }
        });
        thread::spawn(move || {
            for mut connection in connections.incoming().map_while(Result::ok) {
                let mut length = [0; 2];
                connection.read_exact(&mut length).unwrap();
                let mut question = vec![0; u16::from_be_bytes(length).into()];
                connection.read_exact(&mut question).unwrap();
                let answer = named(&question, true);
                connection.write_all(&(answer.len() as u16).to_be_bytes()).unwrap();
                connection.write_all(&answer).unwrap();
            }
        });
    }

    /// Runs ip(8) on the client's host.
    pub fn ip(&self, arguments: &[&str]) {
        self.hosts.sender.within(|| ip(arguments)).unwrap();
    }

    /// Runs a program on the client's host, and returns its output.
    pub fn run(&self, command: &[&str]) -> String {
        let run = || {
            Ok::<_, TestbedError>(Command::new(command[0]).args(&command[1..]).output().unwrap())
        };
        let done = self.hosts.sender.within(run).unwrap();
        assert!(done.status.success(), "{command:?}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    /// Starts a program on the client's host.
    pub fn start_here(&self, command: &[String]) -> Child {
        start(&self.hosts.sender, command)
    }

    /// Starts a program on the server's host.
    pub fn start_there(&self, command: &[String]) -> Child {
        start(&self.hosts.receiver, command)
    }

    /// Adds an address to the server's host.
    pub fn add_there(&self, address: Ipv4Addr) {
        let address = format!("{address}/32");
        self.hosts.receiver.within(|| ip(&["addr", "add", &address, "dev", "lo"])).unwrap();
    }

    /// Cuts a link silently: from now on all its packets are dropped.
    pub fn cut(&self, link: usize) {
        self.filter(link, "add");
    }

    /// Restores a link.
    pub fn mend(&self, link: usize) {
        self.filter(link, "del");
    }

    /// Adds or removes blackhole rules for packets to the client's address of a link at the server,
    /// and for packets out of that link at the client.
    fn filter(&self, link: usize, what: &str) {
        let there = format!("10.64.{link}.1/32");
        let rule = ["rule", what, "to", &there, "pref", "1", "blackhole"];
        self.hosts.receiver.within(|| ip(&rule)).unwrap();
        let device = format!("knee{link}");
        let rule = ["rule", what, "oif", &device, "pref", "1", "blackhole"];
        self.hosts.sender.within(|| ip(&rule)).unwrap();
    }

    /// Returns the status of an end.
    pub fn status(&self, role: &str) -> Status {
        status::ask(&self.path(&format!("{role}.sock"))).unwrap()
    }

    /// Returns the bytes that one connection receives in that time.
    pub fn load_for(&self, time: Duration) -> u64 {
        let mut connection = self.connect(SERVER, FILES).unwrap();
        connection.write_all(&(1_u64 << 32).to_be_bytes()).unwrap();
        let (mut buffer, mut bytes, began) = (vec![0; PART], 0, Instant::now());
        while began.elapsed() < time {
            bytes += read(&mut connection, &mut buffer) as u64;
        }
        bytes
    }

    /// Returns the path of a file in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Generates a key, and returns the public one.
    pub fn key(&self, name: &str) -> String {
        key::to_text(&key::generate(&self.path(name)).unwrap())
    }

    /// Starts a server that knows the client of this key, with additional configuration.
    pub fn server(&self, client: &str, more: &str) -> End {
        self.server_with(client, more, None)
    }

    /// Binds a socket to the server's port that outlives servers.
    pub fn handed(&self) -> UdpSocket {
        let bind = || Ok::<_, TestbedError>(UdpSocket::bind("0.0.0.0:4433").unwrap());
        self.hosts.receiver.within(bind).unwrap()
    }

    /// Starts a server that may be passed its socket.
    pub fn server_with(&self, client: &str, more: &str, handed: Option<UdpSocket>) -> End {
        let socket = self.path("server.sock");
        let text = format!(
            "listen = \"0.0.0.0:4433\"\nkey = \"server.key\"\nstatus = \"{}\"\n\
             client = [{{ name = \"laptop\", key = \"{client}\" }}]\n{more}",
            socket.display()
        );
        fs::write(self.path("server.toml"), text).unwrap();
        let config = ServerConfig::read(&self.path("server.toml")).unwrap();
        self.end(false, socket, |stop, said| async move {
            Server::new(config, handed).await.unwrap().run(stop, said).await.unwrap();
        })
    }

    /// Starts a client of the server of this key, with additional configuration.
    pub fn client(&self, server: &str, more: &str) -> End {
        self.client_of(&format!("{SERVER}:4433"), server, more)
    }

    /// Starts a client of the server at this address.
    pub fn client_of(&self, address: &str, server: &str, more: &str) -> End {
        self.client_with("client.sock", address, server, more)
    }

    /// The same, with its status at another socket.
    pub fn client_with(&self, socket: &str, address: &str, server: &str, more: &str) -> End {
        let socket = self.path(socket);
        let text = format!(
            "server = \"{address}\"\nserver_key = \"{server}\"\nkey = \"client.key\"\n\
             status = \"{}\"\n{more}",
            socket.display()
        );
        fs::write(self.path("client.toml"), text).unwrap();
        let config = ClientConfig::read(&self.path("client.toml")).unwrap();
        self.end(true, socket, |stop, said| async move {
            Client::new(config).await.unwrap().run(stop, said).await.unwrap();
        })
    }

    /// Starts both, with keys of their own.
    pub fn pair(&self, server: &str, client: &str) -> (End, End) {
        let (theirs, ours) = (self.key("server.key"), self.key("client.key"));
        let server = self.server(&ours, server);
        (server, self.client(&theirs, client))
    }

    fn end<F: Future<Output = ()>>(
        &self,
        is_client: bool,
        socket: PathBuf,
        run: impl FnOnce(Stop, Box<dyn FnMut(&str)>) -> F + Send + 'static,
    ) -> End {
        let (stop, stopped) = oneshot::channel::<()>();
        let said = Arc::<Mutex<Vec<String>>>::default();
        let (hosts, all) = (self.hosts.clone(), said.clone());
        let thread = thread::spawn(move || {
            let host = if is_client { &hosts.sender } else { &hosts.receiver };
            host.enter().unwrap();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let stop: Stop = Box::pin(async move {
                let _ = stopped.await;
            });
            let say = move |line: &str| all.lock().unwrap().push(line.to_owned());
            LocalSet::new().block_on(&runtime.unwrap(), run(stop, Box::new(say)));
        });
        End { stop: Some(stop), thread: Some(thread), said, socket }
    }

    /// Connects like an application on the client's host, over SOCKS5, without using this crate's
    /// code for it.
    pub fn connect(&self, to: Ipv4Addr, port: u16) -> Result<TcpStream, u8> {
        let mut connection = self.local(1080);
        connection.write_all(&[5, 1, 0]).unwrap();
        let mut answer = [0; 2];
        connection.read_exact(&mut answer).unwrap();
        assert_eq!(answer, [5, 0]);
        let [a, b, c, d] = to.octets();
        let [high, low] = port.to_be_bytes();
        connection.write_all(&[5, 1, 0, 1, a, b, c, d, high, low]).unwrap();
        let mut reply = [0; 10];
        connection.read_exact(&mut reply).unwrap();
        assert_eq!((reply[0], reply[3]), (5, 1), "{reply:?}");
        if reply[1] == 0 { Ok(connection) } else { Err(reply[1]) }
    }

    /// Connects to a port of the client's host.
    pub fn local(&self, port: u16) -> TcpStream {
        let to = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let began = Instant::now();
        loop {
            let connect = || Ok::<_, TestbedError>(TcpStream::connect(to));
            match self.hosts.sender.within(connect).unwrap() {
                Ok(connection) => return connection,
                Err(error) => {
                    assert!(began.elapsed() < Duration::from_secs(5), "{to}: {error}");
                    thread::sleep(Duration::from_millis(20));
                }
            }
        }
    }

    /// Binds a UDP socket of an application on the client's host.
    pub fn datagrams(&self) -> UdpSocket {
        let bind = || Ok::<_, TestbedError>(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
        self.hosts.sender.within(bind).unwrap()
    }

    /// Loads a file of this size, checks every byte, and returns the time it took.
    pub fn load(&self, bytes: u64) -> Duration {
        let began = Instant::now();
        let connection = self.connect(SERVER, FILES).unwrap();
        take(connection, bytes);
        began.elapsed()
    }

    /// Loads a file of this size over each link at once, without the proxy: over a TCP connection of
    /// the kernel each. Returns the time it took.
    pub fn load_straight(&self, bytes: u64) -> Duration {
        let began = Instant::now();
        thread::scope(|scope| {
            for link in 0..self.hosts.paths().len() {
                let server = (address(link, knee_testbed::End::Receiver, Family::V4), FILES);
                let listen = || Ok::<_, TestbedError>(TcpListener::bind(server).unwrap());
                let listener = self.hosts.receiver.within(listen).unwrap();
                scope.spawn(move || give(listener.accept().unwrap().0));
                let connect = || Ok::<_, TestbedError>(TcpStream::connect(server).unwrap());
                let connection = self.hosts.sender.within(connect).unwrap();
                scope.spawn(move || take(connection, bytes));
            }
        });
        began.elapsed()
    }

    /// Sends this many bytes, and returns the time until the other end had them.
    pub fn send(&self, bytes: u64) -> Duration {
        let began = Instant::now();
        let mut connection = self.connect(SERVER, FILES).unwrap();
        connection.write_all(&0_u64.to_be_bytes()).unwrap();
        parts(bytes).for_each(|part| connection.write_all(part).unwrap());
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut count = [0; 8];
        connection.read_exact(&mut count).unwrap();
        assert_eq!(u64::from_be_bytes(count), bytes);
        began.elapsed()
    }
}

type Stop = std::pin::Pin<Box<dyn Future<Output = ()>>>;

/// Sends as many bytes as are asked for, then checks what comes and returns the count.
fn give(mut connection: TcpStream) {
    let mut wanted = [0; 8];
    if connection.read_exact(&mut wanted).is_err() {
        return;
    }
    let wanted = u64::from_be_bytes(wanted);
    if parts(wanted).any(|part| connection.write_all(part).is_err()) {
        return;
    }
    let (mut buffer, mut place) = (vec![0; PART], 0_u64);
    while let Ok(count @ 1..) = connection.read(&mut buffer) {
        assert!(buffer[..count] == *content(place, count), "bytes from {place} on");
        place += count as u64;
    }
    let _ = connection.write_all(&place.to_be_bytes());
}

/// Reads once, and pauses if that was all.
fn read(connection: &mut TcpStream, buffer: &mut [u8]) -> usize {
    let count = connection.read(buffer).unwrap();
    if count < buffer.len() {
        thread::sleep(READING);
    }
    count
}

/// Asks for this many bytes on a connection, and checks them.
pub fn take(mut connection: TcpStream, bytes: u64) {
    connection.write_all(&bytes.to_be_bytes()).unwrap();
    let (mut buffer, mut place) = (vec![0; PART], 0_u64);
    while place < bytes {
        let count = read(&mut connection, &mut buffer);
        assert!(count > 0, "it ended after {place} of {bytes} bytes");
        assert!(buffer[..count] == *content(place, count), "bytes from {place} on");
        place += count as u64;
    }
}

impl End {
    /// Returns its status.
    pub fn status(&self) -> Status {
        status::ask(&self.socket).unwrap()
    }

    /// Waits until its status is as wanted.
    pub fn wait(&self, what: &str, wanted: impl Fn(&Status) -> bool) -> Status {
        let began = Instant::now();
        loop {
            if let Ok(status) = status::ask(&self.socket)
                && wanted(&status)
            {
                return status;
            }
            let late = began.elapsed() > Duration::from_secs(15);
            assert!(!late, "{what}: {:?}, said {:?}", status::ask(&self.socket), self.said());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until this many links are up.
    pub fn wait_for_links(&self, count: usize) {
        let up = |status: &Status| -> usize {
            status.bundles.iter().map(|bundle| bundle.links.len()).sum()
        };
        self.wait(&format!("{count} links"), |status| up(status) == count);
    }

    /// Returns the lines that it has reported.
    pub fn said(&self) -> Vec<String> {
        self.said.lock().unwrap().clone()
    }
}

impl Drop for End {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
            && !thread::panicking()
        {
            panic!("an end panicked");
        }
    }
}
