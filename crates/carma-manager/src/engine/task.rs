//! The tasks that users give the engine. It works on them in turns, by user.

use super::decide::Reply;
use super::estimates::Estimated;
use super::jobs_action::JobsAction;
use super::question::Question;
use crate::api::Forecast;
use crate::request::{JobRequest, Owner};

/// A task of a user.
#[derive(Debug)]
pub(crate) enum Task {
    /// A question, which is answered in one go.
    Question(Question),
    /// An action on jobs, which is done piece by piece.
    Action(Box<JobsAction>),
    /// A forecast whose estimate is ready.
    Forecast { owner: Owner, jobs: Vec<JobRequest>, estimated: Box<Estimated>, reply: Reply<Vec<Forecast>> },
}
