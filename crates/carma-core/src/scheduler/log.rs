//! The event log: what happened and what was decided, as JSON lines, and its replay.

use std::io::{self, BufRead, Write};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{Action, Event, EventError, Scheduler};
use crate::config::Settings;
use crate::keys::ConfigErrors;
use crate::units::Time;

/// The version of the format that is written.
const VERSION: u32 = 1;

/// The first line of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LogHeader {
    /// The version of the format.
    pub carma_event_log: u32,
    /// The configuration the scheduler began with.
    pub settings: Settings,
}

/// Every other line: an event and what was decided on it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// When.
    pub at: Time,
    /// What happened.
    pub event: Event,
    /// What was decided.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

/// A scheduler that writes down all it hears and decides. Refused events change nothing and are not written.
#[derive(Debug)]
pub struct EventLog<W> {
    scheduler: Scheduler,
    output: W,
}

impl<W: Write> EventLog<W> {
    /// Begins a log.
    pub fn new(settings: &Settings, mut output: W) -> Result<Self, LogError> {
        let scheduler = Scheduler::new(settings.check()?);
        // Written out in full: what is left to a preset may mean something else to a later version.
        write_line(&mut output, &LogHeader { carma_event_log: VERSION, settings: scheduler.config().into() })?;
        Ok(Self { scheduler, output })
    }

    /// Continues an existing log at its final state.
    pub const fn resume(scheduler: Scheduler, output: W) -> Self {
        Self { scheduler, output }
    }

    /// As [`Scheduler::handle`], written down. When that fails, the error carries the actions: they are decided, and
    /// the driver must still carry them out.
    pub fn handle(&mut self, event: Event, now: Time) -> Result<Vec<Action>, LogError> {
        let actions = self.scheduler.handle(event.clone(), now)?;
        // As in the header: settings are written out in full.
        let event = match event {
            Event::ConfigurationChanged(_) => Event::ConfigurationChanged(Box::new(self.scheduler.config().into())),
            other => other,
        };
        let record = Record { at: self.scheduler.now(), event, actions };
        match write_line(&mut self.output, &record) {
            Ok(()) => Ok(record.actions),
            Err(source) => Err(LogError::Unwritten { actions: record.actions, source }),
        }
    }

    /// The scheduler.
    pub const fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// Ends the log.
    pub fn into_output(self) -> W {
        self.output
    }
}

fn as_json(actions: &[Action]) -> String {
    serde_json::to_string(actions).unwrap_or_default()
}

fn write_line(output: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(&mut *output, line)?;
    output.write_all(b"\n")
}

/// Feeds a log to a new scheduler and compares what it decides. Returns how many events there were, and the scheduler as it
/// is at the end.
///
/// ```
/// use carma_core::{Event, EventLog, ServerId, ServerSpec, Settings, Time, replay};
/// let mut log = EventLog::new(&Settings::default(), Vec::new())?;
/// log.handle(Event::ServerAttached(ServerSpec::new(ServerId(0))), Time::from_secs(1))?;
/// let (events, scheduler) = replay(&log.into_output()[..])?;
/// assert_eq!((events, scheduler.fleet().servers().len()), (1, 1));
/// # Ok::<(), carma_core::LogError>(())
/// ```
pub fn replay(log: impl BufRead) -> Result<(usize, Scheduler), LogError> {
    let mut events = 0;
    let mut scheduler = None;
    let mut lines = (1..).zip(log.lines()).peekable();
    while let Some((number, line)) = lines.next() {
        let line = line?;
        let malformed = |error| LogError::Malformed { line: number, error };
        let Some(scheduler) = scheduler.as_mut() else {
            let header: LogHeader = serde_json::from_str(&line).map_err(malformed)?;
            if header.carma_event_log != VERSION {
                return Err(LogError::Version(header.carma_event_log));
            }
            scheduler = Some(Scheduler::new(header.settings.check()?));
            continue;
        };
        let Record { at, event, actions } = match serde_json::from_str(&line) {
            // The last line is incomplete: its writer is still at it, or died.
            Err(error) if error.is_eof() && lines.peek().is_none() => break,
            record => record.map_err(malformed)?,
        };
        let decided = scheduler.handle(event, at).map_err(|error| LogError::Refused { line: number, error })?;
        if decided != actions {
            return Err(LogError::Diverged { line: number, logged: as_json(&actions), decided: as_json(&decided) });
        }
        events += 1;
    }
    scheduler.map(|scheduler| (events, scheduler)).ok_or(LogError::Empty)
}

/// Why a log could not be written or replayed.
#[derive(Debug, Error)]
pub enum LogError {
    /// The scheduler refused the event.
    #[error(transparent)]
    Event(#[from] EventError),
    /// The configuration is wrong.
    #[error(transparent)]
    Configuration(#[from] ConfigErrors),
    /// Reading or writing failed.
    #[error("the event log cannot be read or written")]
    Io(#[from] io::Error),
    /// The event was handled, but could not be written down; its actions are still to be done.
    #[error("the event log cannot be written")]
    Unwritten {
        /// What was decided.
        actions: Vec<Action>,
        /// What went wrong.
        source: io::Error,
    },
    /// There is not even a header.
    #[error("the event log is empty")]
    Empty,
    /// It was written by another version.
    #[error("the event log has version {0}; this program reads version {VERSION}")]
    Version(u32),
    /// A line is no record.
    #[error("line {line} of the event log is malformed")]
    Malformed {
        /// Which line.
        line: usize,
        /// What is wrong with it.
        #[source]
        error: serde_json::Error,
    },
    /// An event that was accepted then is refused now.
    #[error("line {line} of the event log is not accepted by this version")]
    Refused {
        /// Which line.
        line: usize,
        /// Why.
        #[source]
        error: EventError,
    },
    /// Another decision was made.
    #[error("line {line} of the event log gives different decisions\nlogged:  {logged}\ndecided: {decided}")]
    Diverged {
        /// Which line.
        line: usize,
        /// What was decided then, as JSON.
        logged: String,
        /// What is decided now.
        decided: String,
    },
}
