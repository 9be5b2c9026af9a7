//! Who is to blame for the end of an attempt.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Who is to blame for the end of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Blame {
    /// The job itself.
    Job,
    /// Other processes on its GPU.
    #[serde(alias = "neighbours")]
    OtherProcesses,
    /// The hardware or the host.
    #[serde(alias = "machine")]
    Hardware,
    /// A user, an operator or a limit ended it.
    #[serde(alias = "orders")]
    Stopped,
}
