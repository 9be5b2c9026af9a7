//! The history of jobs.

use std::fmt;
use std::str::FromStr;

use carma_core::{ArrayId, JobId, UserId};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::{IntoParams, ToSchema};

use crate::ending::EndingClass;
use crate::phase::Phase;
use crate::units::UnixMillis;

/// Which jobs to return.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct HistoryQuery {
    /// Only jobs of this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Only jobs in this state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<Phase>,
    /// Only jobs that ended in one of these ways: `succeeded`, `failed`, `out_of_memory`, `stopped`, with commas between them.
    #[serde(skip_serializing_if = "Endings::is_empty")]
    #[param(value_type = Option<String>)]
    pub outcome: Endings,
    /// Only jobs with this in their name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Only jobs with this in their name or in the name of their user, or as their number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Only jobs of this array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub array: Option<ArrayId>,
    /// Only jobs submitted at this time or later.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// Only jobs submitted before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
    /// Only jobs with a lower number than this.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub before: Option<JobId>,
    /// The order. An export is always by number.
    #[serde(skip_serializing_if = "HistoryOrder::is_usual")]
    pub order: HistoryOrder,
    /// Maximum number of jobs, up to 1,000. Default: 100. An export has no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u32>,
}

/// Some ways to end, as text `failed,out_of_memory`. None: any, and jobs that have not ended.
///
/// ```
/// use carma_manager::api::Endings;
/// let endings: Endings = "failed,out_of_memory".parse()?;
/// assert_eq!(endings.to_string(), "failed,out_of_memory");
/// assert!("broken".parse::<Endings>().is_err());
/// # Ok::<(), carma_manager::api::NotAnEnding>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Endings(pub Vec<EndingClass>);

/// A text that names no way to end.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is no outcome: write succeeded, failed, out_of_memory or stopped")]
pub struct NotAnEnding(String);

impl Endings {
    const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl fmt::Display for Endings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.0.iter().map(|class| class.name()).collect();
        f.write_str(&names.join(","))
    }
}

impl FromStr for Endings {
    type Err = NotAnEnding;

    fn from_str(text: &str) -> Result<Self, NotAnEnding> {
        let named =
            |name: &str| EndingClass::ALL.into_iter().find(|class| class.name() == name).ok_or_else(|| NotAnEnding(name.to_owned()));
        text.split(',').filter(|name| !name.is_empty()).map(named).collect::<Result<_, _>>().map(Self)
    }
}

impl TryFrom<String> for Endings {
    type Error = NotAnEnding;
    fn try_from(text: String) -> Result<Self, NotAnEnding> {
        text.parse()
    }
}

impl From<Endings> for String {
    fn from(endings: Endings) -> Self {
        endings.to_string()
    }
}

/// The order of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum HistoryOrder {
    /// The highest number first.
    #[default]
    Number,
    /// Finished jobs only, the last to end first.
    Ended,
}

impl HistoryOrder {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
    fn is_usual(&self) -> bool {
        *self == Self::default()
    }
}
