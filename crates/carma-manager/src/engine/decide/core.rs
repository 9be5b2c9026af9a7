//! The decision core, with an optional log of its events and decisions.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::iter;
use std::path::{Path, PathBuf};

use carma_core::{Action, Event, EventError, EventLog, LogError, Scheduler, Settings, Time};

/// The core.
#[derive(Debug)]
pub(crate) enum Core {
    Plain(Box<Scheduler>),
    Recorded(Box<EventLog<BufWriter<File>>>),
}

/// A new file with this name, or with the next free number after it.
fn new_file(path: &Path) -> io::Result<File> {
    let numbered = (1..=u32::MAX).map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    for path in iter::once(path.to_owned()).chain(numbered) {
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Ok(file) => {
                tracing::info!("events and decisions are written to {}", path.display());
                return Ok(file);
            }
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

impl Core {
    /// An empty core with a new log, as a replay needs it.
    pub(crate) fn new(settings: &Settings, record: Option<&Path>) -> Result<Self, LogError> {
        Ok(match record {
            Some(path) => Self::Recorded(Box::new(EventLog::new(settings, BufWriter::new(new_file(path)?))?)),
            None => Self::Plain(Box::new(Scheduler::new(settings.check()?))),
        })
    }

    pub(crate) fn scheduler(&self) -> &Scheduler {
        match self {
            Self::Plain(scheduler) => scheduler,
            Self::Recorded(log) => log.scheduler(),
        }
    }

    /// Passes an event to the core. If the log cannot be written, it ends, and the core continues.
    pub(crate) fn handle(&mut self, event: Event, now: Time) -> Result<Vec<Action>, EventError> {
        match self {
            Self::Plain(scheduler) => scheduler.handle(event, now),
            Self::Recorded(log) => match log.handle(event, now) {
                Ok(actions) => Ok(actions),
                Err(LogError::Event(error)) => Err(error),
                Err(LogError::Unwritten { actions, source }) => {
                    tracing::error!("the event log is incomplete from here: {source}");
                    *self = Self::Plain(Box::new(log.scheduler().clone()));
                    Ok(actions)
                }
                // Other errors happen only when a log is opened or read.
                Err(other) => {
                    tracing::error!("the event log is incomplete from here: {other}");
                    Ok(Vec::new())
                }
            },
        }
    }
}
