//! Signed policies (Ed25519, RFC 8032): a host can reject policies that somebody else wrote, that
//! are older than one it has accepted, or that have expired.
//!
//! The signature is the last line of the file, a comment for TOML:
//! `# signed ed25519 KEY SIGNATURE`, in hexadecimal digits. It covers everything before this line,
//! prefixed with a word that no other program signs.

use crate::{Policy, Problem};
use ed25519_compact::{KeyPair, PublicKey, Seed, Signature};
use knee_scenario::read_text_file;
use nix::fcntl::OFlag;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Largest policy, key or list of keys; a larger file is a mistake.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

const MARK: &str = "# signed ed25519 ";
/// Domain separator, so that a signature of something else is not valid for a policy.
const DOMAIN: &[u8] = b"knee-steer-policy/1\n";

/// Why a policy is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// It has no signature.
    #[error("the policy is not signed, and this host accepts only signed policies")]
    Unsigned,
    /// The last line is truncated or changed.
    #[error("its last line is not a signature")]
    Malformed,
    /// The host does not trust the key.
    #[error("it is signed by {0}, which this host does not trust")]
    Untrusted(String),
    /// The policy was changed after signing.
    #[error("its signature does not match: it was changed after it was signed")]
    Wrong,
    /// Version or expiry is missing.
    #[error("a signed policy needs a version and an expiry")]
    Incomplete,
    /// It has expired.
    #[error("it has expired")]
    Expired,
    /// A later version was accepted before.
    #[error("it has version {version}, but this host already had {had}")]
    Older {
        /// Version of this policy.
        version: u64,
        /// Highest accepted version.
        had: u64,
    },
    /// A different policy of this version was accepted before.
    #[error("this host already had another policy of version {0}")]
    Changed(u64),
    /// An invalid key.
    #[error("line {0} is not a key: write 64 hexadecimal digits, then a name")]
    Key(usize),
}

impl SignatureError {
    /// The remedy.
    pub fn advice(&self) -> &'static str {
        match self {
            SignatureError::Unsigned | SignatureError::Malformed => "knee steer sign POLICY",
            SignatureError::Untrusted(_) => "add the key to the trusted ones, if it is yours",
            SignatureError::Wrong => "sign it again, if the change is yours",
            SignatureError::Incomplete => {
                "write version = 1 and expires = 2027-01-31T00:00:00Z before the first [[group]]"
            }
            SignatureError::Expired => "write a later date after expires, and sign it",
            SignatureError::Older { .. } | SignatureError::Changed(_) => {
                "write a higher version, and sign it"
            }
            SignatureError::Key(_) => "knee steer keys FILE prints such a line",
        }
    }
}

/// A private key.
pub struct SigningKey(KeyPair);

impl SigningKey {
    /// Creates a key from 32 secret bytes.
    pub fn from_seed(seed: [u8; 32]) -> SigningKey {
        SigningKey(KeyPair::from_seed(Seed::new(seed)))
    }

    /// Parses a key as stored in a file, in hexadecimal digits.
    pub fn parse(text: &str) -> Option<SigningKey> {
        bytes(text.trim()).map(SigningKey::from_seed)
    }

    /// The public key, in hexadecimal digits.
    pub fn public(&self) -> String {
        hex(&*self.0.pk)
    }

    /// Signs a policy, replacing an existing signature.
    ///
    /// # Errors
    ///
    /// All errors in the policy; [`SignatureError::Incomplete`].
    pub fn sign(&self, text: &str) -> Result<Result<String, SignatureError>, Vec<Problem>> {
        let body = parts(text).0;
        let policy = Policy::parse(body)?;
        if policy.version.is_none() || policy.expires_unix.is_none() {
            return Ok(Err(SignatureError::Incomplete));
        }
        let end = if body.is_empty() || body.ends_with('\n') { "" } else { "\n" };
        let body = format!("{body}{end}");
        let signature = self.0.sk.sign(message(&body), None);
        Ok(Ok(format!("{body}{MARK}{} {}\n", self.public(), hex(&*signature))))
    }
}

impl SigningKey {
    /// Generates a key and stores it in a new private file.
    ///
    /// # Errors
    ///
    /// Errors of the system, such as an existing file.
    pub fn create(path: &Path) -> io::Result<SigningKey> {
        let mut seed = [0; 32];
        File::open("/dev/urandom")?.read_exact(&mut seed)?;
        let mut file = private(path, false)?;
        file.write_all(format!("{}\n", hex(&seed)).as_bytes())?;
        file.sync_all()?;
        Ok(SigningKey::from_seed(seed))
    }

    /// Reads a file written by [`SigningKey::create`].
    ///
    /// # Errors
    ///
    /// Errors of the system; `InvalidData` if it is not a key.
    pub fn read(path: &Path) -> io::Result<SigningKey> {
        let text = read_text_file(path, FILE_BYTES_MAX)?;
        SigningKey::parse(&text).ok_or_else(|| ErrorKind::InvalidData.into())
    }
}

/// Writes a signed policy atomically, readable by others.
///
/// # Errors
///
/// Errors of the system.
pub fn write_signed(path: &Path, text: &str) -> io::Result<()> {
    let part = path.with_extension("part");
    let mut file = private(&part, true)?;
    file.write_all(text.as_bytes())?;
    file.set_permissions(PermissionsExt::from_mode(0o644))?;
    file.sync_all()?;
    fs::rename(&part, path)
}

/// Opens a file for writing, private to its owner and never through a link.
fn private(path: &Path, replace: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).mode(0o600).custom_flags((OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC).bits());
    options.create(replace).truncate(replace).create_new(!replace).open(path)
}

/// Keys whose policies a host accepts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TrustedKeys(Vec<[u8; 32]>);

impl TrustedKeys {
    /// Parses one key per line, followed by a name; lines that begin with # are comments.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Key`].
    pub fn parse(text: &str) -> Result<TrustedKeys, SignatureError> {
        let lines = (1..).zip(text.lines());
        let lines = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
        let key = |(number, line): (usize, &str)| {
            let word = line.split_whitespace().next().unwrap_or_default();
            bytes(word).ok_or(SignatureError::Key(number))
        };
        Ok(TrustedKeys(lines.map(key).collect::<Result<_, _>>()?))
    }

    /// Checks that one of the keys signed the policy in its current form.
    ///
    /// # Errors
    ///
    /// The reason for rejection.
    pub fn check(&self, text: &str) -> Result<(), SignatureError> {
        let (body, line) = parts(text);
        let line = line.ok_or(SignatureError::Unsigned)?;
        let (key, signature) = line.trim_end().split_once(' ').ok_or(SignatureError::Malformed)?;
        let key: [u8; 32] = bytes(key).ok_or(SignatureError::Malformed)?;
        let signature: [u8; 64] = bytes(signature).ok_or(SignatureError::Malformed)?;
        if !self.0.contains(&key) {
            return Err(SignatureError::Untrusted(hex(&key)));
        }
        let verified = PublicKey::new(key).verify(message(body), &Signature::new(signature));
        verified.map_err(|_| SignatureError::Wrong)
    }
}

/// Highest accepted version of each policy, by name. Versions of all names count as one sequence: a
/// policy of another name replaces the current one, so an old one must not return under its name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Versions(BTreeMap<String, (u64, String)>);

impl Versions {
    /// Reads a file; empty if it does not exist.
    ///
    /// # Errors
    ///
    /// Errors of the system; `InvalidData` for a file that is not Knee's.
    pub fn read(path: &Path) -> io::Result<Versions> {
        match read_text_file(path, FILE_BYTES_MAX) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(Versions::default()),
            text => serde_json::from_str(&text?).map_err(io::Error::from),
        }
    }

    /// Writes a file atomically, and creates its folder.
    ///
    /// # Errors
    ///
    /// Errors of the system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        if let Some(folder) = path.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let part = path.with_extension("part");
        let mut file = private(&part, true)?;
        file.write_all(&serde_json::to_vec(self)?)?;
        file.sync_all()?;
        fs::rename(&part, path)
    }

    /// Accepts a policy whose signature was checked. Accepting the same policy again succeeds.
    ///
    /// # Errors
    ///
    /// [`SignatureError::Incomplete`], [`SignatureError::Expired`], [`SignatureError::Older`],
    /// [`SignatureError::Changed`]; nothing is recorded then.
    pub fn take(
        &mut self,
        policy: &Policy,
        text: &str,
        now_unix: u64,
    ) -> Result<(), SignatureError> {
        let (Some(version), Some(expires)) = (policy.version, policy.expires_unix) else {
            return Err(SignatureError::Incomplete);
        };
        if expires <= now_unix {
            return Err(SignatureError::Expired);
        }
        let digest = hex(&Sha256::digest(parts(text).0.as_bytes()));
        let had = self.0.values().map(|(had, _)| *had).max().unwrap_or(0);
        if had > version {
            return Err(SignatureError::Older { version, had });
        }
        if self.0.values().any(|(had, other)| *had == version && *other != digest) {
            return Err(SignatureError::Changed(version));
        }
        self.0.insert(policy.name.clone(), (version, digest));
        Ok(())
    }
}

/// Splits a policy into the signed text and the rest of the last line after the mark.
fn parts(text: &str) -> (&str, Option<&str>) {
    let start = text.trim_end().rfind('\n').map_or(0, |end| end + 1);
    match text[start..].strip_prefix(MARK) {
        Some(rest) => (&text[..start], Some(rest)),
        None => (text, None),
    }
}

fn message(body: &str) -> Vec<u8> {
    [DOMAIN, body.as_bytes()].concat()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    if text.len() != 2 * N || !text.is_ascii() {
        return None;
    }
    let mut bytes = [0; N];
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(version: u64) -> String {
        format!(
            "name = \"edge\"\nversion = {version}\nexpires = 2030-01-01T00:00:00Z\n[[group]]\n\
             name = \"g\"\nprefixes = [\"192.0.2.0/24\"]\ncontroller = \"bbr\"\n"
        )
    }

    fn key(byte: u8) -> SigningKey {
        SigningKey::from_seed([byte; 32])
    }

    fn trusted(keys: &[&SigningKey]) -> TrustedKeys {
        let lines: Vec<String> = keys.iter().map(|key| key.public() + " somebody\n").collect();
        TrustedKeys::parse(&format!("# ours\n\n{}", lines.concat())).unwrap()
    }

    /// RFC 8032, section 7.1, test 1: the public key of this seed.
    #[test]
    fn a_key_of_the_rfc() {
        let seed = "9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60";
        let public = "d75a980182b10ab7d54bfed3c964073a0ee172f3daa62325af021a68f707511a";
        assert_eq!(SigningKey::parse(&format!("{seed}\n")).unwrap().public(), public);
        assert!(SigningKey::parse(&seed[1..]).is_none());
    }

    #[test]
    fn only_what_was_signed_is_taken() {
        let (ours, theirs) = (key(1), key(2));
        let signed = ours.sign(&text(1)).unwrap().unwrap();
        assert!(Policy::parse(&signed).is_ok());
        assert_eq!(ours.sign(&signed).unwrap().unwrap(), signed, "signed anew, not twice");
        let trust = trusted(&[&ours]);
        assert_eq!(trust.check(&signed), Ok(()));
        assert_eq!(trusted(&[&theirs, &ours]).check(&signed), Ok(()));
        assert_eq!(trust.check(&text(1)), Err(SignatureError::Unsigned));
        let other = theirs.sign(&text(1)).unwrap().unwrap();
        assert_eq!(trust.check(&other), Err(SignatureError::Untrusted(theirs.public())));
        assert_eq!(trust.check(signed.trim_end()), Ok(()));
        assert_eq!(trust.check(&signed[..signed.len() - 9]), Err(SignatureError::Malformed));
        // Changing any signed byte invalidates the signature.
        let body = signed.rfind(MARK).unwrap();
        for at in 0..body - 1 {
            let mut bytes = signed.clone().into_bytes();
            bytes[at] ^= 1;
            let Ok(changed) = String::from_utf8(bytes) else { continue };
            assert_eq!(trust.check(&changed), Err(SignatureError::Wrong), "byte {at}");
        }
        let appended = format!("{signed}seed = 2\n");
        assert_eq!(trust.check(&appended), Err(SignatureError::Unsigned));
        assert_eq!(TrustedKeys::parse("\n12 me"), Err(SignatureError::Key(2)));
        let unfit = ours.sign(&text(1).replace("version = 1\n", "")).unwrap();
        assert_eq!(unfit, Err(SignatureError::Incomplete));
        assert!(ours.sign("name = 1").is_err());
    }

    /// 2030-01-01 is 1 893 456 000 s after 1970 (date -u -d 2030-01-01 +%s).
    #[test]
    fn versions_only_rise_and_policies_expire() {
        let take = |versions: &mut Versions, text: &str, now| {
            versions.take(&Policy::parse(text).unwrap(), text, now)
        };
        let mut versions = Versions::default();
        assert_eq!(take(&mut versions, &text(3), 1_893_455_999), Ok(()));
        assert_eq!(take(&mut versions, &text(3), 0), Ok(()), "the same again");
        let older = Err(SignatureError::Older { version: 2, had: 3 });
        assert_eq!(take(&mut versions, &text(2), 0), older);
        let changed = text(3).replace("bbr", "cubic");
        assert_eq!(take(&mut versions, &changed, 0), Err(SignatureError::Changed(3)));
        let expired = Err(SignatureError::Expired);
        assert_eq!(take(&mut versions, &text(4), 1_893_456_000), expired);
        assert_eq!(take(&mut versions, &text(3), 0), Ok(()), "what was refused does not count");
        assert_eq!(take(&mut versions, &text(4), 0), Ok(()));
        let bare = text(5).replace("version = 5\n", "");
        assert_eq!(take(&mut versions, &bare, 0), Err(SignatureError::Incomplete));
        // An old policy of another name does not return.
        let old = text(1).replace("edge", "inner");
        let older = SignatureError::Older { version: 1, had: 4 };
        assert_eq!(take(&mut versions, &old, 0), Err(older));
        assert_eq!(
            take(&mut versions, &text(4).replace("edge", "inner"), 0),
            Err(SignatureError::Changed(4))
        );
        assert_eq!(take(&mut versions, &text(5).replace("edge", "inner"), 0), Ok(()));

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state/versions");
        assert_eq!(Versions::read(&path).unwrap(), Versions::default());
        versions.write(&path).unwrap();
        versions.write(&path).unwrap();
        assert_eq!(Versions::read(&path).unwrap(), versions);
        fs::write(&path, "{").unwrap();
        assert!(Versions::read(&path).is_err());
    }

    #[test]
    fn a_key_is_made_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("key");
        let made = SigningKey::create(&path).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(SigningKey::read(&path).unwrap().public(), made.public());
        let again = SigningKey::create(&path).map(|_| ()).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::AlreadyExists);
        let other = SigningKey::create(&folder.path().join("other")).unwrap();
        assert_ne!(other.public(), made.public());
    }
}
