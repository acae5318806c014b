//! Configurations of both machines, in TOML. Each value is checked while it is parsed, so that
//! every error names its line.

use knee_bond::ConfigError;
use knee_bond::config::{ClientOf, Pins, beside, cap, check_clients, read, target, wrong};
use knee_bond::request::Target;
use knee_units::{Bytes, Rate, whole};
use serde::Deserialize;
use serde::de::{Deserializer, Error};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Default port of a server.
pub const PORT: u16 = 4434;
/// Largest number of connections that a client may be allowed; each takes a descriptor.
const CONNECTIONS_MAX: u64 = 10_000;
/// Minutes of an hour and of a day.
const HOUR: u16 = 60;
const DAY: u16 = 24 * HOUR;

/// A commented configuration of a server; its key is in `serve.key` beside it.
pub const EXAMPLE: &str = include_str!("serve.toml");

/// Configuration of the machine that receives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServeConfig {
    /// Address and TCP port at which control channels and flows are accepted.
    #[serde(default = "anywhere")]
    pub listen: SocketAddr,
    /// File of this machine's own key.
    pub key: PathBuf,
    /// Machines that may send.
    pub client: Vec<ClientOf>,
    /// Limits for each of them.
    #[serde(default)]
    pub limits: LimitsConfig,
}

/// Limits for each client.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LimitsConfig {
    /// Maximum number of concurrent connections.
    #[serde(deserialize_with = "connections")]
    pub connections: u32,
    /// Rate that all its flows together may have on average over a second; if absent, any.
    #[serde(deserialize_with = "rate")]
    pub rate: Option<Rate>,
    /// Bytes that its flows may carry in 24 hours; if absent, unlimited.
    #[serde(deserialize_with = "cap")]
    pub bytes_per_day: Option<Bytes>,
    /// Hours at which flows may run, in this machine's local time; if absent, always.
    #[serde(deserialize_with = "hours")]
    pub hours: Option<Hours>,
}

impl Default for LimitsConfig {
    fn default() -> LimitsConfig {
        LimitsConfig { connections: 256, rate: None, bytes_per_day: None, hours: None }
    }
}

/// A part of each day, in whole minutes; it may begin on one day and end on the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hours {
    from: u16,
    until: u16,
}

impl Hours {
    /// Parses `22:00-06:00`.
    ///
    /// # Errors
    /// What to write instead.
    pub fn parse(text: &str) -> Result<Hours, String> {
        let wanted = || format!("{text:?} are no hours: write \"22:00-06:00\"");
        let (from, until) = text.split_once('-').ok_or_else(wanted)?;
        let minute = |text: &str| {
            let (hour, minute) = text.trim().split_once(':')?;
            let (hour, minute): (u16, u16) = (hour.parse().ok()?, minute.parse().ok()?);
            // 24:00 is the end of a day.
            let at = hour.checked_mul(HOUR)?.checked_add(minute)?;
            (minute < HOUR && at <= DAY).then_some(at)
        };
        let hours = Hours {
            from: minute(from).ok_or_else(wanted)?,
            until: minute(until).ok_or_else(wanted)?,
        };
        match hours.from == hours.until {
            true => Err(format!("{text:?} allows nothing: leave hours out to allow all of a day")),
            false => Ok(hours),
        }
    }

    /// Returns whether a minute of the day is among them.
    pub fn contains(self, minute: u16) -> bool {
        match self.from < self.until {
            true => (self.from..self.until).contains(&minute),
            false => minute >= self.from || minute < self.until,
        }
    }
}

impl std::fmt::Display for Hours {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let clock = |at: u16| format!("{:02}:{:02}", at / HOUR, at % HOUR);
        write!(f, "{}-{}", clock(self.from), clock(self.until))
    }
}

/// What the machine that sends knows of the one that receives.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostConfig {
    /// The other machine: a name or an address, and a port.
    #[serde(deserialize_with = "target")]
    pub host: Target,
    /// Its public key; two while it is being changed.
    pub host_key: Pins,
    /// File of this machine's own key.
    pub key: PathBuf,
}

fn anywhere() -> SocketAddr {
    SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT)
}

fn connections<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    whole(from, "a number of connections at a time", 1..=CONNECTIONS_MAX)
}

fn rate<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Rate>, D::Error> {
    let text = String::deserialize(from)?;
    let wrong = |error| D::Error::custom(format!("{error}, as in \"1 Gbit/s\""));
    let rate: Rate = text.parse().map_err(wrong)?;
    match rate.as_bits_per_second() {
        0 => Err(D::Error::custom("this lets nothing through: write a rate above 0")),
        _ => Ok(Some(rate)),
    }
}

fn hours<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Hours>, D::Error> {
    Hours::parse(&String::deserialize(from)?).map(Some).map_err(D::Error::custom)
}

impl ServeConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read(path: &Path) -> Result<ServeConfig, ConfigError> {
        let mut config: ServeConfig = read(path)?;
        check_clients(path, &config.client)?;
        if config.listen.port() == 0 {
            return Err(wrong(path, "listen: name the port, as in \"[::]:4434\""));
        }
        beside(path, &mut config.key);
        Ok(config)
    }
}

impl HostConfig {
    /// Reads a configuration.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn read(path: &Path) -> Result<HostConfig, ConfigError> {
        let mut config: HostConfig = read(path)?;
        beside(path, &mut config.key);
        Ok(config)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_may_span_midnight() {
        let (day, night) =
            (Hours::parse("09:30-17:00").unwrap(), Hours::parse("22:00 - 06:00").unwrap());
        let at = |hour: u16, minute: u16| hour * 60 + minute;
        let inside = [at(9, 30), at(16, 59)].map(|minute| day.contains(minute));
        let outside = [at(9, 29), at(17, 0)].map(|minute| day.contains(minute));
        assert_eq!((inside, outside), ([true; 2], [false; 2]));
        let inside = [at(22, 0), at(23, 59), 0, at(5, 59)].map(|minute| night.contains(minute));
        assert_eq!((inside, night.contains(at(6, 0))), ([true; 4], false));
        assert!(Hours::parse("00:00-24:00").unwrap().contains(at(23, 59)));
        assert_eq!(night.to_string(), "22:00-06:00");
        for wrong in ["", "22", "22:00", "22:00-25:00", "22:60-23:00", "7-9", "07:00-07:00"] {
            assert!(Hours::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_example_lacks_only_the_key_of_a_client() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("serve.toml");
        std::fs::write(&path, EXAMPLE).unwrap();
        let error = ServeConfig::read(&path).unwrap_err().to_string();
        assert!(error.contains("44 letters") && error.contains("PUBLIC KEY"), "{error}");
        let key = knee_bond::key::to_text(&knee_quic::PublicKey::new([7; 32]));
        std::fs::write(&path, EXAMPLE.replace("PUBLIC KEY OF THE OTHER MACHINE", &key)).unwrap();
        let config = ServeConfig::read(&path).unwrap();
        assert_eq!(config.key, folder.path().join("serve.key"));
        assert_eq!(config.limits.rate.unwrap().as_bits_per_second(), 1_000_000_000);
        assert_eq!(config.limits.bytes_per_day.unwrap().get(), 100_000_000_000);
        assert_eq!(config.limits.hours, None);
    }
}
