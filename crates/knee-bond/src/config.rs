//! Configurations of client and server, in TOML. Each value is checked while it is parsed, so that
//! every error names its line.

use crate::key;
use crate::request::{Malformed, Target};
use crate::settings::STREAMS_MAX;
use crate::tuning::{controller, scheduler};
use ipnet::IpNet;
use knee_cc::{Selection, Value};
use knee_quic::PublicKey;
use knee_scenario::read_text_file;
use knee_units::{Bytes, list, whole};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Default port of a server.
pub const PORT: u16 = 4433;
/// Default address of the client's proxy.
const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);
/// Port of nameservers.
const DNS: u16 = 53;
/// Largest configuration or state, bytes.
pub(crate) const FILE_BYTES_MAX: u64 = 1 << 20;
/// Maximum number of links of a client.
pub const LINKS_MAX: usize = knee_bundle::PATHS_MAX;
/// Largest number that a limit may be; a larger one is a mistake.
const COUNT_MAX: u64 = 1_000_000;
/// Maximum number of pins of a peer: the current key and the next one.
const PINS_MAX: usize = 2;

/// Why a configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// The file cannot be parsed.
    #[error("{}: {problem}", path.display())]
    Wrong {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong, with its line.
        problem: String,
    },
}

/// Configuration of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// The server: a name or an address, and a port.
    #[serde(deserialize_with = "target")]
    pub server: Target,
    /// The server's public key; two while it is being changed.
    pub server_key: Pins,
    /// File of the client's own key.
    pub key: PathBuf,
    /// Address of the proxy, for SOCKS5 and HTTP CONNECT.
    #[serde(default = "proxy")]
    pub listen: SocketAddr,
    /// Credentials for the proxy; if absent, anybody on this host may use it.
    pub login: Option<Login>,
    /// Local ports, each forwarded to one target.
    #[serde(default)]
    pub forward: Vec<Forward>,
    /// Sends UDP datagrams over all links; the first copy to arrive counts.
    #[serde(default)]
    pub duplicate_udp: bool,
    /// The links; if empty, every interface with a default route.
    #[serde(default)]
    pub link: Vec<LinkConfig>,
    /// Settings common to client and server.
    #[serde(default)]
    pub tuning: Tuning,
    /// Socket on which `status` is answered.
    pub status: Option<PathBuf>,
    /// Loopback address of the page for browsers and collectors of metrics.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<SocketAddr>,
    /// File in which the traffic of links with a cap is counted.
    pub caps: Option<PathBuf>,
    /// Transparent mode: takes all that programs of this host send; if absent, only the proxy runs.
    pub transparent: Option<TransparentConfig>,
}

/// Configuration of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Address on which clients are accepted.
    #[serde(default = "anywhere")]
    pub listen: SocketAddr,
    /// File of the server's own key.
    pub key: PathBuf,
    /// Clients that may connect.
    pub client: Vec<ClientOf>,
    /// Destinations that clients may reach.
    #[serde(default)]
    pub egress: EgressConfig,
    /// Limits for each client.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// Nameserver for clients in transparent mode; if absent, the first nameserver of the host.
    #[serde(default, deserialize_with = "nameserver")]
    pub nameserver: Option<SocketAddr>,
    /// Settings common to client and server.
    #[serde(default)]
    pub tuning: Tuning,
    /// Socket on which `status` is answered.
    pub status: Option<PathBuf>,
    /// Loopback address of the page for browsers and collectors of metrics.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<SocketAddr>,
}

/// A client of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientOf {
    /// Name of the client in messages and status.
    pub name: String,
    /// The client's public key; two while it is being changed.
    pub key: Pins,
}

/// What the transparent mode takes besides what this host's programs send, and what not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransparentConfig {
    /// Prefixes whose packets are sent as before, such as that of a printer.
    #[serde(deserialize_with = "prefixes")]
    pub except: Vec<IpNet>,
    /// Interfaces of the house, such as `br-lan`: what their machines send to others is taken as well.
    #[serde(deserialize_with = "interfaces")]
    pub lan: Vec<String>,
}

/// Destinations that clients may reach beyond the open Internet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// Allowed prefixes.
    #[serde(deserialize_with = "prefixes")]
    pub allow: Vec<IpNet>,
    /// Allowed ports; if empty, all but 25.
    #[serde(deserialize_with = "ports")]
    pub ports: Vec<u16>,
}

/// Limits for each client.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Maximum number of concurrent streams.
    #[serde(deserialize_with = "streams")]
    pub streams: u32,
    /// New streams per second, on average; bursts of ten times as many are allowed.
    #[serde(deserialize_with = "rate_of_streams")]
    pub new_streams_per_second: u32,
    /// Maximum number of concurrent UDP flows; zero for none at all.
    #[serde(deserialize_with = "flows")]
    pub udp_flows: u32,
    /// Contents that its connections, UDP flows and DNS queries may carry in 24 hours, both
    /// directions together; if absent, unlimited.
    #[serde(deserialize_with = "cap")]
    pub bytes_per_day: Option<Bytes>,
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig {
            streams: 256,
            new_streams_per_second: 50,
            udp_flows: 10_000,
            bytes_per_day: None,
        }
    }
}

/// Settings common to client and server: how links are filled and shared.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// Congestion controller of each link; see `knee list controllers`.
    #[serde(deserialize_with = "controller")]
    pub controller: Selection,
    /// Scheduler, which chooses the link of each packet; see `knee list schedulers`.
    #[serde(deserialize_with = "scheduler")]
    pub scheduler: Selection,
}

impl Tuning {
    /// Returns controller and scheduler as they are written: a name, in quotes, or a table.
    pub(crate) fn texts(&self) -> (String, String) {
        (self.controller.to_string(), self.scheduler.to_string())
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        // Half a window in PROBE_RTT, as BBRv3 has: what is bonded is often alone on its links.
        let controller = Selection::named("bbr").with("probe_rtt_gain", Value::Number(0.5));
        Tuning { controller, scheduler: Selection::named("just-in-time") }
    }
}

/// Credentials for the proxy.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// User name.
    #[serde(deserialize_with = "user")]
    pub user: String,
    /// Password.
    #[serde(deserialize_with = "password")]
    pub password: zeroize::Zeroizing<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A local port that is forwarded to one target.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Local address, on loopback.
    #[serde(deserialize_with = "loopback")]
    pub listen: SocketAddr,
    /// Target, as seen from the server.
    #[serde(deserialize_with = "target")]
    pub to: Target,
}

impl Forward {
    /// Parses `8080:db.example.org:80`: a port on loopback, and the target.
    ///
    /// # Errors
    /// Either is missing or invalid.
    pub fn parse(text: &str) -> Result<Forward, Malformed> {
        const WANTED: Malformed =
            Malformed("write a local port and the target, as in 8080:db.example.org:80");
        let (port, to) = text.split_once(':').ok_or(WANTED)?;
        let port = port.parse().ok().filter(|port| *port != 0).ok_or(WANTED)?;
        let listen = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port);
        Ok(Forward { listen, to: Target::parse(to).map_err(|_| WANTED)? })
    }
}

/// A link of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Name of the interface, such as `eth0`.
    #[serde(deserialize_with = "interface")]
    pub interface: String,
    /// Cost of the link: it is used when no cheaper one works, and is quiet until then.
    #[serde(default, deserialize_with = "cost")]
    pub cost: u8,
    /// Whether the link is used as well when all cheaper ones have been full for two seconds.
    #[serde(default)]
    pub overflow: bool,
    /// Bytes that it may carry in a month, both directions together; if absent, unlimited.
    #[serde(default, deserialize_with = "cap")]
    pub cap: Option<Bytes>,
    /// Day of the month on which the count of the cap restarts.
    #[serde(default = "first", deserialize_with = "day")]
    pub resets: u8,
}

/// Public keys of a peer, any of which is accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pins(pub Vec<PublicKey>);

impl<'de> Deserialize<'de> for Pins {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Pins, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum Written {
            One(String),
            Several(Vec<String>),
        }
        let wrong =
            |_| D::Error::custom("write a public key, or a list of two during a change of keys");
        let texts = match Written::deserialize(from).map_err(wrong)? {
            Written::One(text) => vec![text],
            Written::Several(texts) => texts,
        };
        if texts.is_empty() || texts.len() > PINS_MAX {
            return Err(D::Error::custom("write one public key, or two during a change of keys"));
        }
        let keys = texts.iter().map(|text| key::from_text(text)).collect::<Result<_, _>>();
        keys.map(Pins).map_err(D::Error::custom)
    }
}

fn proxy() -> SocketAddr {
    PROXY
}

fn anywhere() -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT)
}

/// Reads a name or address with a port.
///
/// # Errors
/// Either is missing or invalid.
pub fn target<'de, D: Deserializer<'de>>(from: D) -> Result<Target, D::Error> {
    Target::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn loopback<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let address = SocketAddr::deserialize(from)?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(D::Error::custom("this port must be on loopback: write 127.0.0.1 and the port"))
    }
}

/// Checks the length of a user name or password: SOCKS5 has a byte for it (RFC 1929), and an empty one
/// protects nothing.
fn check_length<E: Error>(what: &str, text: &str) -> Result<(), E> {
    if (1..=255).contains(&text.len()) {
        Ok(())
    } else {
        Err(E::custom(format!("a {what} has 1 to 255 bytes, this one {}", text.len())))
    }
}

fn user<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let user = String::deserialize(from)?;
    check_length("user", &user)?;
    // In HTTP the first colon ends the user (RFC 7617, section 2).
    if user.contains(':') {
        return Err(D::Error::custom("a user has no colon"));
    }
    Ok(user)
}

fn password<'de, D: Deserializer<'de>>(from: D) -> Result<zeroize::Zeroizing<String>, D::Error> {
    let password = zeroize::Zeroizing::new(String::deserialize(from)?);
    check_length("password", &password)?;
    Ok(password)
}

fn page<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    loopback(from).map(Some)
}

fn nameserver<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    let plain = || text.parse().map(|address: IpAddr| SocketAddr::new(address, DNS));
    let wrong = || D::Error::custom(format!("{text:?} is not an address: write 192.0.2.53"));
    text.parse().or_else(|_| plain()).map(Some).map_err(|_| wrong())
}

fn interface<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    named(String::deserialize(from)?)
}

fn interfaces<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<String>, D::Error> {
    let names: Vec<String> = list(from, "a list of interfaces, such as [\"br-lan\"]")?;
    names.into_iter().map(named).collect()
}

/// Checks the name of an interface.
fn named<E: Error>(name: String) -> Result<String, E> {
    // IFNAMSIZ, which includes the terminating zero byte.
    let fits = (1..16).contains(&name.len()) && !name.contains(['/', ' ']);
    if fits { Ok(name) } else { Err(E::custom(format!("no interface is named {name:?}"))) }
}

/// Reads a limit of bytes, which is more than zero.
///
/// # Errors
/// The text is no size, or zero.
pub fn cap<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |error| D::Error::custom(format!("{error}, as in \"20 GB\""));
    let bytes: Bytes = text.parse().map_err(wrong)?;
    match bytes.get() {
        0 => Err(D::Error::custom(
            "this lets nothing through: write a size above 0, as in \"20 GB\"",
        )),
        _ => Ok(Some(bytes)),
    }
}

fn streams<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    // Each has a part of the window of 16 MiB to itself.
    whole(from, "a number of streams at a time", 1..=u64::from(STREAMS_MAX))
}

fn rate_of_streams<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    whole(from, "a number of new streams per second", 1..=COUNT_MAX)
}

fn flows<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    whole(from, "a number of UDP flows at a time", 0..=COUNT_MAX)
}

fn cost<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    whole(from, "a cost", 0..=u64::from(u8::MAX))
}

/// A port of a list.
#[derive(Deserialize)]
struct Port(#[serde(deserialize_with = "port")] u16);

fn port<'de, D: Deserializer<'de>>(from: D) -> Result<u16, D::Error> {
    whole(from, "a port", 1..=u64::from(u16::MAX))
}

fn ports<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u16>, D::Error> {
    let ports: Vec<Port> = list(from, "a list of ports, such as [80, 443]")?;
    Ok(ports.into_iter().map(|Port(port)| port).collect())
}

fn first() -> u8 {
    1
}

fn day<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    whole(from, "a day of the month", 1..=31)
}

fn prefixes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let texts: Vec<String> = list(from, "a list of prefixes, such as [\"10.1.0.0/16\"]")?;
    let read = |text: &String| {
        let wrong = || D::Error::custom(format!("{text:?} is not a prefix: write 10.1.0.0/16"));
        let single = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(|_| single()).map_err(|_| wrong())
    };
    texts.iter().map(read).collect()
}

/// Returns where to read the configuration at `path` again. A service has it as it was when the
/// service began, until its manager puts a newer one into its runtime directory (systemd.exec(5),
/// "LoadCredential=").
pub fn newer(path: &Path) -> PathBuf {
    let folder = std::env::var_os("RUNTIME_DIRECTORY").filter(|folder| !folder.is_empty());
    let beside = folder.and_then(|folder| Some(Path::new(&folder).join(path.file_name()?)));
    beside.filter(|newer| newer.exists()).unwrap_or_else(|| path.to_owned())
}

/// Reads a configuration of any kind.
///
/// # Errors
/// The file cannot be read or parsed; the error names the line.
pub fn read<C: for<'de> Deserialize<'de>>(path: &Path) -> Result<C, ConfigError> {
    let io = |source| ConfigError::Io { path: path.to_owned(), source };
    let text = read_text_file(path, FILE_BYTES_MAX).map_err(io)?;
    toml::from_str(&text).map_err(|error| wrong(path, &in_its_line(&text, &error)))
}

/// Returns what is wrong with a text, and in which line.
fn in_its_line(text: &str, error: &toml::de::Error) -> String {
    let problem = error.message().replace('\n', ", ");
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else {
        return problem;
    };
    let number = before.matches('\n').count();
    let line = text.lines().nth(number).unwrap_or_default().trim();
    format!("line {}: {problem}, in: {line}", number + 1)
}

/// Makes the error of a configuration that was parsed and cannot be used.
pub fn wrong(path: &Path, problem: &str) -> ConfigError {
    ConfigError::Wrong { path: path.to_owned(), problem: problem.to_owned() }
}

/// Resolves a path relative to the directory of the configuration.
pub fn beside(config: &Path, path: &mut PathBuf) {
    if let Some(folder) = config.parent() {
        *path = folder.join(&*path);
    }
}

impl ClientConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read(path: &Path) -> Result<ClientConfig, ConfigError> {
        ClientConfig::read_from(path, path)
    }

    /// Reads a configuration from `path` whose other files are beside `place`.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read_from(path: &Path, place: &Path) -> Result<ClientConfig, ConfigError> {
        let mut config: ClientConfig = read(path)?;
        if !config.listen.ip().is_loopback() && config.login.is_none() {
            return Err(wrong(
                path,
                "listen: anyone who reaches this address could use the links: use 127.0.0.1, or \
                 add login = { user = \"…\", password = \"…\" }",
            ));
        }
        if config.link.len() > LINKS_MAX {
            return Err(wrong(path, &format!("link: at most {LINKS_MAX} links")));
        }
        let names: BTreeSet<&String> = config.link.iter().map(|link| &link.interface).collect();
        if names.len() < config.link.len() {
            return Err(wrong(path, "link: an interface is repeated"));
        }
        if let Some(link) = config.link.iter().find(|link| link.overflow && link.cost == 0) {
            let name = &link.interface;
            return Err(wrong(
                path,
                &format!(
                    "link: {name} has overflow and no cost, so it is used anyway: add cost = 1"
                ),
            ));
        }
        if config.transparent.is_some() {
            config.take_all(path)?;
        }
        beside(place, &mut config.key);
        if let Some(caps) = &mut config.caps {
            beside(place, caps);
        }
        Ok(config)
    }

    /// Returns a warning if the configuration at `path` has a password and others can read it.
    pub fn warning(&self, path: &Path) -> Option<String> {
        let mode = std::fs::metadata(path).ok()?.permissions().mode() & 0o777;
        let is_open = self.login.is_some() && mode & 0o044 != 0;
        is_open.then(|| {
            let path = path.display();
            format!(
                "{path} has a password and can be read by others (its mode is {mode:o}): chmod 600 \
                 {path}"
            )
        })
    }

    /// Turns the transparent mode on, if it is not on already.
    ///
    /// # Errors
    /// The configuration gives the server by name, which could not be resolved in this mode, or lets
    /// other machines use the proxy, whose prefix is not excepted. `path` is the configuration's and
    /// appears in the error.
    pub fn take_all(&mut self, path: &Path) -> Result<(), ConfigError> {
        if let Target::Name(name, port) = &self.server {
            let problem = format!(
                "server: in transparent mode, names are resolved behind the server, including \
                 {name}: write its address, as in 192.0.2.1:{port}"
            );
            return Err(wrong(path, &problem));
        }
        let TransparentConfig { except, lan } = self.transparent.get_or_insert_default();
        let at = self.listen.ip();
        // Which machines use the proxy is not known; without any exception none of them could.
        let may_reply = !lan.is_empty()
            || except.iter().any(|prefix| {
                at.is_unspecified() || prefix.addr().is_ipv4() == at.to_canonical().is_ipv4()
            });
        if !at.is_loopback() && !may_reply {
            let problem = format!(
                "listen: in transparent mode, replies to other machines would be refused: use \
                 127.0.0.1, or name the interface of those that use the proxy at {}, as in \
                 transparent = {{ lan = [\"br-lan\"] }}, or except their prefix",
                self.listen
            );
            return Err(wrong(path, &problem));
        }
        Ok(())
    }
}

impl ServerConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read(path: &Path) -> Result<ServerConfig, ConfigError> {
        ServerConfig::read_from(path, path)
    }

    /// Reads a configuration from `path` whose other files are beside `place`.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read_from(path: &Path, place: &Path) -> Result<ServerConfig, ConfigError> {
        let mut config: ServerConfig = read(path)?;
        check_clients(path, &config.client)?;
        beside(place, &mut config.key);
        Ok(config)
    }

    /// Returns the keys of all clients.
    pub fn pins(&self) -> Vec<PublicKey> {
        pins(&self.client)
    }

    /// Returns the name of the client with this key.
    pub fn name_of(&self, key: &PublicKey) -> Option<&str> {
        name_of(&self.client, key)
    }
}

/// Returns the keys of all clients.
pub fn pins(clients: &[ClientOf]) -> Vec<PublicKey> {
    clients.iter().flat_map(|client| client.key.0.iter().copied()).collect()
}

/// Returns the name of the client with this key.
pub fn name_of<'c>(clients: &'c [ClientOf], key: &PublicKey) -> Option<&'c str> {
    let client = clients.iter().find(|client| client.key.0.contains(key))?;
    Some(&client.name)
}

/// Checks that there is a client, and that names and keys are each one client's.
///
/// # Errors
/// What is wrong; `path` is the configuration's.
pub fn check_clients(path: &Path, clients: &[ClientOf]) -> Result<(), ConfigError> {
    let keys: Vec<_> = clients.iter().flat_map(|client| &client.key.0).collect();
    let distinct: BTreeSet<_> = keys.iter().collect();
    if keys.is_empty() {
        return Err(wrong(path, "client: name at least one, with its public key"));
    }
    if distinct.len() < keys.len() {
        return Err(wrong(path, "client: a key is repeated; each client needs its own"));
    }
    let mut names = BTreeSet::new();
    if let Some(again) = clients.iter().find(|client| !names.insert(&client.name)) {
        let problem = format!(
            "client: the name {:?} is repeated; each client needs its own. During a change of \
             keys, list both: key = [\"…\", \"…\"]",
            again.name
        );
        return Err(wrong(path, &problem));
    }
    if let Some(client) = clients.iter().find(|c| c.name.contains(char::is_control)) {
        let problem = format!("client: the name {:?} has control characters", client.name);
        return Err(wrong(path, &problem));
    }
    Ok(())
}
