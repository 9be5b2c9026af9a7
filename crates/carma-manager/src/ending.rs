//! How jobs and attempts ended, for people, in the words of the core.

use carma_core::{Outcome, Verdict};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::request::HIDDEN;

/// How a job or an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Ending {
    /// The class, for colours and symbols.
    pub class: EndingClass,
    /// Two or three words: `exit code 3`, `out of memory`.
    pub brief: String,
    /// A sentence without its subject: `failed with exit code 3`.
    pub text: String,
}

/// The class of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndingClass {
    /// It succeeded.
    Succeeded,
    /// It failed, or never ran.
    Failed,
    /// A GPU or the host ran out of memory.
    OutOfMemory,
    /// A user or a limit ended it.
    Stopped,
}

/// Ends of jobs that lists can be limited to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum OutcomeFilter {
    /// Jobs that succeeded.
    Succeeded,
    /// All jobs that ended otherwise, except cancelled ones.
    Failed,
    /// Jobs that ran out of GPU or host memory.
    Oom,
    /// Jobs that reached their time limit.
    TimeLimit,
    /// Cancelled jobs.
    Cancelled,
    /// Jobs that lost their GPU, MPS server, supervisor or server.
    Lost,
    /// Jobs that could not be started, or whose dependency failed.
    NotStarted,
}

impl EndingClass {
    /// The class of an outcome.
    pub(crate) const fn of(outcome: &Outcome) -> Self {
        match outcome {
            Outcome::Succeeded => Self::Succeeded,
            Outcome::OutOfMemory | Outcome::HostOutOfMemory => Self::OutOfMemory,
            Outcome::Cancelled | Outcome::TimeLimit => Self::Stopped,
            _ => Self::Failed,
        }
    }
}

/// How an attempt ended, with its reason as far as that says more.
pub fn explained(verdict: &Verdict, reason: Option<&str>) -> String {
    const STOPPED: &str = "it was stopped: ";
    let reason = reason.unwrap_or_default();
    let why = reason.strip_prefix(STOPPED);
    match verdict {
        // The exit of a process that was told to end says nothing.
        Verdict::Failed { .. } if why.is_some() => format!("was stopped: {}", why.unwrap_or_default()),
        Verdict::CouldNotStart { reason: same } if same == reason => verdict.to_string(),
        _ if reason.is_empty() => verdict.to_string(),
        _ => {
            let why = why.unwrap_or(reason);
            format!("{verdict}: {}", why.strip_prefix("it hung: ").unwrap_or(why))
        }
    }
}

impl From<&Outcome> for Ending {
    fn from(outcome: &Outcome) -> Self {
        Self { class: EndingClass::of(outcome), brief: outcome.brief(), text: outcome.to_string() }
    }
}

impl From<&Verdict> for Ending {
    fn from(verdict: &Verdict) -> Self {
        Self { text: verdict.to_string(), ..Self::from(&Outcome::from(verdict.clone())) }
    }
}

impl Ending {
    /// The end of an attempt as all users may read it. A job that was cancelled or ran too long has that end, whatever its last attempt printed.
    pub(crate) fn public(verdict: Verdict, job: Option<Outcome>) -> Self {
        Self::from(&match job {
            Some(outcome @ (Outcome::Cancelled | Outcome::TimeLimit)) => outcome,
            _ => match verdict.into() {
                // The reason names files of the user.
                Outcome::CouldNotStart { .. } => Outcome::CouldNotStart { reason: HIDDEN.to_owned() },
                outcome => outcome,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ending_has_a_class_a_brief_and_a_text() {
        let ending = |verdict| {
            let Ending { class, brief, text } = Ending::from(&verdict);
            format!("{class:?}: {brief}: {text}")
        };
        assert_eq!(ending(Verdict::Failed { code: 3 }), "Failed: exit code 3: failed with exit code 3");
        assert_eq!(ending(Verdict::OutOfMemory), "OutOfMemory: out of memory: ran out of GPU memory");
        let reason = "no such folder".to_owned();
        assert_eq!(ending(Verdict::CouldNotStart { reason }), "Failed: could not start: could not start: no such folder");
        assert_eq!(Ending::from(&Outcome::Cancelled).class, EndingClass::Stopped);
        let public = |verdict, job| Ending::public(verdict, job).text;
        assert_eq!(public(Verdict::CouldNotStart { reason: "no such folder".to_owned() }, None), "could not start: (hidden)");
        assert_eq!(public(Verdict::Failed { code: 3 }, Some(Outcome::Cancelled)), Outcome::Cancelled.to_string());
    }

    #[test]
    fn a_reason_is_not_said_twice() {
        let told = |verdict: Verdict, reason: &str| explained(&verdict, Some(reason));
        let failed = || Verdict::Failed { code: 143 };
        assert_eq!(told(failed(), "it was stopped: it was requeued"), "was stopped: it was requeued");
        assert_eq!(told(failed(), "it exited with 143"), "failed with exit code 143: it exited with 143");
        let hung = "it was stopped: it hung: no output and no progress";
        assert_eq!(told(Verdict::Hung, hung), "hung, and was stopped: no output and no progress");
        assert_eq!(
            told(Verdict::CouldNotStart { reason: "no such folder".to_owned() }, "no such folder"),
            "could not start: no such folder"
        );
        assert_eq!(explained(&Verdict::Succeeded, None), "succeeded");
    }
}
