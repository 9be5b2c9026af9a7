//! The runs and their order.

use std::fmt;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How jobs share a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// Time slicing.
    Streams,
    /// At the same time, through an MPS server.
    Mps,
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Streams => "streams",
            Self::Mps => "mps",
        })
    }
}

/// The purpose of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// The demand of a single job.
    SoloRun,
    /// The interference of two jobs that start together.
    Pair,
    /// The interference of copies of a job that start one after the other.
    Copies,
}

/// Jobs that are on the GPU together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Run {
    pub(super) kind: Kind,
    pub(super) mode: Mode,
    /// Names of jobs, in start order.
    pub(super) jobs: Vec<String>,
}

impl Run {
    /// The jobs of the run, as text.
    pub(super) fn jobs_text(&self) -> String {
        match (self.kind, self.jobs.as_slice()) {
            (Kind::SoloRun, [job]) => format!("{job} alone"),
            (Kind::Copies, [job, ..]) => format!("{} x {job}", self.jobs.len()),
            (_, jobs) => jobs.join(" + "),
        }
    }
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.jobs_text())?;
        if self.kind == Kind::SoloRun { Ok(()) } else { write!(f, " ({})", self.mode) }
    }
}

/// All runs: each job alone as the baseline, then pairs, then two or more copies up to the limit.
pub(super) fn plan(jobs: &[String], pairs: bool, copies: u16, modes: &[Mode]) -> Vec<Run> {
    let alone = jobs.iter().map(|job| Run { kind: Kind::SoloRun, mode: Mode::Streams, jobs: vec![job.clone()] });
    let together = modes.iter().flat_map(|mode| {
        let pair = |(place, one): (usize, &String)| {
            let run = |other: &String| Run { kind: Kind::Pair, mode: *mode, jobs: vec![one.clone(), other.clone()] };
            jobs[place..].iter().map(run).collect::<Vec<_>>()
        };
        let crowd = |job: &String| {
            let run = |copies: u16| Run { kind: Kind::Copies, mode: *mode, jobs: vec![job.clone(); copies.into()] };
            (2..=copies).map(run).collect::<Vec<_>>()
        };
        let pairs: Vec<Run> = if pairs { jobs.iter().enumerate().flat_map(pair).collect() } else { Vec::new() };
        pairs.into_iter().chain(jobs.iter().flat_map(crowd)).collect::<Vec<_>>()
    });
    alone.chain(together).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_run_alone_then_in_pairs_then_in_copies() {
        let jobs = ["a", "b"].map(str::to_owned);
        let names = |pairs, copies, modes: &[Mode]| plan(&jobs, pairs, copies, modes).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(names(false, 1, &[Mode::Streams]), ["a alone", "b alone"]);
        let both = names(true, 3, &[Mode::Streams, Mode::Mps]);
        let streams = ["a + a", "a + b", "b + b", "2 x a", "3 x a", "2 x b", "3 x b"];
        assert_eq!(both[2..9], streams.map(|run| format!("{run} (streams)")));
        assert_eq!(both[9..], streams.map(|run| format!("{run} (mps)")));
    }
}
