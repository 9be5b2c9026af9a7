//! The permissions that new files of a process lack.

use std::fmt;
use std::fs;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A umask. People write it in octal, as in `0027`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(try_from = "String", into = "String")]
#[schema(value_type = String, example = "0022")]
pub struct Umask(u16);

impl Umask {
    /// The usual umask: only the owner may write.
    pub const USUAL: Self = Self(0o022);

    /// The umask of this process. The system call that returns it would change it, also for other threads, so the kernel's text is read.
    pub fn of_this_process() -> Option<Self> {
        let status = fs::read_to_string("/proc/self/status").ok()?;
        status.lines().find_map(|line| line.strip_prefix("Umask:"))?.trim().parse().ok()
    }

    /// The bits.
    pub const fn bits(self) -> u16 {
        self.0
    }
}

/// Why a text is no umask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a umask: write it in octal, from 0000 to 0777")]
pub struct InvalidUmask;

impl FromStr for Umask {
    type Err = InvalidUmask;

    fn from_str(text: &str) -> Result<Self, InvalidUmask> {
        let is_octal = !text.is_empty() && text.bytes().all(|digit| (b'0'..=b'7').contains(&digit));
        let bits = u16::from_str_radix(text, 8).ok().filter(|bits| is_octal && *bits <= 0o777);
        bits.map(Self).ok_or(InvalidUmask)
    }
}

impl fmt::Display for Umask {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:04o}", self.0)
    }
}

impl TryFrom<String> for Umask {
    type Error = InvalidUmask;

    fn try_from(text: String) -> Result<Self, InvalidUmask> {
        text.parse()
    }
}

impl From<Umask> for String {
    fn from(umask: Umask) -> Self {
        umask.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_umask_is_written_in_octal() {
        assert_eq!("27".parse::<Umask>().map(|umask| umask.to_string()), Ok("0027".to_owned()));
        assert_eq!(["", "0888", "1000", "+22", "-1", "u=rwx"].map(|text| text.parse::<Umask>().is_ok()), [false; 6]);
        assert!(Umask::of_this_process().is_some());
    }
}
