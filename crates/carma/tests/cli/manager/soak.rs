//! Long runs, which `make soak` starts: many random kills, and a month of jobs. What a manager uses must stay flat.

mod kills;
mod month;
mod readings;

use std::str::FromStr;

/// A number from the environment.
fn number<T: FromStr>(variable: &str, otherwise: T) -> T {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable}={text} is not a number")),
        Err(_) => otherwise,
    }
}
