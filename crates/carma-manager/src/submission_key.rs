//! The key of a submission: a repeated submission with the same key creates no jobs.

use std::fmt;
use std::io;
use std::str::FromStr;

use crate::token;

/// The header with the key.
pub const HEADER: &str = "idempotency-key";
/// The longest key.
const MAX_LENGTH: usize = 128;

/// A key that a client chose for a submission. It belongs to one user.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct SubmissionKey(String);

impl SubmissionKey {
    /// A new random key.
    pub fn fresh() -> io::Result<Self> {
        token::fresh().map(Self)
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Why a text is no key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("Idempotency-Key must have 1 to {MAX_LENGTH} visible ASCII characters")]
pub struct InvalidKey;

impl FromStr for SubmissionKey {
    type Err = InvalidKey;

    fn from_str(text: &str) -> Result<Self, InvalidKey> {
        let fits = (1..=MAX_LENGTH).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        fits.then(|| Self(text.to_owned())).ok_or(InvalidKey)
    }
}

impl fmt::Display for SubmissionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_submission_key_is_short_visible_text() {
        let fresh = SubmissionKey::fresh().unwrap();
        assert_eq!(fresh.as_str().parse(), Ok(fresh));
        let long = "x".repeat(MAX_LENGTH + 1);
        assert_eq!(["", "a b", "a\n", "é", &long].map(|text| text.parse::<SubmissionKey>().is_ok()), [false; 5]);
    }
}
