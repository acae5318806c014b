//! Identity of the peer: its public key, pinned, in place of a certificate (RFC 7250).

use ::ring::hmac;
use noq_proto::rustls;
use noq_proto::{
    ConnectionId, ConnectionIdGenerator, EndpointConfig, HashedConnectionIdGenerator, InvalidCid,
    RandomConnectionIdGenerator,
};
use rustls::SignatureScheme;
use rustls::client::AlwaysResolvesClientRawPublicKeys;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls13_signature_with_raw_key};
use rustls::pki_types::{
    CertificateDer, PrivatePkcs8KeyDer, ServerName, SubjectPublicKeyInfoDer, UnixTime,
};
use rustls::server::AlwaysResolvesServerRawPublicKeys;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::sign::CertifiedKey;
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName};
use std::sync::Arc;
use std::time::Duration;
use zeroize::Zeroizing;

/// Lengths of the ends' connection ids, bytes. Every packet carries that of its receiver, and a
/// client's socket has few connections beside a server's.
pub(crate) const CLIENT_ID: usize = 2;
pub(crate) const SERVER_ID: usize = 8;
/// Maximum number of concurrent connections of a client's endpoint, each of which has up to five ids:
/// most of the ids stay free, so that a new one is soon found.
pub(crate) const CLIENT_CONNECTIONS_MAX: usize = 8192;
/// The version of QUIC that is spoken (RFC 9000, section 15).
pub(crate) const QUIC: u32 = 1;
/// Name of the protocol in the handshake (RFC 7301).
pub const PROTOCOL: &[u8] = b"knee-bond/1";

/// Why keys could not be created or used.
#[derive(Debug, thiserror::Error)]
#[error("cannot make keys for the handshake: {0}")]
pub struct KeyError(String);

pub(crate) fn key_error(error: impl std::fmt::Display) -> KeyError {
    KeyError(error.to_string())
}

/// A key pair (Ed25519).
#[derive(Debug)]
pub struct KeyPair(Arc<CertifiedKey>);

/// The public key of a pair (RFC 8032, section 5.1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicKey([u8; 32]);

/// Bytes before the key in a DER SubjectPublicKeyInfo (RFC 8410, section 4).
const BEFORE_KEY: [u8; 12] = [0x30, 0x2a, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 3, 0x21, 0];

impl PublicKey {
    /// Makes a key from its bytes.
    pub fn new(bytes: [u8; 32]) -> PublicKey {
        PublicKey(bytes)
    }

    /// Returns its bytes.
    pub fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Extracts the key of a DER SubjectPublicKeyInfo, which takes the place of a certificate, or
    /// returns `None` if it is not Ed25519.
    pub fn of(info: &[u8]) -> Option<PublicKey> {
        info.strip_prefix(&BEFORE_KEY).and_then(|key| key.try_into().ok()).map(PublicKey)
    }

    /// Returns the key of a connection's peer, once its handshake is complete.
    pub(crate) fn of_peer(connection: &noq_proto::Connection) -> Option<PublicKey> {
        let identity = connection.crypto_session().peer_identity()?;
        let keys: Box<Vec<CertificateDer<'static>>> = identity.downcast().ok()?;
        keys.first().and_then(|key| PublicKey::of(key))
    }
}

impl KeyPair {
    /// Generates a key pair from the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub fn generate() -> Result<KeyPair, KeyError> {
        KeyPair::from_pkcs8(&KeyPair::generate_pkcs8()?)
    }

    /// Generates a key pair as DER PKCS #8 (RFC 5958), for [`from_pkcs8`](Self::from_pkcs8). It is
    /// erased on drop.
    ///
    /// # Errors
    /// The system has no randomness.
    pub fn generate_pkcs8() -> Result<Zeroizing<Vec<u8>>, KeyError> {
        let random = ::ring::rand::SystemRandom::new();
        let secret =
            ::ring::signature::Ed25519KeyPair::generate_pkcs8(&random).map_err(key_error)?;
        Ok(Zeroizing::new(secret.as_ref().to_vec()))
    }

    /// Reads a key pair from DER PKCS #8.
    ///
    /// # Errors
    /// It is not Ed25519, or damaged.
    pub fn from_pkcs8(secret: &[u8]) -> Result<KeyPair, KeyError> {
        let secret = PrivatePkcs8KeyDer::from(secret);
        let key = ring::sign::any_eddsa_type(&secret).map_err(key_error)?;
        let public = key.public_key().ok_or_else(|| key_error("not a public key"))?;
        let certified = vec![CertificateDer::from(public.to_vec())];
        Ok(KeyPair(Arc::new(CertifiedKey::new(certified, key))))
    }

    /// Returns the public key.
    ///
    /// # Panics
    /// Never: a pair always contains a valid public key.
    #[expect(clippy::expect_used, reason = "Ed25519 keys look so, and there is no other way in")]
    pub fn public(&self) -> PublicKey {
        self.0.cert.first().and_then(|key| PublicKey::of(key)).expect("a key of Ed25519")
    }

    /// Returns the configuration of an endpoint, which is the same after a restart, so that the
    /// endpoint can tell the peers of its former connections that these are over (RFC 9000, section
    /// 10.3).
    ///
    /// # Errors
    /// The key cannot sign.
    pub(crate) fn endpoint(&self, is_server: bool) -> Result<EndpointConfig, KeyError> {
        let signer = self.0.key.choose_scheme(&[SignatureScheme::ED25519]);
        let signer = signer.ok_or_else(|| key_error("not a key of Ed25519"))?;
        // Deterministic (RFC 8032, section 5.1.6), and nobody else can compute it.
        let secret = Zeroizing::new(signer.sign(b"knee-bond stateless reset").map_err(key_error)?);
        let reset = hmac::Key::new(hmac::HMAC_SHA256, &secret);
        let connection_ids = hmac::sign(&reset, b"connection ids");
        let (first, _) = connection_ids.as_ref().split_first_chunk().unwrap_or((&[0; 8], &[]));
        let connection_ids = u64::from_be_bytes(*first);
        let mut config = EndpointConfig::new(Arc::new(reset));
        config.supported_versions(vec![QUIC]);
        config.cid_generator(Arc::new(move || match is_server {
            true => Box::new(HashedConnectionIdGenerator::from_key(connection_ids)),
            false => Box::new(ClientIds(RandomConnectionIdGenerator::new(CLIENT_ID))),
        }));
        Ok(config)
    }

    /// Makes the TLS configuration of a client that has this pair and accepts only servers with
    /// these keys, for any QUIC or TLS library.
    ///
    /// # Errors
    /// The crypto library lacks TLS 1.3.
    pub fn client(&self, servers: &[PublicKey]) -> Result<rustls::ClientConfig, KeyError> {
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(key_error)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pins(servers.to_vec())))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                self.0.clone(),
            )));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Nothing is sent before the server is authenticated, so sessions are not resumed.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(config)
    }

    /// Makes the TLS configuration of a server that has this pair and accepts only clients with
    /// these keys, for any QUIC or TLS library.
    ///
    /// # Errors
    /// The crypto library lacks TLS 1.3.
    pub fn server(&self, clients: &[PublicKey]) -> Result<rustls::ServerConfig, KeyError> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(key_error)?
            .with_client_cert_verifier(Arc::new(Pins(clients.to_vec())))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.0.clone())));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        Ok(config)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// Random connection ids of a client. It says of no other that it was its own, and so sends no
/// stateless reset: whoever could ask for those of all ids could end connections that will have them
/// (RFC 9000, section 21.11).
struct ClientIds(RandomConnectionIdGenerator);

impl ConnectionIdGenerator for ClientIds {
    fn generate_cid(&mut self) -> ConnectionId {
        self.0.generate_cid()
    }

    fn validate(&self, _: ConnectionId) -> Result<(), InvalidCid> {
        Err(InvalidCid)
    }

    fn cid_len(&self) -> usize {
        self.0.cid_len()
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        self.0.cid_lifetime()
    }
}

/// Accepted keys. The peer's key must be one of them, and the peer must hold its secret half.
#[derive(Debug)]
struct Pins(Vec<PublicKey>);

impl Pins {
    fn check(&self, key: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if PublicKey::of(key).is_some_and(|key| self.0.contains(&key)) {
            Ok(())
        } else {
            Err(CertificateError::ApplicationVerificationFailure.into())
        }
    }

    fn signed(
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let key = SubjectPublicKeyInfoDer::from(key.as_ref());
        let algorithms = provider().signature_verification_algorithms;
        verify_tls13_signature_with_raw_key(message, &key, signature, &algorithms)
    }
}

/// Neither end uses TLS 1.2, nor does QUIC (RFC 9001, section 4.2).
const OLD: rustls::Error = rustls::Error::General(String::new());

impl ServerCertVerifier for Pins {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.check(key).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(OLD)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Pins::signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for Pins {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.check(key).map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(OLD)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Pins::signed(message, key, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }

    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}
