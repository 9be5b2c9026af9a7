//! The engine with an executor that starts nothing: which orders it gets, and when.

mod attempts;
mod lab;
mod restarts;
mod watchdog;
