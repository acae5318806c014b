//! How a connection becomes a path of a bundle: JOIN and its answer.

use super::{Host, HostEvent, HostSettings, LinkKey};
use crate::keys::PublicKey;
use crate::link::{Link, Member};
use knee_bundle::{Answer, Join, LABEL_MAX, Limits, PathUse, VERSION};
use knee_units::Time;
use noq_proto::{Dir, Side, StreamId, VarInt};

/// Error codes of a refusal.
const WRONG_VERSION: u8 = 1;
const SOMEBODY_ELSES: u8 = 2;
const TOO_MANY: u8 = 3;
const GONE: u8 = 4;

/// Longest message on a control stream, including its length.
const SAID_MAX: usize = 256;

impl Host {
    /// Reads a client's first message, which names the bundle of its connection.
    pub(super) fn take_join(&mut self, now: Time, key: LinkKey, said: &[u8]) {
        let Some(link) = self.links.get_mut(&key).filter(|link| link.member.is_none()) else {
            return;
        };
        let Some(peer) = link.peer else { return };
        let refusal = match Join::read(said) {
            Ok(None) => return,
            Err(malformed) => Some((WRONG_VERSION, malformed.to_string())),
            Ok(Some(join)) if join.version != VERSION => Some((
                WRONG_VERSION,
                format!(
                    "this server speaks version {VERSION} of the protocol, not {}",
                    join.version
                ),
            )),
            Ok(Some(join)) => {
                let id = join.bundle;
                let bond = self.bonds.get(&id);
                let others = self.bonds.values().filter(|bond| bond.owner == Some(peer)).count();
                let is_gone = bond.map_or(join.resumes, |bond| bond.closing);
                if is_gone {
                    Some((GONE, "the server does not have this bundle any more".to_owned()))
                } else if bond.is_some_and(|bond| bond.owner != Some(peer)) {
                    Some((SOMEBODY_ELSES, "the bundle belongs to another key".to_owned()))
                } else if bond.is_none() && others >= self.settings.bundles_of_a_key {
                    let problem = format!("{others} clients use this key: give each its own");
                    Some((TOO_MANY, problem))
                } else {
                    link.member = Some(Member {
                        bundle: id,
                        number: join.path,
                        label: join.label.clone(),
                        path_use: PathUse {
                            quiet: join.quiet,
                            cost: join.cost,
                            overflows: join.overflows,
                        },
                    });
                    self.welcome(now, key, &join, peer);
                    None
                }
            }
        };
        if let (Some((code, reason)), Some(link)) = (refusal, self.links.get_mut(&key)) {
            answer(link, &Answer::Refused { code, reason });
        }
    }

    /// Makes a client's connection a path of its bundle.
    fn welcome(&mut self, now: Time, key: LinkKey, join: &Join, peer: PublicKey) {
        let HostSettings { limits, linger, .. } = self.settings;
        let Limits { window, stream_window, streams } = limits;
        if let Some(link) = self.links.get_mut(&key) {
            let path = join.path;
            // The answer cannot express more than a day.
            let linger = linger.min(Time::from_secs(86_400));
            answer(link, &Answer::Joined { path, linger, streams, window, stream_window });
        }
        if !self.bonds.contains_key(&join.bundle) {
            self.insert(join.bundle, Some(peer), limits, linger);
            self.events.push_back(HostEvent::Accepted(join.bundle, peer));
        }
        self.up(now, key);
    }

    /// Reads the server's answer.
    pub(super) fn take_answer(&mut self, now: Time, key: LinkKey, said: &[u8]) {
        let at = self.instant(now);
        let Some(link) = self.links.get_mut(&key) else { return };
        let Some((id, number)) = link.place() else { return };
        let reason = match Answer::read(said) {
            Ok(None) => return,
            Ok(Some(Answer::Joined { linger, streams, window, stream_window, .. })) => {
                let announced = Limits { window, stream_window, streams };
                if self.bonds.contains_key(&id) {
                    return self.up(now, key);
                }
                // The server supposes that the client has the same limits.
                if let Some(limits) = self.settings.limits.accept(announced) {
                    self.insert(id, None, limits, linger);
                    return self.up(now, key);
                }
                format!(
                    "the server announces windows of {window} and {stream_window} bytes, and this \
                     client accepts at most {}: use the same version at both ends",
                    self.settings.limits.window
                )
            }
            Ok(Some(Answer::Refused { code, reason })) => {
                if code == GONE {
                    self.end(now, &id);
                }
                reason
            }
            Err(malformed) => malformed.to_string(),
        };
        if let Some(link) = self.links.get_mut(&key) {
            link.connection.close(at, VarInt::from_u32(0), bytes::Bytes::new());
        }
        self.events.push_back(HostEvent::Refused(id, number, reason));
    }
}

/// Tells the server to which bundle a connection belongs, and as which path.
pub(super) fn introduce(link: &mut Link, resumes: bool) {
    let Some(Member { bundle, number, label, path_use }) = link.member.clone() else { return };
    let label = label.chars().take(LABEL_MAX).filter(char::is_ascii).collect();
    let PathUse { quiet, cost, overflows } = path_use;
    let mut bytes = Vec::new();
    let version = VERSION;
    Join { version, bundle, path: number, cost, quiet, overflows, resumes, label }
        .write(&mut bytes);
    if let Some(stream) = link.connection.streams().open(Dir::Bi) {
        // A new stream always accepts so few bytes.
        let _ = link.connection.send_stream(stream).write(&bytes);
    }
}

/// Returns the control stream of a connection, the only stream.
fn control() -> StreamId {
    StreamId::new(Side::Client, Dir::Bi, 0)
}

/// Answers a JOIN.
fn answer(link: &mut Link, answer: &Answer) {
    let mut bytes = Vec::new();
    answer.write(&mut bytes);
    // A new stream always accepts so few bytes.
    let _ = link.connection.send_stream(control()).write(&bytes);
}

/// Returns what the peer has sent on the control stream so far.
pub(super) fn hear(link: &mut Link) -> Option<Vec<u8>> {
    link.connection.streams().accept(Dir::Bi);
    let mut stream = link.connection.recv_stream(control());
    let mut chunks = stream.read(true).ok()?;
    while let Ok(Some(chunk)) = chunks.next(SAID_MAX) {
        link.said.extend_from_slice(&chunk.bytes);
    }
    let _ = chunks.finalize();
    // There is only one message.
    link.said.truncate(SAID_MAX);
    Some(link.said.clone())
}
