//! The decision core, with a log of all it was told and decided where one is wanted.

use std::fs::File;
use std::io::{self, BufWriter, ErrorKind};
use std::iter;
use std::path::{Path, PathBuf};

use carma_core::{Action, Event, EventError, EventLog, LogError, Scheduler, Settings, Time};

/// The core.
#[derive(Debug)]
pub(super) enum Core {
    Plain(Box<Scheduler>),
    Recorded(Box<EventLog<BufWriter<File>>>),
}

/// A file of this name, or where there is one already, with the next number after it.
fn new_file(path: &Path) -> io::Result<File> {
    let numbered = (1..=u32::MAX).map(|number| PathBuf::from(format!("{}.{number}", path.display())));
    for path in iter::once(path.to_owned()).chain(numbered) {
        match File::create_new(&path) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            Ok(file) => {
                eprintln!("carma: events and decisions are written to {}", path.display());
                return Ok(file);
            }
            Err(error) => return Err(error),
        }
    }
    Err(ErrorKind::AlreadyExists.into())
}

impl Core {
    /// A core that knows nothing yet. Its log begins anew with it, as a replay does.
    pub(super) fn new(settings: &Settings, record: Option<&Path>) -> Result<Self, LogError> {
        Ok(match record {
            Some(path) => Self::Recorded(Box::new(EventLog::new(settings, BufWriter::new(new_file(path)?))?)),
            None => Self::Plain(Box::new(Scheduler::new(settings.check()?))),
        })
    }

    pub(super) fn scheduler(&self) -> &Scheduler {
        match self {
            Self::Plain(scheduler) => scheduler,
            Self::Recorded(log) => log.scheduler(),
        }
    }

    /// Tells the core. A log that can no longer be written ends there, and the core goes on.
    pub(super) fn handle(&mut self, event: Event, now: Time) -> Result<Vec<Action>, EventError> {
        match self {
            Self::Plain(scheduler) => scheduler.handle(event, now),
            Self::Recorded(log) => match log.handle(event, now) {
                Ok(actions) => Ok(actions),
                Err(LogError::Event(error)) => Err(error),
                Err(LogError::Unwritten { actions, source }) => {
                    eprintln!("carma: the record ends here: {source}");
                    *self = Self::Plain(Box::new(log.scheduler().clone()));
                    Ok(actions)
                }
                // What else can go wrong with a log goes wrong when it is opened or read.
                Err(other) => {
                    eprintln!("carma: the record ends here: {other}");
                    Ok(Vec::new())
                }
            },
        }
    }
}
