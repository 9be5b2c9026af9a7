//! What the crate does with whole descriptions.

mod hostile;
mod parse_agreement;
mod parse_attributes;
mod parse_edges;
mod parse_lab;
mod parse_own;
mod parse_published;
mod parse_small;
mod parse_totals;
