//! Why a request was refused.

use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::ToSchema;

/// The body of every answer that is an error; nothing was changed.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize, Deserialize, ToSchema)]
#[error("{message}")]
pub struct Problem {
    /// What kind of problem.
    pub kind: ProblemKind,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// Kinds of problems, each with a status code of HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProblemKind {
    /// The request makes no sense (400).
    Invalid,
    /// Who asks is not known (401).
    Unauthenticated,
    /// Who asks may not (403).
    Forbidden,
    /// There is no such thing (404).
    NotFound,
    /// There is such a thing, but not this method (405).
    WrongMethod,
    /// It cannot be done to something that stands as this does (409).
    Conflict,
    /// More than is taken (413).
    TooLarge,
    /// A limit of this user or of the manager is reached (429).
    Limit,
    /// The manager cannot do it now: its disk is full, it is stopping, it only observes (503).
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
