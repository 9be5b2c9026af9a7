//! Errors of calls.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use super::Address;
use crate::api::{Problem, ProblemKind};

/// Why a call failed.
#[derive(Debug, Error)]
pub enum ClientError {
    /// No manager listens on any of the sockets.
    #[error("no manager is running: nothing listens at {}; start one with `carma up`", listed(.0))]
    NoManager(Vec<PathBuf>),
    /// It cannot be reached.
    #[error("cannot reach the manager at {address}: {error}")]
    Unreachable {
        /// Its address.
        address: Address,
        /// The error of the system.
        error: io::Error,
    },
    /// An address, a token or a certificate that cannot be used.
    #[error("{0}")]
    Unusable(String),
    /// It requires a token, and there is none.
    #[error("the manager at {0} wants a token: set CARMA_TOKEN, or write it to ~/.config/carma/token")]
    NoToken(Address),
    /// It refused, and nothing was changed.
    #[error(transparent)]
    Refused(#[from] Problem),
    /// The connection broke after the call was sent.
    #[error("the manager ended before it answered ({0}): check with `carma queue` whether the request took effect")]
    BrokenOff(String),
    /// The answer cannot be parsed.
    #[error("this version does not understand the answer of the manager: {0}")]
    Incomprehensible(String),
    /// An error of this process.
    #[error(transparent)]
    Local(#[from] io::Error),
}

impl ClientError {
    /// Whether no manager answers now. One may later.
    pub const fn is_absence(&self) -> bool {
        matches!(self, Self::NoManager(_) | Self::Unreachable { .. } | Self::BrokenOff(_))
    }

    /// Whether it is certain that nothing was changed. A server error may come from a proxy that does not know what was done.
    pub fn nothing_was_done(&self) -> bool {
        match self {
            Self::NoManager(_) | Self::Unreachable { .. } | Self::Unusable(_) | Self::NoToken(_) => true,
            Self::Refused(problem) => problem.kind != ProblemKind::Internal,
            Self::BrokenOff(_) | Self::Incomprehensible(_) | Self::Local(_) => false,
        }
    }
}

fn listed(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" or ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_manager_the_error_names_addresses_and_remedy() {
        let sockets = ["/run/user/1000/carma/carma.sock", "/run/carma/carma.sock"];
        insta::assert_snapshot!(ClientError::NoManager(sockets.map(PathBuf::from).to_vec()), @"no manager is running: nothing listens at /run/user/1000/carma/carma.sock or /run/carma/carma.sock; start one with `carma up`");
    }
}
