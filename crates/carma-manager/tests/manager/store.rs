//! The durable store: what is acknowledged is there again, whatever happens in between.

mod arrays;
mod backup;
mod child;
mod crash;
mod faults;
mod keeping;
pub(crate) mod lab;
mod lease;
mod listing;
mod logs;
mod model;
mod network;
mod notifications;
mod opening;
mod periods;
mod pruning;
mod reasons;
mod search;
mod secrets;
mod stays;
mod utilisation;
