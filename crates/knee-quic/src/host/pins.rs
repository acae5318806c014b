//! Keys of a host and its peers, which may change while it runs.

use super::{Host, HostError};
use crate::keys::{KeyPair, PublicKey, key_error};
use knee_units::Time;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::{ClientConfig, ServerConfig};
use std::sync::Arc;

/// Why connections of a peer end whose key is accepted no more.
pub(super) const REVOKED: &str = "its key was revoked";

/// Returns the configuration of a server with these keys.
pub(super) fn server_config(
    keys: &KeyPair,
    peers: &[PublicKey],
) -> Result<ServerConfig, HostError> {
    let tls = QuicServerConfig::try_from(keys.server(peers)?).map_err(key_error)?;
    Ok(ServerConfig::with_crypto(Arc::new(tls)))
}

/// Returns the configuration of a client with these keys.
pub(super) fn client_config(
    keys: &KeyPair,
    peers: &[PublicKey],
) -> Result<ClientConfig, HostError> {
    let tls = QuicClientConfig::try_from(keys.client(peers)?).map_err(key_error)?;
    Ok(ClientConfig::new(Arc::new(tls)))
}

impl Host {
    /// Uses other keys from now on: its own pair, and those of accepted peers. Connections of peers
    /// that are accepted no more end; others, and their bundles, go on with the keys with which they
    /// began.
    ///
    /// # Errors
    /// The keys cannot be used; nothing changes then.
    pub fn set_keys(
        &mut self,
        now: Time,
        keys: &KeyPair,
        peers: &[PublicKey],
    ) -> Result<(), HostError> {
        if self.settings.is_server {
            let server = server_config(keys, peers)?;
            for endpoint in &mut self.endpoints {
                endpoint.set_server_config(Some(Arc::new(server.clone())));
            }
            self.servers.fill(server);
        } else {
            self.clients.fill(client_config(keys, peers)?);
        }
        self.peers = peers.to_vec();
        let is_out = |peer: Option<PublicKey>| peer.is_some_and(|peer| !peers.contains(&peer));
        let bonds = self.bonds.iter().filter(|(_, bond)| is_out(bond.owner));
        for id in bonds.map(|(id, _)| *id).collect::<Vec<_>>() {
            self.end(now, &id);
        }
        // Those that have not joined.
        let links = self.links.iter();
        let links = links.filter(|(_, link)| is_out(link.peer) && link.member.is_none());
        for key in links.map(|(key, _)| *key).collect::<Vec<_>>() {
            self.dismiss(now, key, REVOKED);
        }
        Ok(())
    }
}
