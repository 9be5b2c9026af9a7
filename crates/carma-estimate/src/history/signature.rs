//! Signatures of jobs: equal signatures should mean equal use of a GPU.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use sha2::{Digest, Sha256};
use thiserror::Error;

/// A stable hash of everything that decides how a job uses its GPUs. Equal jobs have equal signatures, on any machine and in any later run.
///
/// ```
/// use carma_estimate::history::Signature;
/// let command = ["python", "train.py", "--batch", "64"].map(str::to_owned);
/// let signature = Signature::of_command(&command, "/home/ann".as_ref());
/// assert_eq!(signature.to_string().parse(), Ok(signature));
/// assert_ne!(signature, signature.on_gpus(2));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Signature([u8; 16]);

/// Not 32 hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a signature of 32 hexadecimal digits")]
pub struct NotASignature(String);

impl Signature {
    /// Signature of a command line and its directory, if nothing is known about the model.
    pub fn of_command(command: &[String], directory: &Path) -> Self {
        let mut hash = Hash::new("command");
        hash.bytes(directory.as_os_str().as_encoded_bytes());
        for word in command {
            hash.bytes(word.as_bytes());
        }
        hash.finish()
    }

    /// The same job on this many GPUs, if its command does not state them.
    #[must_use]
    pub fn on_gpus(self, gpus: u64) -> Self {
        let mut hash = Hash::new("gpus");
        hash.bytes(&self.0);
        hash.bytes(&gpus.to_le_bytes());
        hash.finish()
    }

    /// The same job of this user, where users do not learn from each other.
    #[must_use]
    pub fn of_user(self, user: u32) -> Self {
        let mut hash = Hash::new("user");
        hash.bytes(&self.0);
        hash.bytes(&user.to_le_bytes());
        hash.finish()
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl FromStr for Signature {
    type Err = NotASignature;

    fn from_str(text: &str) -> Result<Self, NotASignature> {
        let digits: Option<Vec<u8>> = text.chars().map(|digit| digit.to_digit(16).and_then(|value| u8::try_from(value).ok())).collect();
        let bytes: Option<Vec<u8>> =
            digits.map(|digits| digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte * 16 + digit)).collect());
        let whole = bytes.filter(|_| text.len() == 32).and_then(|bytes| bytes.try_into().ok());
        whole.map(Self).ok_or_else(|| NotASignature(text.chars().take(40).collect()))
    }
}

/// Hashes length-prefixed pieces: different lists never give the same bytes.
struct Hash(Sha256);

impl Hash {
    fn new(what: &str) -> Self {
        let mut hash = Self(Sha256::new());
        hash.bytes(what.as_bytes());
        hash
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    fn finish(self) -> Signature {
        let digest = self.0.finalize();
        Signature(std::array::from_fn(|place| digest[place]))
    }
}
