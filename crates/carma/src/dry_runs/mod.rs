//! Earlier dry runs. One is not repeated while its command, environment and versions, and all files that its script read, are the same.

mod cache;
mod input;
mod request;

pub(crate) use cache::Cache;
pub(crate) use request::{Request, resolved};
