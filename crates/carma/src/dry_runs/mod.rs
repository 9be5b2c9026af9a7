//! Earlier dry runs. One is not repeated while its command, environment and versions, and all that its script looked at, are the same.

mod cache;
mod given;
mod look;

pub(crate) use cache::Cache;
pub(crate) use given::{Given, resolved};
