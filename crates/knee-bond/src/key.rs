//! Keys: the secret key in a file of its own, public keys in configurations as 44 characters.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use knee_quic::KeyPair;
pub use knee_quic::PublicKey;
use knee_scenario::open_file;
use std::fs::OpenOptions;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Lines around the key in its file (RFC 7468, section 10).
const BEGIN: &str = "-----BEGIN PRIVATE KEY-----";
const END: &str = "-----END PRIVATE KEY-----";
/// Maximum size of a key file.
const FILE_MAX: u64 = 4096;
/// Length of a public key.
const KEY_BYTES: usize = 32;

/// Why a key is not available.
#[derive(Debug, thiserror::Error)]
pub enum KeyFileError {
    /// The file exists already.
    #[error("{} exists already: remove it first to replace it", .0.display())]
    Exists(PathBuf),
    /// The file cannot be read or written.
    #[error("cannot {what} {}: {source}{}", path.display(), advice(what, path))]
    Io {
        /// `read` or `write`.
        what: &'static str,
        /// Path of the file.
        path: PathBuf,
        /// Error of the system.
        source: std::io::Error,
    },
    /// Others can read the file.
    #[error("{} can be read by others (its mode is {mode:o}): chmod 600 {}", path.display(), path.display())]
    Open {
        /// Path of the file.
        path: PathBuf,
        /// Permissions of the file.
        mode: u32,
    },
    /// The file does not hold a usable key.
    #[error("{} contains no usable key: {problem}; make a new one with: knee bond keys",
            path.display())]
    Damaged {
        /// Path of the file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
}

/// Returns what to do about a file whose folder does not exist.
fn advice(what: &str, path: &Path) -> String {
    match path.parent() {
        Some(folder) if what == "write" && !folder.as_os_str().is_empty() && !folder.exists() => {
            format!("; make its folder first: mkdir -p {}", folder.display())
        }
        _ => String::new(),
    }
}

/// Generates a key pair, and writes it to a file that only its owner can read.
///
/// # Errors
/// The file exists already, or cannot be written.
pub fn generate(path: &Path) -> Result<PublicKey, KeyFileError> {
    let damaged = |problem: String| KeyFileError::Damaged { path: path.to_owned(), problem };
    let secret = KeyPair::generate_pkcs8().map_err(|error| damaged(error.to_string()))?;
    let pair = KeyPair::from_pkcs8(&secret).map_err(|error| damaged(error.to_string()))?;
    let encoded = Zeroizing::new(BASE64_STANDARD.encode(&*secret));
    let mut text = Zeroizing::new(String::with_capacity(encoded.len() + 100));
    text.push_str(BEGIN);
    for (index, letter) in encoded.char_indices() {
        if index % 64 == 0 {
            text.push('\n');
        }
        text.push(letter);
    }
    text.push('\n');
    text.push_str(END);
    text.push('\n');
    let call = |source: std::io::Error| match source.kind() {
        std::io::ErrorKind::AlreadyExists => KeyFileError::Exists(path.to_owned()),
        _ => KeyFileError::Io { what: "write", path: path.to_owned(), source },
    };
    let mut file =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map_err(call)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(call)?;
    Ok(pair.public())
}

/// Reads a key pair.
///
/// # Errors
/// The file cannot be read, others can read it, or it does not hold a key.
pub fn read(path: &Path) -> Result<KeyPair, KeyFileError> {
    let call = |source| KeyFileError::Io { what: "read", path: path.to_owned(), source };
    let damaged = |problem: String| KeyFileError::Damaged { path: path.to_owned(), problem };
    let mut file = open_file(path).map_err(call)?;
    let metadata = file.metadata().map_err(call)?;
    let mode = metadata.mode() & 0o777;
    // A service manager passes keys with mode 0440 or 0400, in a directory that only the service can
    // enter (systemd.exec(5), "Credentials").
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").filter(|folder| !folder.is_empty());
    let is_passed = credentials.is_some_and(|folder| path.starts_with(folder));
    if mode & if is_passed { 0o037 } else { 0o077 } != 0 {
        return Err(KeyFileError::Open { path: path.to_owned(), mode });
    }
    let mut text = Zeroizing::new(String::with_capacity(FILE_MAX as usize));
    (&mut file)
        .take(FILE_MAX)
        .read_to_string(&mut text)
        .map_err(|error| damaged(error.to_string()))?;
    let inner = text
        .split_once(BEGIN)
        .and_then(|(_, rest)| rest.split_once(END))
        .ok_or_else(|| damaged("it is not a private key in PEM".to_owned()))?
        .0;
    let encoded: Zeroizing<String> =
        Zeroizing::new(inner.chars().filter(|letter| !letter.is_whitespace()).collect());
    let secret = BASE64_STANDARD.decode(&*encoded).map(Zeroizing::new);
    let secret = secret.map_err(|error| damaged(error.to_string()))?;
    KeyPair::from_pkcs8(&secret).map_err(|error| damaged(error.to_string()))
}

/// Formats a public key as in configurations.
pub fn to_text(key: &PublicKey) -> String {
    BASE64_STANDARD.encode(key.as_bytes())
}

/// Parses a public key.
///
/// # Errors
/// What is wrong with the text.
pub fn from_text(text: &str) -> Result<PublicKey, String> {
    let wrong = |problem: &str| {
        format!("{problem}: a public key has 44 letters, as `knee bond keys` prints them")
    };
    let bytes = BASE64_STANDARD.decode(text.trim()).map_err(|error| wrong(&error.to_string()))?;
    let bytes: [u8; KEY_BYTES] = bytes
        .try_into()
        .map_err(|bytes: Vec<u8>| wrong(&format!("{} bytes, not 32", bytes.len())))?;
    Ok(PublicKey::new(bytes))
}
