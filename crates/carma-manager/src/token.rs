//! Access tokens: created, hashed, and compared in constant time.

use std::fs::File;
use std::io::{self, Read};

use sha2::{Digest, Sha256};

/// A new random secret, as 64 hexadecimal digits.
pub fn fresh() -> io::Result<String> {
    let mut bytes = [0; 32];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(hexadecimal(&bytes))
}

/// The SHA-256 of a secret, as the manager's token file holds it.
pub fn hash(secret: &str) -> String {
    hexadecimal(&Sha256::digest(secret.as_bytes()))
}

/// Whether two secrets are equal. The time does not depend on where they differ.
pub(crate) fn same(one: &str, other: &str) -> bool {
    let digest = |secret: &str| Sha256::digest(secret.as_bytes());
    digest(one).iter().zip(digest(other)).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

/// Bytes as hexadecimal digits.
pub(crate) fn hexadecimal(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from(b"0123456789abcdef"[usize::from(value)]);
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_differ_and_hashes_are_standard() {
        let (one, other) = (fresh().unwrap(), fresh().unwrap());
        assert!(one.len() == 64 && one != other && same(&one, &one) && !same(&one, &other));
        assert_eq!(hash("secret"), "2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b");
    }
}
