//! The secret that the manager and its agents share.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use thiserror::Error;

/// Bytes of a secret.
const LENGTH: usize = 32;

/// A shared secret.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; LENGTH]);

/// Why a secret cannot be used.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The file cannot be read or written.
    #[error("cannot use the secret {}: {error}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Others can read it.
    #[error("others can read the secret {}: its mode must be 0600, and its owner must be the user that runs this", .0.display())]
    Open(PathBuf),
    /// It is no secret.
    #[error("{} has no secret: it must have 64 hexadecimal digits", .0.display())]
    Damaged(PathBuf),
}

impl Secret {
    /// Reads a secret that only its owner can read.
    pub fn read(path: &Path) -> Result<Self, SecretError> {
        let refused = |error| SecretError::File { path: path.to_owned(), error };
        let file = fs::File::open(path).map_err(refused)?;
        let data = file.metadata().map_err(refused)?;
        if data.mode() & 0o077 != 0 || data.uid() != rustix::process::geteuid().as_raw() {
            return Err(SecretError::Open(path.to_owned()));
        }
        let mut text = String::new();
        file.take(1024).read_to_string(&mut text).map_err(refused)?;
        parse(text.trim()).map(Self).ok_or_else(|| SecretError::Damaged(path.to_owned()))
    }

    /// Reads the secret, or creates one.
    pub fn read_or_create(path: &Path) -> Result<Self, SecretError> {
        let refused = |error| SecretError::File { path: path.to_owned(), error };
        match fs::symlink_metadata(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            _ => return Self::read(path),
        }
        let digits = hexadecimal(&random_bytes::<LENGTH>().map_err(refused)?);
        // Under another name first, so that no agent reads half of it.
        let new = path.with_extension("new");
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new).map_err(refused)?;
        file.write_all(format!("{digits}\n").as_bytes()).and_then(|()| file.sync_all()).map_err(refused)?;
        fs::rename(&new, path).map_err(refused)?;
        Self::read(path)
    }

    pub(super) const fn bytes(&self) -> &[u8; LENGTH] {
        &self.0
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Secret")
    }
}

/// A name that no other has.
pub(crate) fn random_name() -> io::Result<String> {
    Ok(hexadecimal(&random_bytes::<8>()?))
}

/// Two digits for each byte.
fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut digits, byte| {
        let _ = write!(digits, "{byte:02x}");
        digits
    })
}

/// Bytes that cannot be guessed.
fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    fs::File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn parse(text: &str) -> Option<[u8; LENGTH]> {
    let mut bytes = [0; LENGTH];
    if text.len() != 2 * LENGTH || !text.is_ascii() {
        return None;
    }
    for (place, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * place..2 * place + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_secret_is_made_once_and_only_its_owner_may_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let made = Secret::read_or_create(&path).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(Secret::read_or_create(&path).unwrap(), made);
        assert_ne!(Secret::read_or_create(&folder.path().join("other")).unwrap(), made);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        assert!(matches!(Secret::read_or_create(&path), Err(SecretError::Open(_))));
        fs::write(&path, "short").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        assert!(matches!(Secret::read(&path), Err(SecretError::Damaged(_))));
    }
}
