//! Predicted speeds of jobs that share a GPU.
//!
//! A job has a *pressure* (what it does to others) and a *sensitivity* (what others do to it):
//!
//! ```text
//! slowdown_i = (1 + host * others) * (1 + mode * s_i * (sum of p_j over the others) * n^crowd)      n: how many others count
//! ```
//!
//! Only what a manager knows before a first run goes into it: counters and memory as estimated. The constants are a fit to published pairs with counters
//! blurred as estimates are. The simulator uses other constants.

mod limits;
mod profile;
mod speeds;

pub use limits::{ForecastConfig, ForecastSettings};
pub use profile::InterferenceProfile;
pub use speeds::{CoRunners, speeds};
