//! How jobs and attempts ended, for people, in the words of the core.

use carma_core::{Outcome, Verdict};
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

impl EndingClass {
    /// All classes.
    pub(crate) const ALL: [Self; 4] = [Self::Succeeded, Self::Failed, Self::OutOfMemory, Self::Stopped];

    /// The outcomes of this class. All others are failures.
    pub(crate) const fn outcomes(self) -> &'static [Outcome] {
        const SUCCEEDED: &[Outcome] = &[Outcome::Succeeded];
        const OUT_OF_MEMORY: &[Outcome] = &[Outcome::OutOfMemory, Outcome::HostOutOfMemory];
        const STOPPED: &[Outcome] = &[Outcome::Cancelled, Outcome::TimeLimit];
        match self {
            Self::Succeeded => SUCCEEDED,
            Self::Failed => &[],
            Self::OutOfMemory => OUT_OF_MEMORY,
            Self::Stopped => STOPPED,
        }
    }

    /// Its name in requests.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::OutOfMemory => "out_of_memory",
            Self::Stopped => "stopped",
        }
    }

    /// The class of an outcome.
    pub(crate) fn of(outcome: &Outcome) -> Self {
        Self::ALL.into_iter().find(|class| class.outcomes().contains(outcome)).unwrap_or(Self::Failed)
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
    fn an_end_has_a_class_a_few_words_and_a_sentence() {
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
}
