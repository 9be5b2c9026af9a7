//! What becomes of jobs that share a GPU: predicted speeds, from what is expected of each.
//!
//! A job has a *pressure* (what it does to others) and a *sensitivity* (what others do to it):
//!
//! ```text
//! slowdown_i = (1 + host * others) * (1 + mode * s_i * (sum of p_j over the others) * n^crowd)      n: how many others count
//! ```
//!
//! Only what a manager knows before a first run goes into it: counters and memory as estimated. The constants are a fit to published pairs with counters
//! blurred as estimates are, and are no simulator's.

mod character;
mod limits;
mod speeds;

pub use character::Character;
pub use limits::{ForecastConfig, ForecastSettings};
pub use speeds::{CoRunners, speeds};
