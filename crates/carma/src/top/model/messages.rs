//! Messages to the model, and its requests.

use carma_manager::api::{GpuDetail, JobAction, JobDetail, LogStream, Me, PoolDetail, Queue, RecentSamples, Status, Why};
use carma_manager::store::StoredEvent;
use ratatui::crossterm::event::KeyEvent;

/// The manager's answers of one round.
#[derive(Debug, Clone)]
pub(crate) struct Answers {
    pub(crate) status: Status,
    pub(crate) me: Me,
    pub(crate) gpus: Vec<GpuDetail>,
    pub(crate) queue: Queue,
    /// Pools of pilots.
    pub(crate) pools: Vec<PoolDetail>,
    /// Samples of GPUs since the last round.
    pub(crate) samples: Vec<RecentSamples>,
}

/// Something that changes the model.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal is so large now.
    Resized(Size),
    /// The manager answered.
    Answers(Box<Answers>),
    /// The manager did not answer, and why.
    Away(String),
    /// Something happened.
    Event(StoredEvent),
    /// The selected job, or why it cannot be shown.
    Detail(String, Result<(Box<JobDetail>, Option<Box<Why>>), String>),
    /// The end of the selected log, or why it cannot be shown.
    Log(String, Result<Vec<u8>, String>),
    /// The result of an action, as text.
    ActionText(String),
    /// It is time to leave.
    Leave(ExitReason),
    /// Time passed.
    Tick,
}

/// Why to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExitReason {
    /// The user quits.
    Wanted,
    /// By a signal.
    Signalled(i32),
}

/// How large the terminal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

/// The name of a job in requests to the manager.
pub(crate) type JobName = String;

/// A request of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Leave.
    Leave(ExitReason),
    /// Stop until the shell continues this process.
    Suspend,
    /// Do this to a job.
    Act(JobName, JobAction),
    /// Show details of this from now on.
    Show(Subject),
}

/// The subject of the detail panel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing.
    Nothing,
    /// Details of a job.
    Job(JobName),
    /// A log.
    Log(JobName, LogStream),
}
