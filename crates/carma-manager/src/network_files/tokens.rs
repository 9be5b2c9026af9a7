//! Tokens for access over the network: a file with one line per token, the user's name and the SHA-256 of the token.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::api::{Problem, ProblemKind};

/// A user and the hash of a token.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Token {
    user: String,
    hash: [u8; 32],
}

/// Identifies a version of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    inode: u64,
    size: u64,
    changed: (i64, i64),
}

/// The file of tokens, read again whenever it has changed.
#[derive(Debug)]
pub(crate) struct Tokens {
    path: PathBuf,
    read: Mutex<Option<(Version, Arc<[Token]>)>>,
}

impl Tokens {
    pub(crate) fn new(path: PathBuf) -> Self {
        Self { path, read: Mutex::default() }
    }

    /// Checks that the file can be used.
    pub(crate) fn check(path: &Path) -> Result<(), String> {
        Self::new(path.to_owned()).current().map(drop)
    }

    /// The user of this token.
    pub(crate) async fn user_of(self: &Arc<Self>, token: &str) -> Result<String, Problem> {
        let tokens = Arc::clone(self);
        let read = spawn_blocking(move || tokens.current()).await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
        // Details are for the operator, not for unauthenticated clients.
        let read = read.map_err(|_| ProblemKind::Unavailable.because("the manager cannot use its token file"))?;
        user_of(&read, token).ok_or_else(|| ProblemKind::Unauthenticated.because("this token is not known"))
    }

    fn current(&self) -> Result<Arc<[Token]>, String> {
        let metadata = fs::metadata(&self.path).map_err(|error| error.to_string())?;
        check_owner(metadata.mode(), metadata.uid(), rustix::process::geteuid().as_raw())?;
        let version = Version { inode: metadata.ino(), size: metadata.size(), changed: (metadata.ctime(), metadata.ctime_nsec()) };
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, tokens)) = read.as_ref().filter(|(seen, _)| *seen == version) {
            return Ok(Arc::clone(tokens));
        }
        let tokens: Arc<[Token]> = parse(&fs::read_to_string(&self.path).map_err(|error| error.to_string())?)?.into();
        *read = Some((version, Arc::clone(&tokens)));
        Ok(tokens)
    }
}

/// Other users must not be able to read or change it.
fn check_owner(mode: u32, owner: u32, own: u32) -> Result<(), String> {
    match () {
        () if owner != 0 && owner != own => {
            Err(format!("it belongs to user {owner}: it must belong to root or to the user of the manager"))
        }
        () if mode & 0o027 != 0 => Err(format!("other users may read or write it (mode {:o}): chmod 600", mode & 0o777)),
        () => Ok(()),
    }
}

fn parse(text: &str) -> Result<Vec<Token>, String> {
    let lines = text.lines().map(str::trim).enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
    let read = |(number, line): (usize, &str)| {
        let wrong = || format!("line {}: write a user's name and the SHA-256 of a token in 64 hexadecimal digits", number + 1);
        let (user, hash) = line.split_once(char::is_whitespace).ok_or_else(wrong)?;
        Ok(Token { user: user.to_owned(), hash: digits(hash.trim()).ok_or_else(wrong)? })
    };
    lines.map(read).collect()
}

fn digits(text: &str) -> Option<[u8; 32]> {
    let mut hash = [0; 32];
    let pairs = text.as_bytes().chunks(2);
    if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, pair) in hash.iter_mut().zip(pairs) {
        *byte = u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()?;
    }
    Some(hash)
}

/// Compares in constant time.
fn user_of(tokens: &[Token], token: &str) -> Option<String> {
    let given: [u8; 32] = Sha256::digest(token.as_bytes()).into();
    let same = |token: &&Token| token.hash.iter().zip(given).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0;
    tokens.iter().filter(same).fold(None, |found, token| found.or(Some(token))).map(|token| token.user.clone())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// The SHA-256 of `secret`.
    const HASH: &str = "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b";

    #[test]
    fn a_token_identifies_the_user_of_its_line() {
        let tokens = parse(&format!("# the laboratory's\n\nalice {HASH}\nbob  {}\n", "00".repeat(32))).unwrap();
        assert_eq!(user_of(&tokens, "secret"), Some("alice".to_owned()));
        assert_eq!(user_of(&tokens, "Secret"), None);
    }

    #[test]
    fn wrong_lines_are_named() {
        for wrong in ["alice".to_owned(), "alice secret".to_owned(), format!("alice {}", &HASH[1..]), format!("alice +{}", &HASH[1..])] {
            assert!(parse(&format!("\n{wrong}")).unwrap_err().starts_with("line 2: "), "{wrong}");
        }
    }

    #[test]
    fn a_file_that_others_may_read_or_add_to_is_refused() {
        assert!(check_owner(0o100_600, 0, 0).is_ok() && check_owner(0o100_640, 1000, 1000).is_ok());
        for (mode, owner) in [(0o644, 0), (0o602, 0), (0o620, 0), (0o600, 1001)] {
            assert!(check_owner(mode, owner, 1000).is_err(), "{mode:o} of {owner}");
        }
    }

    #[test]
    fn a_changed_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("tokens");
        let write = |text: String| {
            fs::write(&path, text).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        };
        write(format!("alice {HASH}\n"));
        let tokens = Tokens::new(path.clone());
        assert_eq!(user_of(&tokens.current().unwrap(), "secret").as_deref(), Some("alice"));
        write(format!("alexandra {HASH}\n"));
        assert_eq!(user_of(&tokens.current().unwrap(), "secret").as_deref(), Some("alexandra"));
    }
}
