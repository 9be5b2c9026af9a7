//! Why a request was refused.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// The body of every answer that is an error; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, ToSchema)]
#[error("{message}")]
pub struct Problem {
    /// The kind.
    pub kind: ProblemKind,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The kind of a problem. Each has an HTTP status code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The request is invalid (400).
    Invalid,
    /// The caller is not authenticated (401).
    Unauthenticated,
    /// The caller has no permission (403).
    Forbidden,
    /// It does not exist (404).
    NotFound,
    /// The path does not have this method (405).
    WrongMethod,
    /// The state of the job or GPU does not allow it (409).
    Conflict,
    /// The request is too large (413).
    TooLarge,
    /// A limit of this user or of the manager is reached (429).
    Limit,
    /// The manager cannot do it now: the disk is full, it is stopping, or it only observes (503).
    Unavailable,
    /// The manager failed (500).
    Internal,
}

impl ProblemKind {
    /// The status code.
    pub const fn status(self) -> u16 {
        match self {
            Self::Invalid => 400,
            Self::Unauthenticated => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::WrongMethod => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Limit => 429,
            Self::Unavailable => 503,
            Self::Internal => 500,
        }
    }

    /// A problem of this kind.
    pub fn because(self, message: impl Into<String>) -> Problem {
        Problem { kind: self, message: message.into() }
    }
}
