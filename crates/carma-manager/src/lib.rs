//! The manager: takes jobs, keeps them, runs them under supervision, and judges how they ended.
//!
//! ```text
//!  submission ──► JobRequest ──► store (SQLite) ──► engine (carma-core) ──► launch ──► shim ──► the job
//!  (flags, scripts, files)          ▲                  ▲                                │
//!                                   └──── verdicts ◄───┴── exits, logs, GPUs ◄──────────┘
//! ```

pub mod attempt;
pub mod request;
