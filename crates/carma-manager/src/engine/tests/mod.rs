//! The engine with an executor that starts nothing: which orders it gets, and when.

mod arrays;
mod attempts;
mod full_disk;
mod keys;
mod lab;
mod restarts;
mod turns;
mod watchdog;
