//! Actions on a job: allowed by its phase and by the user's rights, after a confirmation.

use carma_manager::api::{JobAction, QueueRow};
use carma_manager::store::Phase;

use super::{Model, Prompt};
use crate::manager::{identity, past_participle};
use carma_format::{printable, shortened};

impl Model {
    /// Asks to confirm an action on the selected job, if it is possible.
    pub(super) fn confirm(&mut self, act: JobAction) {
        let Some(job) = self.jobs.selected() else { return };
        let label = label(job);
        let verb = verb(&act);
        if !self.may_change(job.uid) {
            return self.notify(format!("{label} is not yours: it is for {} and operators to {verb} it", printable(&job.user)));
        }
        if let Some(allowed_phases) = allowed_phases(&act).filter(|phases| !phases.contains(&job.state)) {
            let allowed_phases: Vec<String> = allowed_phases.iter().map(ToString::to_string).collect();
            return self.notify(format!(
                "{label} is {}: only {} jobs can be {}",
                job.state,
                either(&allowed_phases),
                past_participle(&act)
            ));
        }
        self.prompt = Some(Prompt::Confirm {
            name: identity(job.id, job.array),
            question: format!("{} {label} of {}?", capital(verb), printable(&job.user)),
            act,
        });
    }
}

/// A job as text.
fn label(job: &QueueRow) -> String {
    let name = job.name.as_ref().map_or(String::new(), |name| format!(" \"{}\"", shortened(&printable(name), 30)));
    format!("job {}{name}", identity(job.id, job.array))
}

/// The phases of a job that allow an action; unset: any.
const fn allowed_phases(act: &JobAction) -> Option<&'static [Phase]> {
    match act {
        JobAction::Hold => Some(&[Phase::Estimating, Phase::Queued, Phase::Recovering, Phase::Preempted]),
        JobAction::Release => Some(&[Phase::Held, Phase::Estimating]),
        JobAction::Requeue => Some(&[Phase::Starting, Phase::Running]),
        JobAction::Cancel | JobAction::Change(_) => None,
    }
}

const fn verb(act: &JobAction) -> &'static str {
    match act {
        JobAction::Cancel => "cancel",
        JobAction::Hold => "hold",
        JobAction::Release => "release",
        JobAction::Requeue => "requeue",
        JobAction::Change(_) => "change",
    }
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// "a, b or c".
fn either(names: &[String]) -> String {
    match names {
        [] => String::new(),
        [word] => word.clone(),
        [names @ .., last] => format!("{} or {last}", names.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{ADA, busy, model_of, press};
    use super::super::{Answers, Request, Subject};
    use super::*;

    fn operator() -> Answers {
        let mut answers = busy();
        (answers.me.uid, answers.me.operator) = (ADA + 7, true);
        answers
    }

    #[test]
    fn actions_need_a_yes() {
        let mut model = model_of(busy());
        for no in ["cn", "c\x1b", "c\n", "c ", "cq", "cc"] {
            assert_eq!(press(&mut model, no), [], "{no:?}");
            assert!(model.prompt.is_none());
        }
        assert_eq!(press(&mut model, "cy"), [Request::Act("1".to_owned(), JobAction::Cancel)]);
        assert_eq!(press(&mut model, "RY"), [Request::Act("1".to_owned(), JobAction::Requeue)]);
    }

    #[test]
    fn only_operators_act_on_jobs_of_others() {
        let mut ada = model_of(busy());
        for act in ["c", "h", "r", "R"] {
            assert_eq!(press(&mut ada, &format!("gj{act}y")), [], "job 2 is bob's");
            assert!(ada.notice().is_some_and(|notice| notice.contains("job 2 \"inception\" is not yours")), "{act}");
        }
        assert_eq!(press(&mut ada, "\n"), [Request::Show(Subject::Job("2".to_owned()))]);
        assert_eq!(press(&mut model_of(operator()), "jcy"), [Request::Act("2".to_owned(), JobAction::Cancel)]);
    }

    #[test]
    fn actions_need_a_fitting_phase() {
        let mut model = model_of(busy());
        assert_eq!(press(&mut model, "hy"), []);
        assert_eq!(
            model.notice(),
            Some("job 1 \"resnet50\" is running: only estimating, queued, recovering or preempted jobs can be held")
        );
        assert_eq!(press(&mut model, "Gry"), [Request::Act("9".to_owned(), JobAction::Release)]);
        assert_eq!(press(&mut model, "Ghy"), [], "it is held");
        assert_eq!(press(&mut model, "kkhy"), [Request::Act("5".to_owned(), JobAction::Hold)]);
        assert_eq!(press(&mut model, "/sweep\ncy"), [Request::Act("12".to_owned(), JobAction::Cancel)]);
    }

    #[test]
    fn actions_apply_to_one_job_of_an_array() {
        let mut answers = busy();
        answers.queue.jobs[0].array = Some(carma_manager::api::ArrayPlace { array: carma_core::ArrayId(1), index: 4 });
        assert_eq!(press(&mut model_of(answers), "cy"), [Request::Act("1_4".to_owned(), JobAction::Cancel)], "1 would be all of them");
    }
}
