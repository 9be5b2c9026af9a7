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
    Neighbours,
    /// The hardware or the host.
    Machine,
    /// A user, an operator or a limit ended it.
    Orders,
}
