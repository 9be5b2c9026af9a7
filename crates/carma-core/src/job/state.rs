//! The job's state machine. Whatever the diagram does not show is an error.
//!
//! ```text
//!            hold                 launch            process seen
//!   Held ◄────────── Queued ─────────────► Starting ────────────► Running
//!     │   release      ▲                      │                      │
//!     └────────────────┤ failure, lost GPU    │       exit           │
//!     (to where it was)├──────────────────────┴──────────┬───────────┤
//!                  Preempted ◄── put back                │           │
//!                  Recovering ◄── out of memory          ▼           ▼
//!                      └──────── cancel, give up ──────► Done(outcome)
//! ```
//!
//! `Recovering` and `Preempted` wait as `Queued` does: they are launched, held and ended alike.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::outcome::{Outcome, StopReason};
use crate::AttemptId;
use crate::mapping::Placement;
use crate::units::{MiB, Time};

/// Where a job stands, with what only that standing has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Kept back until released.
    Held {
        /// Since when.
        since: Time,
        /// Where it goes when released.
        resumes: Waiting,
    },
    /// In the main queue.
    Queued {
        /// Since when.
        since: Time,
    },
    /// Launched, not yet seen on its GPUs.
    Starting(Active),
    /// Seen on its GPUs.
    Running(Active),
    /// In the recovery queue after it ran out of memory.
    Recovering {
        /// Since when.
        since: Time,
    },
    /// In the main queue after it was put back.
    Preempted {
        /// Since when.
        since: Time,
    },
    /// Over.
    Done {
        /// When it ended.
        at: Time,
        /// How it ended.
        outcome: Outcome,
    },
}

/// The states in which a job waits for GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// In the main queue.
    Queued,
    /// In the recovery queue.
    Recovering,
    /// In the main queue, to resume.
    Preempted,
}

/// An attempt under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Active {
    /// Which attempt.
    pub attempt: AttemptId,
    /// Where it runs.
    pub placement: Placement,
    /// When it was launched.
    pub launched_at: Time,
    /// Set once it was told to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StopReason>,
    /// What it told it would have needed on a device when it ran out of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<MiB>,
    /// Set while it holds its GPUs and does not use them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
}

/// How an attempt is idle that holds GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Idle {
    /// Since when.
    pub since: Time,
    /// Others may have its GPUs' compute, even if it wanted them for itself.
    pub lent: bool,
}

/// A transition the state machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("a job that is {from} cannot be {to}")]
pub struct IllegalTransition {
    from: &'static str,
    to: &'static str,
}

impl State {
    /// Its name, for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Queued { .. } => "queued",
            Self::Starting(_) => "starting",
            Self::Running(_) => "running",
            Self::Recovering { .. } => "recovering",
            Self::Preempted { .. } => "preempted",
            Self::Done { .. } => "done",
        }
    }

    /// Since when it waits, if it does.
    pub const fn waits_since(&self) -> Option<Time> {
        match self {
            Self::Queued { since } | Self::Recovering { since } | Self::Preempted { since } => Some(*since),
            _ => None,
        }
    }

    /// The attempt under way, if any.
    pub const fn active(&self) -> Option<&Active> {
        match self {
            Self::Starting(active) | Self::Running(active) => Some(active),
            _ => None,
        }
    }

    pub(crate) fn active_mut(&mut self) -> Option<&mut Active> {
        match self {
            Self::Starting(active) | Self::Running(active) => Some(active),
            _ => None,
        }
    }

    /// How it waits, if it waits for GPUs.
    pub const fn waiting(&self) -> Option<Waiting> {
        match self {
            Self::Queued { .. } => Some(Waiting::Queued),
            Self::Recovering { .. } => Some(Waiting::Recovering),
            Self::Preempted { .. } => Some(Waiting::Preempted),
            _ => None,
        }
    }

    /// Whether it is kept back.
    pub(crate) const fn is_held(&self) -> bool {
        matches!(self, Self::Held { .. })
    }

    /// How it ended, if it did.
    pub const fn outcome(&self) -> Option<&Outcome> {
        match self {
            Self::Done { outcome, .. } => Some(outcome),
            _ => None,
        }
    }

    /// The attempt under way, or why there is none to be put back, stopped or the like.
    pub(crate) fn under_way(&self, to: &'static str) -> Result<&Active, IllegalTransition> {
        self.active().ok_or_else(|| self.illegal(to))
    }

    /// Refuses what cannot be done to a job that is over.
    pub(crate) fn unfinished(&self, to: &'static str) -> Result<(), IllegalTransition> {
        if self.outcome().is_some() { Err(self.illegal(to)) } else { Ok(()) }
    }

    fn illegal(&self, to: &'static str) -> IllegalTransition {
        IllegalTransition { from: self.name(), to }
    }

    /// Keeps a waiting job back.
    pub(crate) fn hold(&mut self, now: Time) -> Result<(), IllegalTransition> {
        let resumes = self.waiting().ok_or_else(|| self.illegal("held"))?;
        *self = Self::Held { since: now, resumes };
        Ok(())
    }

    /// Lets a held job wait again.
    pub(crate) fn release(&mut self, now: Time) -> Result<(), IllegalTransition> {
        let Self::Held { resumes, .. } = *self else { return Err(self.illegal("released")) };
        *self = Self::of(resumes, now);
        Ok(())
    }

    /// Starts an attempt of a waiting job.
    pub(crate) fn launch(&mut self, active: Active) -> Result<(), IllegalTransition> {
        self.waiting().ok_or_else(|| self.illegal("launched"))?;
        // A job without GPUs will never be seen on one.
        *self = if active.placement.devices.is_empty() { Self::Running(active) } else { Self::Starting(active) };
        Ok(())
    }

    /// Its process was seen on a GPU; seen again it stays as it is.
    pub(crate) fn seen(&mut self) -> Result<(), IllegalTransition> {
        match self {
            Self::Starting(active) => *self = Self::Running(active.clone()),
            Self::Running(_) => {}
            _ => return Err(self.illegal("seen running")),
        }
        Ok(())
    }

    /// Puts the job of an ended attempt back into a queue.
    pub(crate) fn put_back(&mut self, queue: Waiting, now: Time) -> Result<(), IllegalTransition> {
        self.under_way("put back")?;
        *self = Self::of(queue, now);
        Ok(())
    }

    /// Ends the job, whatever it was doing.
    pub(crate) fn finish(&mut self, outcome: Outcome, now: Time) -> Result<(), IllegalTransition> {
        self.unfinished("ended again")?;
        *self = Self::Done { at: now, outcome };
        Ok(())
    }

    const fn of(waiting: Waiting, since: Time) -> Self {
        match waiting {
            Waiting::Queued => Self::Queued { since },
            Waiting::Recovering => Self::Recovering { since },
            Waiting::Preempted => Self::Preempted { since },
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Done { outcome, .. } => write!(f, "{outcome}"),
            _ => f.write_str(self.name()),
        }
    }
}
