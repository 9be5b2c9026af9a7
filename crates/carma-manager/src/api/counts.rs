//! Jobs counted by state: of arrays, and of users.

use std::fmt;
use std::str::FromStr;

use carma_core::{ArrayId, UserId};
use serde::{Deserialize, Serialize};
use thiserror::Error;
use utoipa::IntoParams;

use crate::units::UnixMillis;

/// Maximum number of arrays of one request.
const MAX_ARRAYS: usize = 100;

/// Which arrays to count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
pub struct ArrayQuery {
    /// Their numbers, with commas between them.
    #[param(value_type = String)]
    pub ids: ArrayIds,
}

/// Numbers of arrays, as text `8,40`.
///
/// ```
/// use carma_manager::api::ArrayIds;
/// let ids: ArrayIds = "8,40".parse()?;
/// assert_eq!(ids.to_string(), "8,40");
/// assert!("8,x".parse::<ArrayIds>().is_err());
/// # Ok::<(), carma_manager::api::NotArrayIds>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ArrayIds(pub Vec<ArrayId>);

/// A text that does not list arrays.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("ids: give at most {MAX_ARRAYS} numbers of arrays, as in 8,40")]
pub struct NotArrayIds;

impl fmt::Display for ArrayIds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<String> = self.0.iter().map(|array| array.0.to_string()).collect();
        f.write_str(&numbers.join(","))
    }
}

impl FromStr for ArrayIds {
    type Err = NotArrayIds;

    fn from_str(text: &str) -> Result<Self, NotArrayIds> {
        let numbers = text.split(',').filter(|number| !number.is_empty());
        let ids: Vec<ArrayId> = numbers.map(|number| number.parse().map(ArrayId).map_err(|_| NotArrayIds)).collect::<Result<_, _>>()?;
        if ids.len() > MAX_ARRAYS { Err(NotArrayIds) } else { Ok(Self(ids)) }
    }
}

impl TryFrom<String> for ArrayIds {
    type Error = NotArrayIds;
    fn try_from(text: String) -> Result<Self, NotArrayIds> {
        text.parse()
    }
}

impl From<ArrayIds> for String {
    fn from(ids: ArrayIds) -> Self {
        ids.to_string()
    }
}

/// Which users to return, and for which period.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(default)]
pub struct UserQuery {
    /// Only this user.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<UserId>,
    /// Start of the period; unset: since the first job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<UnixMillis>,
    /// End of the period; unset: now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until: Option<UnixMillis>,
}
