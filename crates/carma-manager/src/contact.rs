//! How commands on other hosts reach a user's own manager: a private file in the state folder, which the hosts share.
//!
//! ```text
//!  the manager ── certificate, token ──► STATE/manager.json (0600) ──► the client: trusts this certificate alone, shows the token
//! ```
//!
//! Only the user can read the file, so a client that knows it is the user. Each start creates a new certificate, and clients accept no other one, so names and authorities do not matter.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use nix::unistd::{Uid, User};
use serde::{Deserialize, Serialize};

use crate::configuration::NetworkConfig;
use crate::places::create_private;
use crate::token;

/// The name of the file.
const FILE: &str = "manager.json";
/// The name in the certificate.
pub(crate) const SERVER_NAME: &str = "carma-manager";

/// Where a manager listens, and how both sides know each other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Contact {
    /// The name of its host.
    pub host: String,
    /// Its port there.
    pub port: u16,
    /// Its process number there.
    pub pid: u32,
    /// Its certificate (PEM), the only one to accept.
    pub certificate: String,
    /// The secret that shows it the user.
    pub token: String,
}

impl std::fmt::Debug for Contact {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Contact").field("host", &self.host).field("port", &self.port).finish_non_exhaustive()
    }
}

/// The file in a folder of state.
pub fn file(state: &Path) -> PathBuf {
    state.join(FILE)
}

/// What a manager needs to listen: its settings, certificate and token.
#[derive(Debug)]
pub struct ListenSettings {
    /// Listens on a free port of all interfaces, with a new certificate and a new token.
    pub network: NetworkConfig,
    certificate: String,
    token: String,
    file: PathBuf,
}

impl ListenSettings {
    /// Makes a new certificate and token, in private files of the state folder.
    pub fn new(state: &Path) -> io::Result<Self> {
        let folder = state.join("network");
        create_private(&folder)?;
        let made = rcgen::generate_simple_self_signed([SERVER_NAME.to_owned()]).map_err(io::Error::other)?;
        let (certificate, key, token) = (made.cert.pem(), made.signing_key.serialize_pem(), token::fresh()?);
        let user = User::from_uid(Uid::effective())?.ok_or_else(|| io::Error::other("this user has no name"))?.name;
        let paths = ["tokens", "certificate.pem", "key.pem"].map(|name| folder.join(name));
        write_private(&paths[0], &format!("{user} {}\n", token::hash(&token)))?;
        write_private(&paths[1], &certificate)?;
        write_private(&paths[2], &key)?;
        let [tokens, certificate_file, key_file] = paths.map(Some);
        let listen = Some(([0, 0, 0, 0], 0).into());
        let network = NetworkConfig { listen, tokens, certificate: certificate_file, key: key_file };
        Ok(Self { network, certificate, token, file: file(state) })
    }

    /// Tells clients where the manager listens. The file is removed when the result is dropped.
    pub fn publish(self, host: String, port: u16) -> io::Result<Published> {
        let contact = Contact { host, port, pid: std::process::id(), certificate: self.certificate, token: self.token };
        write_private(&self.file, &serde_json::to_string_pretty(&contact)?)?;
        Ok(Published { file: self.file, contact })
    }
}

/// A file that clients can read.
#[derive(Debug)]
pub struct Published {
    file: PathBuf,
    contact: Contact,
}

impl Drop for Published {
    fn drop(&mut self) {
        // A manager on another host may have replaced it.
        if read(&self.file).is_ok_and(|found| found.as_ref() == Some(&self.contact)) {
            let _ = fs::remove_file(&self.file);
        }
    }
}

/// Reads a file, if there is one. A file of another user is refused: jobs would go to a manager of that user.
pub fn read(file: &Path) -> io::Result<Option<Contact>> {
    let mut opened = match File::open(file) {
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => return Ok(None),
        opened => opened?,
    };
    let metadata = opened.metadata()?;
    if metadata.uid() != Uid::effective().as_raw() || metadata.mode() & 0o077 != 0 {
        return Err(io::Error::other("it belongs to another user, or other users may read it (chmod 600)"));
    }
    let mut text = String::new();
    opened.read_to_string(&mut text)?;
    Ok(Some(serde_json::from_str(&text)?))
}

/// Writes a file for its owner only, whole or not at all.
fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let partial = path.with_extension(format!("partial-{}", std::process::id()));
    let _ = fs::remove_file(&partial);
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(&partial)?.write_all(text.as_bytes())?;
    fs::rename(partial, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn the_file_is_private_and_removed_with_its_manager() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(read(&file(folder.path())).unwrap(), None);
        let published = ListenSettings::new(folder.path()).unwrap().publish("node".to_owned(), 7080).unwrap();
        let contact = read(&file(folder.path())).unwrap().unwrap();
        assert_eq!((contact.host.as_str(), contact.port), ("node", 7080));
        assert!(!format!("{contact:?}").contains(&contact.token));
        for name in ["manager.json", "network/key.pem", "network/tokens"] {
            assert_eq!(fs::metadata(folder.path().join(name)).unwrap().mode() & 0o777, 0o600, "{name}");
        }
        // Another manager has taken over.
        let other = ListenSettings::new(folder.path()).unwrap().publish("login".to_owned(), 7080).unwrap();
        drop(published);
        assert_eq!(read(&file(folder.path())).unwrap().unwrap().host, "login");
        drop(other);
        assert!(!file(folder.path()).exists());
    }

    #[test]
    fn a_file_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let _published = ListenSettings::new(folder.path()).unwrap().publish("node".to_owned(), 7080).unwrap();
        fs::set_permissions(file(folder.path()), fs::Permissions::from_mode(0o640)).unwrap();
        assert!(read(&file(folder.path())).unwrap_err().to_string().contains("other users may read it"));
    }
}
