//! Certificates of a run, for programs with TLS: an authority of its own, and a certificate for both
//! hosts. They are in the run's folder, and no other run accepts them.

use crate::environment::Variables;
use crate::files::create;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use knee_host::HostError;
use knee_record::OUTPUT;
use knee_testbed::{End, Family, Observed, add_secrets, address};
use nix::time::{ClockId, clock_gettime};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose, PublicKeyData, SanType,
};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use time::{Duration, OffsetDateTime};

/// Names of the hosts. Those with a path before them are below the wildcards.
const NAMES: [&str; 7] = [
    "server.knee",
    "client.knee",
    "sender.knee",
    "receiver.knee",
    "*.sender.knee",
    "*.receiver.knee",
    "localhost",
];
/// Paths whose addresses are in the certificate, which a server may send before the client's address
/// is validated only as far as 3600 bytes last (RFC 9000, section 8.1).
const PATHS_MAX: usize = 8;
/// Browsers accept a certificate by its hash if it is valid for two weeks at most (WebTransport, W3C
/// Working Draft, section 6.10), and their clocks may be a day apart.
const VALID: Duration = Duration::days(13);
const AHEAD: Duration = Duration::DAY;

const AUTHORITY: &str = "ca.pem";
const CERTIFICATE: &str = "cert.pem";
const KEY: &str = "key.pem";
/// Where programs write their TLS secrets.
const SECRETS: &str = "secrets.log";
/// Secrets that are kept in a capture, bytes: those of some 30,000 connections.
const SECRETS_MAX: u64 = 16 << 20;

/// Certificates in the folder of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificates {
    folder: PathBuf,
    /// SHA-256 of the certificate's public key (SubjectPublicKeyInfo), base64.
    spki: String,
}

impl Certificates {
    /// Makes the certificates of a run with this number of paths, and writes them below its folder.
    ///
    /// # Errors
    ///
    /// A file cannot be written.
    pub fn create(run: &Path, paths: usize) -> Result<Certificates, HostError> {
        let made = make(paths, now()).map_err(|error| {
            HostError::call("make certificates for programs", io::Error::other(error))
        })?;
        let folder = run.join(OUTPUT);
        let private = 0o600;
        for (name, text, mode) in [
            (AUTHORITY, &made.authority, 0o644),
            (CERTIFICATE, &made.certificate, 0o644),
            (KEY, &made.key, private),
        ] {
            let mut file = create(&folder, name, mode)?;
            file.write_all(text.as_bytes()).map_err(|source| {
                HostError::refused("write the certificates of a run", source, "see --out")
            })?;
        }
        // Programs append to it: it holds the secrets of this run alone, for its owner alone.
        create(&folder, SECRETS, private)?;
        Ok(Certificates { folder, spki: made.spki })
    }

    /// Those of a run that is under way.
    pub fn of_run(run: &Path, spki: String) -> Certificates {
        Certificates { folder: run.join(OUTPUT), spki }
    }

    /// Hash of the public key.
    pub fn spki(&self) -> &str {
        &self.spki
    }

    /// Returns the values of placeholders in commands.
    pub fn values(&self) -> Variables {
        vec![("ca", self.at(AUTHORITY)), ("cert", self.at(CERTIFICATE)), ("key", self.at(KEY))]
    }

    /// Returns what a program is told of them. `SSL_CERT_FILE` is read by OpenSSL, Go and others,
    /// `SSLKEYLOGFILE` by most.
    pub fn variables(&self) -> Variables {
        vec![
            ("KNEE_CA", self.at(AUTHORITY)),
            ("KNEE_CERT", self.at(CERTIFICATE)),
            ("KNEE_KEY", self.at(KEY)),
            ("KNEE_SPKI", self.spki.clone()),
            ("SSL_CERT_FILE", self.at(AUTHORITY)),
            ("SSLKEYLOGFILE", self.at(SECRETS)),
        ]
    }

    /// Puts the secrets that programs wrote into the capture of a run that has ended. What fails is
    /// the capture's error.
    pub fn complete_capture(&self, capture: Option<&File>, observed: &mut Observed) {
        let Some(capture) = capture.filter(|_| observed.capture_error.is_none()) else { return };
        let added = self.secrets().and_then(|secrets| match secrets.is_empty() {
            true => Ok(()),
            false => add_secrets(capture, &secrets),
        });
        observed.capture_error = added.err();
    }

    /// Returns the whole lines of secrets; none if a program removed the file.
    fn secrets(&self) -> io::Result<Vec<u8>> {
        let mut secrets = Vec::new();
        match File::open(self.at(SECRETS)) {
            Ok(file) => file.take(SECRETS_MAX).read_to_end(&mut secrets)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => 0,
            Err(error) => return Err(error),
        };
        let whole = secrets.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        secrets.truncate(whole);
        Ok(secrets)
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).to_string_lossy().into_owned()
    }
}

fn now() -> OffsetDateTime {
    let now = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |now| now.tv_sec());
    OffsetDateTime::from_unix_timestamp(now).unwrap_or(OffsetDateTime::UNIX_EPOCH)
}

/// Certificates as PEM.
#[derive(Debug)]
struct PemFiles {
    authority: String,
    certificate: String,
    key: String,
    spki: String,
}

fn make(paths: usize, now: OffsetDateTime) -> Result<PemFiles, rcgen::Error> {
    let parameters = |name: &str| {
        let mut parameters = CertificateParams::default();
        parameters.distinguished_name.push(DnType::CommonName, name);
        (parameters.not_before, parameters.not_after) = (now - AHEAD, now - AHEAD + VALID);
        parameters
    };
    let mut authority = parameters("authority of a run of Knee");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    let authority = CertifiedIssuer::self_signed(authority, KeyPair::generate()?)?;
    let mut leaf = parameters("server.knee");
    for name in NAMES {
        leaf.subject_alt_names.push(SanType::DnsName(name.try_into()?));
    }
    for path in 0..paths.min(PATHS_MAX) {
        for (end, family) in [End::Sender, End::Receiver]
            .into_iter()
            .flat_map(|end| [Family::V4, Family::V6].map(|family| (end, family)))
        {
            leaf.subject_alt_names.push(SanType::IpAddress(address(path, end, family)));
        }
    }
    leaf.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    leaf.extended_key_usages =
        vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    leaf.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = leaf.signed_by(&key, &authority)?;
    Ok(PemFiles {
        authority: authority.pem(),
        certificate: certificate.pem(),
        spki: STANDARD.encode(Sha256::digest(key.subject_public_key_info())),
        key: key.serialize_pem(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;
    use std::process::Command;

    /// Runs OpenSSL; `None` where there is none.
    fn openssl(arguments: &[&str]) -> Option<String> {
        let output = Command::new("openssl").args(arguments).output().ok()?;
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// OpenSSL accepts the certificate for a name and an address of each host over each path, and
    /// for no others, and the hash of the key is the one that it computes.
    #[test]
    fn openssl_accepts_the_certificate_for_both_hosts_and_no_others() {
        let run = tempfile::tempdir().unwrap();
        let made = Certificates::create(run.path(), 2).unwrap();
        let [(_, ca), (_, cert), (_, key)] = made.values().try_into().unwrap();
        assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
        for accepted in [
            ["-verify_hostname", "server.knee"],
            ["-verify_hostname", "wifi.receiver.knee"],
            ["-verify_ip", "10.64.0.1"],
            ["-verify_ip", "10.64.1.2"],
            ["-verify_ip", "fd6b:6e65:6500:1::2"],
        ] {
            let words =
                [&["verify", "-purpose", "sslserver", "-CAfile", &ca], &accepted[..], &[&cert]];
            if openssl(&words.concat()).is_none() {
                return;
            }
        }
        for refused in [["-verify_hostname", "example.org"], ["-verify_ip", "10.64.2.1"]] {
            let words = [&["verify", "-CAfile", &ca], &refused[..], &[&cert]].concat();
            let output = Command::new("openssl").args(words).output().unwrap();
            assert!(!output.status.success(), "{output:?}");
        }
        let script = format!(
            "openssl pkey -in {key} -pubout -outform der | openssl dgst -sha256 -binary | base64"
        );
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), made.spki());
    }

    /// Of two runs, neither accepts what the other has.
    #[test]
    fn each_run_has_an_authority_of_its_own() {
        let (one, other) = (make(1, now()).unwrap(), make(1, now()).unwrap());
        assert_ne!(one.authority, other.authority);
        assert_ne!(one.spki, other.spki);
    }

    /// However many paths there are, the first flight of a server has room for it.
    #[test]
    fn a_certificate_fits_into_what_a_server_may_send_at_first() {
        let made = make(1000, now()).unwrap();
        let base64: usize = made.certificate.lines().skip(1).map(str::len).sum();
        assert!(base64 * 3 / 4 < 1600, "{base64}");
    }
}
