//! What changes the model, and what it wants to be done.

use carma_manager::api::{Act, GpuDetail, JobDetail, LogStream, Me, Queue, RecentLooks, Status, Why};
use carma_manager::store::StoredEvent;
use ratatui::crossterm::event::KeyEvent;

/// What the manager answered in one round.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) status: Status,
    pub(crate) me: Me,
    pub(crate) gpus: Vec<GpuDetail>,
    pub(crate) queue: Queue,
    /// Looks at GPUs since the last round.
    pub(crate) looks: Vec<RecentLooks>,
}

/// Something that changes the model.
#[derive(Debug, Clone)]
pub(crate) enum Message {
    /// A key was pressed.
    Key(KeyEvent),
    /// The terminal is so large now.
    Resized(Size),
    /// The manager answered.
    Seen(Box<Seen>),
    /// The manager did not answer, and why.
    Away(String),
    /// Something happened.
    Happened(StoredEvent),
    /// The job that is looked at closely, or why it cannot be.
    Detail(String, Result<(Box<JobDetail>, Option<Why>), String>),
    /// The end of the log that is looked at, or why it cannot be.
    Log(String, Result<Vec<u8>, String>),
    /// What became of an act, in words.
    Acted(String),
    /// It is time to leave.
    Leave(Departure),
    /// Time passed.
    Tick,
}

/// Why to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Departure {
    /// Somebody wants to.
    Wanted,
    /// A signal told us to.
    Signalled(i32),
}

/// How large the terminal is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Size {
    pub(crate) columns: u16,
    pub(crate) rows: u16,
}

/// What a job is called when the manager is asked about it.
pub(crate) type JobName = String;

/// Something that is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Request {
    /// Leave.
    Leave(Departure),
    /// Stop until the shell lets us go on.
    Suspend,
    /// Do this to a job.
    Act(JobName, Act),
    /// Look at this more closely, from now on.
    Look(Subject),
}

/// What is looked at more closely than all else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Subject {
    /// Nothing.
    Nothing,
    /// All about a job.
    Job(JobName),
    /// A log.
    Log(JobName, LogStream),
}
