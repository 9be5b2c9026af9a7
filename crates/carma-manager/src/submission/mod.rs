//! Submissions: read from flags, scripts with `#CARMA` or `#SBATCH` lines, TOML job files and `.rad` task files, and validated.
//!
//! All sources have the same options, from the same table of [`Key`]s:
//!
//! ```text
//!  flags ────────────────────┐
//!  script ──► lines, slurm ──┤                 client                                  server
//!  job file (TOML) ──────────┼──► OptionValue ──► Draft ──► Submission ─┬─ HTTP ──► Submission
//!  task file (.rad) ─────────┘                     early errors: validate             validate ──► ValidSubmission ──► ValidJobs ──► engine
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
mod shell_words;
mod slurm;
mod sweep;
mod task_file;
mod template;
mod valid;
mod values;

use std::collections::BTreeMap;
use std::path::PathBuf;

pub use array::MAX_MEMBERS;
pub(crate) use check::MAX_SPAN;
pub use check::{InvalidRequest, check};
pub use draft::ParsedSubmission;
pub use error::{Place, Problem, SubmissionError};
pub use form::{Format, Source};
use jiff::Zoned;
pub use key::{KEYS, Key, OptionValue};
pub(crate) use script::is_for_slurm;
pub use secrets::looks_secret;
pub use template::Template;
pub(crate) use valid::Jobs;
pub use valid::{ValidJobs, ValidSubmission};
pub use values::{bytes, memory_size, span_with_unit, time_limit};

use crate::umask::Umask;

/// What a submission takes from its caller.
#[derive(Debug, Clone)]
pub struct Caller {
    /// The working directory.
    pub directory: PathBuf,
    /// The environment.
    pub environment: BTreeMap<String, String>,
    /// The umask, if it is known.
    pub umask: Option<Umask>,
    /// Tells the time in the caller's time zone. Called only where a time is given: to find the zone takes 1 ms.
    pub now: fn() -> Zoned,
}
