//! Forms of asking for a job: flags, scripts with `#CARMA` or `#SBATCH` lines, TOML job files and `.rad` task files.
//!
//! All of them say the same things by the same [`Key`]s, so that a flag's name is also a script's and a job file's:
//!
//! ```text
//!  flags ────────────────────────────┐
//!  script ──► words ──► slurm ───────┤
//!  job file (TOML) ──────────────────┼──► Saying (key, value, place) ──► Draft ──► check ──► Submission ──► JobRequest, one or many
//!  task file (.rad) ─────────────────┘
//! ```

mod after;
mod array;
mod begin;
mod check;
mod draft;
mod environment;
mod error;
mod form;
mod job_file;
mod key;
mod script;
mod secrets;
mod slurm;
mod sweep;
mod task_file;
mod values;
mod words;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use array::MOST_MEMBERS;
pub(crate) use check::LONGEST_SPAN;
pub use check::{InvalidRequest, check};
pub use draft::Submission;
pub use error::{Place, Problem, SubmissionError};
pub use form::{Form, Source};
use jiff::Zoned;
pub use key::{KEYS, Key, Saying};
pub use secrets::{HIDDEN, looks_secret};
pub use sweep::Parameter;
pub use values::{bytes, span_with_unit, time_limit};

/// What a submission takes from whoever makes it.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Where they are.
    pub directory: PathBuf,
    /// Their environment.
    pub environment: BTreeMap<String, String>,
    /// When they ask, and in which time zone.
    pub now: Zoned,
}
