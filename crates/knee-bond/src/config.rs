//! Configurations of the two ends, in TOML. Each value is read into what it means, so that
//! every error names its line.

use crate::key;
use crate::request::Target;
use ipnet::IpNet;
use knee_cc::Selection;
use knee_quic::PublicKey;
use knee_units::Bytes;
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// The port of a server.
pub const PORT: u16 = 4433;
/// Where a client takes connections.
const PROXY: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 1080);
/// The port of nameservers.
const DNS: u16 = 53;
/// Links that a client has at most.
pub const LINKS_MAX: usize = knee_sched::PATHS_MAX;
/// Pins of a peer at most: the one that is, and the one that will be.
const PINS_MAX: usize = 2;

/// A configuration cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// What it says cannot be understood, and where.
    #[error("{}: {problem}", path.display())]
    Wrong {
        /// The file.
        path: PathBuf,
        /// What is wrong, with its line.
        problem: String,
    },
}

/// The configuration of a client.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientConfig {
    /// Where the server is: a name or address, and its port.
    #[serde(deserialize_with = "target")]
    pub server: Target,
    /// The server's public key; two while it is being changed.
    pub server_key: Pins,
    /// The file of the client's own key.
    pub key: PathBuf,
    /// Where SOCKS5 and HTTP CONNECT are spoken.
    #[serde(default = "proxy")]
    pub listen: SocketAddr,
    /// Who may use the proxy; anybody on this host if it is left out.
    pub login: Option<Login>,
    /// Ports that lead to one place each.
    #[serde(default)]
    pub forward: Vec<Forward>,
    /// Datagrams of UDP go over all links, and the first that arrives counts.
    #[serde(default)]
    pub duplicate_udp: bool,
    /// The links; none: every interface with a default route.
    #[serde(default)]
    pub link: Vec<LinkConfig>,
    /// What both ends have.
    #[serde(default)]
    pub tuning: Tuning,
    /// The socket that `status` asks.
    pub status: Option<PathBuf>,
    /// Where a browser or a collector of metrics asks: an address of loopback.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<SocketAddr>,
    /// The file that keeps what links with a cap have carried.
    pub caps: Option<PathBuf>,
    /// It takes all that programs of this host send; none: a proxy alone.
    pub transparent: Option<TransparentConfig>,
}

/// The configuration of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerConfig {
    /// Where clients come to.
    #[serde(default = "anywhere")]
    pub listen: SocketAddr,
    /// The file of the server's own key.
    pub key: PathBuf,
    /// Who may use it.
    pub client: Vec<ClientOf>,
    /// Where clients may get to.
    #[serde(default)]
    pub egress: EgressConfig,
    /// What each client may take.
    #[serde(default)]
    pub limits: LimitsConfig,
    /// Who resolves names for clients in their transparent mode; none: the first nameserver
    /// of the host.
    #[serde(default, deserialize_with = "nameserver")]
    pub nameserver: Option<SocketAddr>,
    /// What both ends have.
    #[serde(default)]
    pub tuning: Tuning,
    /// The socket that `status` asks.
    pub status: Option<PathBuf>,
    /// Where a browser or a collector of metrics asks: an address of loopback.
    #[serde(default, deserialize_with = "page")]
    pub page: Option<SocketAddr>,
}

/// One client of a server.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientOf {
    /// What the server calls it.
    pub name: String,
    /// Its public key; two while it is being changed.
    pub key: Pins,
}

/// What the transparent mode leaves alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TransparentConfig {
    /// Prefixes whose packets go as they went before, such as those of a printer.
    #[serde(deserialize_with = "prefixes")]
    pub except: Vec<IpNet>,
}

/// Where clients may get to beyond the open Internet.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct EgressConfig {
    /// Prefixes.
    #[serde(deserialize_with = "prefixes")]
    pub allow: Vec<IpNet>,
    /// Ports; none: all but 25.
    pub ports: Vec<u16>,
}

/// What each client may take.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Streams at once.
    pub streams: u32,
    /// New streams in a second, on average; a burst of ten times as many.
    pub new_streams_per_second: u32,
    /// Flows of UDP at once.
    pub udp_flows: u32,
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig { streams: 256, new_streams_per_second: 50, udp_flows: 64 }
    }
}

/// What both ends have: how links are filled and shared.
#[derive(Clone, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tuning {
    /// Congestion control of each link: `knee list controllers`.
    #[serde(deserialize_with = "controller")]
    pub controller: Selection,
    /// Which link a packet takes: `knee list schedulers`.
    #[serde(deserialize_with = "scheduler")]
    pub scheduler: Selection,
}

impl Tuning {
    /// Names of controller and scheduler.
    pub(crate) fn names(&self) -> (String, String) {
        (self.controller.name.clone(), self.scheduler.name.clone())
    }
}

impl Default for Tuning {
    fn default() -> Tuning {
        Tuning { controller: Selection::named("bbr"), scheduler: Selection::named("just-in-time") }
    }
}

/// A user of the proxy.
#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// Its name.
    pub user: String,
    /// Its password.
    pub password: zeroize::Zeroizing<String>,
}

impl std::fmt::Debug for Login {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

/// A port that leads to one place.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forward {
    /// Where it is taken: an address of loopback.
    #[serde(deserialize_with = "loopback")]
    pub listen: SocketAddr,
    /// To where it leads, from the server.
    #[serde(deserialize_with = "target")]
    pub to: Target,
}

/// A link of a client.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkConfig {
    /// Its interface, such as `eth0`.
    #[serde(deserialize_with = "interface")]
    pub interface: String,
    /// It is used when no cheaper one works, and is quiet until then.
    #[serde(default)]
    pub cost: u8,
    /// What it may carry in a month, in both directions; none: as much as there is.
    #[serde(default, deserialize_with = "cap")]
    pub cap: Option<Bytes>,
    /// The day of the month on which its cap begins anew.
    #[serde(default = "first", deserialize_with = "day")]
    pub resets: u8,
}

/// Public keys of a peer, of which each is taken.
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
            |_| D::Error::custom("write a public key, or two in a list while it is changed");
        let texts = match Written::deserialize(from).map_err(wrong)? {
            Written::One(text) => vec![text],
            Written::Several(texts) => texts,
        };
        if texts.is_empty() || texts.len() > PINS_MAX {
            return Err(D::Error::custom("write one public key, or two while it is changed"));
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

fn target<'de, D: Deserializer<'de>>(from: D) -> Result<Target, D::Error> {
    Target::parse(&String::deserialize(from)?).map_err(D::Error::custom)
}

fn loopback<'de, D: Deserializer<'de>>(from: D) -> Result<SocketAddr, D::Error> {
    let address = SocketAddr::deserialize(from)?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err(D::Error::custom("this port is on loopback alone: write 127.0.0.1 and the port"))
    }
}

fn page<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    loopback(from).map(Some)
}

fn nameserver<'de, D: Deserializer<'de>>(from: D) -> Result<Option<SocketAddr>, D::Error> {
    let text = String::deserialize(from)?;
    let plain = || text.parse().map(|address: IpAddr| SocketAddr::new(address, DNS));
    let wrong = || D::Error::custom(format!("{text:?} is no address: write 192.0.2.53"));
    text.parse().or_else(|_| plain()).map(Some).map_err(|_| wrong())
}

fn interface<'de, D: Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    let name = String::deserialize(from)?;
    // IFNAMSIZ with its zero byte.
    let fits = (1..16).contains(&name.len()) && !name.contains(['/', ' ']);
    if fits { Ok(name) } else { Err(D::Error::custom(format!("no interface is called {name:?}"))) }
}

fn cap<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Bytes>, D::Error> {
    let text = String::deserialize(from)?;
    text.parse().map(Some).map_err(|error| D::Error::custom(format!("{error}, as in \"20 GB\"")))
}

fn first() -> u8 {
    1
}

fn day<'de, D: Deserializer<'de>>(from: D) -> Result<u8, D::Error> {
    match u8::deserialize(from)? {
        day @ 1..=31 => Ok(day),
        _ => Err(D::Error::custom("a day of the month is 1 to 31")),
    }
}

fn prefixes<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<IpNet>, D::Error> {
    let texts = Vec::<String>::deserialize(from)?;
    let read = |text: &String| {
        let wrong = || D::Error::custom(format!("{text:?} is no prefix: write 10.1.0.0/16"));
        let single = || text.parse::<IpAddr>().map(IpNet::from);
        text.parse().or_else(|_| single()).map_err(|_| wrong())
    };
    texts.iter().map(read).collect()
}

fn controller<'de, D: Deserializer<'de>>(from: D) -> Result<Selection, D::Error> {
    let selection = Selection::named(String::deserialize(from)?);
    knee_quic::check_controller(&selection).map_err(D::Error::custom)?;
    Ok(selection)
}

fn scheduler<'de, D: Deserializer<'de>>(from: D) -> Result<Selection, D::Error> {
    let selection = Selection::named(String::deserialize(from)?);
    knee_sched::build(&selection).map_err(D::Error::custom)?;
    Ok(selection)
}

fn read<C: for<'de> Deserialize<'de>>(path: &Path) -> Result<C, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
    toml::from_str(&text).map_err(|error| wrong(path, error.to_string().trim_end()))
}

fn wrong(path: &Path, problem: &str) -> ConfigError {
    ConfigError::Wrong { path: path.to_owned(), problem: problem.to_owned() }
}

/// A path in a configuration is seen from where the configuration is.
fn beside(config: &Path, path: &mut PathBuf) {
    if let Some(folder) = config.parent() {
        *path = folder.join(&*path);
    }
}

impl ClientConfig {
    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read or used; the line is named.
    pub fn read(path: &Path) -> Result<ClientConfig, ConfigError> {
        let mut config: ClientConfig = read(path)?;
        if !config.listen.ip().is_loopback() && config.login.is_none() {
            return Err(wrong(
                path,
                "listen: whoever reaches this address could use the links: keep to 127.0.0.1, \
                 or add login = { user = \"…\", password = \"…\" }",
            ));
        }
        if config.link.len() > LINKS_MAX {
            return Err(wrong(path, &format!("link: at most {LINKS_MAX} links")));
        }
        let names: BTreeSet<&String> = config.link.iter().map(|link| &link.interface).collect();
        if names.len() < config.link.len() {
            return Err(wrong(path, "link: an interface is named twice"));
        }
        if config.transparent.is_some() {
            config.take_all(path)?;
        }
        beside(path, &mut config.key);
        if let Some(caps) = &mut config.caps {
            beside(path, caps);
        }
        Ok(config)
    }

    /// Has the client take all that programs of this host send, if it does not already.
    ///
    /// # Errors
    /// The server stands there by name, which could not be resolved then; `path` is the
    /// configuration's.
    pub fn take_all(&mut self, path: &Path) -> Result<(), ConfigError> {
        if let Target::Name(name, port) = &self.server {
            let problem = format!(
                "server: in the transparent mode names are resolved behind the server, {name} \
                 as well: write its address, as in 192.0.2.1:{port}"
            );
            return Err(wrong(path, &problem));
        }
        self.transparent.get_or_insert_default();
        Ok(())
    }
}

impl ServerConfig {
    /// Reads one.
    ///
    /// # Errors
    /// It cannot be read or used; the line is named.
    pub fn read(path: &Path) -> Result<ServerConfig, ConfigError> {
        let mut config: ServerConfig = read(path)?;
        let keys: Vec<_> = config.client.iter().flat_map(|client| &client.key.0).collect();
        let distinct: BTreeSet<_> = keys.iter().collect();
        if keys.is_empty() {
            return Err(wrong(path, "client: name at least one, with its public key"));
        }
        if distinct.len() < keys.len() {
            return Err(wrong(path, "client: a key stands twice; each client needs its own"));
        }
        beside(path, &mut config.key);
        Ok(config)
    }

    /// The client of a key.
    pub fn name_of(&self, key: &PublicKey) -> Option<&str> {
        let client = self.client.iter().find(|client| client.key.0.contains(key))?;
        Some(&client.name)
    }
}
