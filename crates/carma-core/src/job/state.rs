//! The job's state machine. Whatever the diagram does not show is an error.
//!
//! ```text
//!              estimate ready, or release
//!   Estimating ────────┐
//!     ▲                ▼          launch            process seen
//!   Held ◄────────── Queued ─────────────► Starting ────────────► Running
//!     │     hold       ▲                      │                      │
//!     └────────────────┤ failure, lost GPU    │       exit           │
//!      release (to the ├──────────────────────┴──────────┬───────────┤
//!      state before)   │                                 │           │
//!                  Preempted ◄── put back                │           │
//!                  Recovering ◄── out of memory          ▼           ▼
//!                      └──────── cancel, give up ──────► Done(outcome)
//! ```
//!
//! `Recovering` and `Preempted` wait as `Queued` does: they are launched, held and ended alike. `Estimating` is held and ended alike.
//! A held job whose estimate arrives stays held.

use std::fmt;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::outcome::{Outcome, StopReason};
use super::placement::Placement;
use super::stall::Stall;
use crate::AttemptId;
use crate::units::{MiB, Seconds, Time};

/// The state of a job, with the data of that state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum State {
    /// Kept back until released.
    Held {
        /// Since when.
        since: Time,
        /// Where it goes when released.
        resumes: Resumes,
    },
    /// Accepted, and not queued before its estimate is ready.
    Estimating {
        /// Since when.
        since: Time,
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
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// In the main queue.
    Queued,
    /// In the recovery queue.
    Recovering,
    /// In the main queue, to resume.
    Preempted,
}

/// The states that a held job returns to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Resumes {
    /// It waits for its estimate.
    Estimating,
    /// In the main queue.
    Queued,
    /// In the recovery queue.
    Recovering,
    /// In the main queue, to resume.
    Preempted,
}

impl From<Waiting> for Resumes {
    fn from(waiting: Waiting) -> Self {
        match waiting {
            Waiting::Queued => Self::Queued,
            Waiting::Recovering => Self::Recovering,
            Waiting::Preempted => Self::Preempted,
        }
    }
}

/// An attempt under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Active {
    /// Which attempt.
    pub attempt: AttemptId,
    /// Where it runs.
    pub placement: Placement,
    /// When it was launched.
    pub launched_at: Time,
    /// Set once the attempt has been signalled to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopping: Option<StopReason>,
    /// The memory that the job reported it needed on a device when it ran out of memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed: Option<MiB>,
    /// When it ended, if that was some time before its end is told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<Time>,
    /// Set while it holds its GPUs without using them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle: Option<Idle>,
    /// Set while it hangs, or is much slower than it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stall: Option<Stall>,
}

impl Active {
    /// How long it has run, until its end or now.
    pub fn ran(&self, now: Time) -> Seconds {
        self.ended_at.unwrap_or(now) - self.launched_at
    }
}

/// How an attempt is idle that holds GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct Idle {
    /// Since when.
    pub since: Time,
    /// Others may have its GPUs' compute, even if it wanted them for itself.
    pub lent: bool,
}

/// A transition the state machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, Error, Serialize)]
#[error("the job is {from} and cannot be {to}")]
pub struct IllegalTransition {
    from: &'static str,
    to: &'static str,
}

impl State {
    /// Its name, for people.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Held { .. } => "held",
            Self::Estimating { .. } => "estimating",
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

    /// Whether it may start later: it waits for GPUs or its estimate, or is held.
    pub(crate) const fn is_pending(&self) -> bool {
        self.waiting().is_some() || matches!(self, Self::Held { .. } | Self::Estimating { .. })
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
        let resumes = match self {
            Self::Estimating { .. } => Resumes::Estimating,
            _ => self.waiting().ok_or_else(|| self.illegal("held"))?.into(),
        };
        *self = Self::Held { since: now, resumes };
        Ok(())
    }

    /// Lets a held job wait again, or a job start without its estimate.
    pub(crate) fn release(&mut self, now: Time) -> Result<(), IllegalTransition> {
        *self = match *self {
            Self::Held { resumes, .. } => Self::of(resumes, now),
            Self::Estimating { .. } => Self::Queued { since: now },
            _ => return Err(self.illegal("released")),
        };
        Ok(())
    }

    /// The estimate is ready: a job that waited for it is queued, or stays held.
    pub(crate) fn estimated(&mut self, now: Time) {
        match self {
            Self::Estimating { .. } => *self = Self::Queued { since: now },
            Self::Held { resumes, .. } if *resumes == Resumes::Estimating => *resumes = Resumes::Queued,
            _ => {}
        }
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
        self.under_way("requeued")?;
        *self = Self::of(queue.into(), now);
        Ok(())
    }

    /// Ends the job, whatever it was doing.
    pub(crate) fn finish(&mut self, outcome: Outcome, now: Time) -> Result<(), IllegalTransition> {
        self.unfinished("ended again")?;
        *self = Self::Done { at: now, outcome };
        Ok(())
    }

    const fn of(resumes: Resumes, since: Time) -> Self {
        match resumes {
            Resumes::Estimating => Self::Estimating { since },
            Resumes::Queued => Self::Queued { since },
            Resumes::Recovering => Self::Recovering { since },
            Resumes::Preempted => Self::Preempted { since },
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
