//! Mapping: the search for the devices that a job gets.

mod choose;
mod packing;
mod search;

pub(crate) use search::{could_ever_fit, find, fits_until};
