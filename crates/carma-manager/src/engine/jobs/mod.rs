//! Jobs: what the engine knows about those that are not over, and what users do to them.

pub(crate) mod actions;
pub(crate) mod forecast;
pub(crate) mod submit;
mod table;

pub(crate) use table::{JobMeta, Jobs};
