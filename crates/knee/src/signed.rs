//! `knee steer keys` and `sign`, and the verification of signatures.

use crate::arguments::{Keys, Sign, Trust};
use crate::failure::{Ending, Failure};
use crate::policy::problems;
use crate::screen;
use knee_policy::{
    FILE_BYTES_MAX, Policy, SignatureError, SigningKey, TrustedKeys, Versions, since_1970,
    write_signed,
};
use knee_scenario::read_text_file;
use std::fs;
use std::io::{self, ErrorKind};
use std::path::Path;

/// Default file of trusted keys.
const TRUST: &str = "/etc/knee/steer.trust";

/// Creates a key and prints the line for the file of trusted keys.
pub fn keys(arguments: &Keys) -> Result<Ending, Failure> {
    let file = &arguments.file;
    let key = match SigningKey::create(file) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => SigningKey::read(file),
        made => made,
    };
    let key =
        key.map_err(|error| unusable(file, &error, "name a file that only you can access"))?;
    screen::print(&format!("{} {}\n", key.public(), file.display()))?;
    Ok(Ending::Done)
}

/// Writes a policy with its signature.
pub fn sign(arguments: &Sign) -> Result<Ending, Failure> {
    let (path, out) = (&arguments.policy, &arguments.out);
    let text = read_text_file(path, FILE_BYTES_MAX);
    let text = text.map_err(|error| unusable(path, &error, "name a policy"))?;
    let key = SigningKey::read(&arguments.key);
    let help = "make one: knee steer keys FILE";
    let key = key.map_err(|error| unusable(&arguments.key, &error, help))?;
    let signed = key.sign(&text).map_err(|found| problems(path, &text, found))?;
    let signed = signed.map_err(|error| refused(path, &error))?;
    write_signed(out, &signed).map_err(|error| unusable(out, &error, "name another file"))?;
    screen::say(&format!("{} is signed by {}.", out.display(), key.public()));
    Ok(Ending::Done)
}

/// Rejects a policy that this host does not trust; `keep` records the version of an accepted one.
pub fn check(policy: &Policy, text: &str, trust: &Trust, keep: bool) -> Result<(), Failure> {
    let file = match &trust.trust {
        Some(file) => file.as_path(),
        None if has_keys(Path::new(TRUST)) => Path::new(TRUST),
        None => return Ok(()),
    };
    let keys = read_text_file(file, FILE_BYTES_MAX)
        .map_err(|error| unusable(file, &error, "check its owner"))?;
    let keys = TrustedKeys::parse(&keys).map_err(|error| refused(file, &error))?;
    let name = Path::new(&policy.name);
    keys.check(text).map_err(|error| refused(name, &error))?;
    let path = &trust.versions;
    let help = "run as root, or name another file with --versions";
    let mut versions = Versions::read(path).map_err(|error| unusable(path, &error, help))?;
    versions.take(policy, text, since_1970().as_secs()).map_err(|error| refused(name, &error))?;
    if keep {
        versions.write(path).map_err(|error| unusable(path, &error, help))?;
    }
    Ok(())
}

/// Whether a host has this file of trusted keys, also if it cannot be read, or is a link to nothing:
/// then no policy is accepted.
fn has_keys(path: &Path) -> bool {
    match fs::symlink_metadata(path) {
        Ok(_) => true,
        Err(error) => error.kind() != ErrorKind::NotFound,
    }
}

fn refused(what: &Path, error: &SignatureError) -> Failure {
    Failure::Usage(format!("{}: {error}", what.display()), error.advice().to_string())
}

fn unusable(path: &Path, error: &io::Error, help: &str) -> Failure {
    Failure::Usage(format!("cannot use {}: {error}", path.display()), help.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A link to nothing, and a folder that cannot be searched (here one that is none), do not mean
    /// that the host trusts everybody.
    #[test]
    fn keys_that_cannot_be_read_are_keys() -> io::Result<()> {
        let folder = tempfile::tempdir()?;
        let path = folder.path().join("steer.trust");
        assert!(!has_keys(&path) && !has_keys(&path.join("steer.trust")));
        std::os::unix::fs::symlink("nowhere", &path)?;
        assert!(has_keys(&path));
        fs::remove_file(&path)?;
        fs::write(&path, "")?;
        assert!(has_keys(&path) && has_keys(&path.join("steer.trust")));
        Ok(())
    }
}
