//! Who the peer is: its public key, pinned, in place of a certificate (RFC 7250).

use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use noq_proto::rustls;
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

/// Name of the protocol in the handshake (RFC 7301).
pub const PROTOCOL: &[u8] = b"knee-bond/1";

/// Keys could not be made or used.
#[derive(Debug, thiserror::Error)]
#[error("cannot make keys for the handshake: {0}")]
pub struct KeyError(String);

fn key_error(error: impl std::fmt::Display) -> KeyError {
    KeyError(error.to_string())
}

/// A pair of keys (Ed25519).
#[derive(Debug)]
pub struct KeyPair(Arc<CertifiedKey>);

/// The public one of a pair: a SubjectPublicKeyInfo (RFC 5280) in DER.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey(Vec<u8>);

impl KeyPair {
    /// A new pair, of the system's randomness.
    ///
    /// # Errors
    /// The system has none.
    pub fn generate() -> Result<KeyPair, KeyError> {
        let random = ::ring::rand::SystemRandom::new();
        let secret =
            ::ring::signature::Ed25519KeyPair::generate_pkcs8(&random).map_err(key_error)?;
        let secret = PrivatePkcs8KeyDer::from(secret.as_ref().to_vec());
        let key = ring::sign::any_eddsa_type(&secret).map_err(key_error)?;
        let public = key.public_key().ok_or_else(|| key_error("no public key"))?;
        let certified = vec![CertificateDer::from(public.to_vec())];
        Ok(KeyPair(Arc::new(CertifiedKey::new(certified, key))))
    }

    /// The public one.
    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.cert.first().map(|key| key.to_vec()).unwrap_or_default())
    }

    /// A client that has this pair and takes servers of these keys alone.
    ///
    /// # Errors
    /// The library of ciphers lacks what QUIC needs.
    pub fn client(&self, servers: &[PublicKey]) -> Result<QuicClientConfig, KeyError> {
        let mut config = rustls::ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(key_error)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(Pins(servers.to_vec())))
            .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(
                self.0.clone(),
            )));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        // Nothing is sent before the server is known, so nothing is to be resumed.
        config.resumption = rustls::client::Resumption::disabled();
        QuicClientConfig::try_from(config).map_err(key_error)
    }

    /// A server that has this pair and takes clients of these keys alone.
    ///
    /// # Errors
    /// The library of ciphers lacks what QUIC needs.
    pub fn server(&self, clients: &[PublicKey]) -> Result<QuicServerConfig, KeyError> {
        let mut config = rustls::ServerConfig::builder_with_provider(provider())
            .with_protocol_versions(&[&rustls::version::TLS13])
            .map_err(key_error)?
            .with_client_cert_verifier(Arc::new(Pins(clients.to_vec())))
            .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(self.0.clone())));
        config.alpn_protocols = vec![PROTOCOL.to_vec()];
        config.send_tls13_tickets = 0;
        QuicServerConfig::try_from(config).map_err(key_error)
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The keys that are taken. Each is checked to be one of them, and that the peer has its
/// secret half.
#[derive(Debug)]
struct Pins(Vec<PublicKey>);

impl Pins {
    fn check(&self, key: &CertificateDer<'_>) -> Result<(), rustls::Error> {
        if self.0.iter().any(|pin| pin.0 == key.as_ref()) {
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

/// TLS 1.2 has no place in QUIC (RFC 9001, section 4.2).
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
