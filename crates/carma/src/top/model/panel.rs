//! Panels over the lists: details of a job, a log, help.

use carma_manager::api::{JobDetail, LogStream, Why};
use carma_manager::store::UnixMillis;
use jiff::tz::TimeZone;

use super::super::plain::plain_lines;
use super::super::wrap::wrapped;
use super::JobName;
use crate::manager::write_job;
use carma_format::printable;

/// A panel over the lists.
#[derive(Debug)]
pub(crate) enum Panel {
    /// Key bindings.
    Help,
    /// Details of a job.
    Job(TextPanel),
    /// The output of a job.
    Log(LogPanel),
}

/// A text about a job.
#[derive(Debug)]
pub(crate) struct TextPanel {
    pub(crate) name: JobName,
    pub(crate) lines: Vec<String>,
    /// Rows above the screen.
    pub(crate) above: usize,
}

impl TextPanel {
    /// The lines, wrapped to this many columns.
    pub(crate) fn wrapped(&self, columns: usize) -> Vec<String> {
        self.lines.iter().flat_map(|line| wrapped(line, columns)).collect()
    }
}

/// The end of a log.
#[derive(Debug)]
pub(crate) struct LogPanel {
    pub(crate) name: JobName,
    pub(crate) stream: LogStream,
    pub(crate) lines: Vec<String>,
    /// Lines below the screen; none: it follows as the log grows.
    pub(crate) below: usize,
    /// Why there is no new data.
    pub(crate) problem: Option<String>,
}

impl LogPanel {
    /// Sets the present end of the log. A view that is scrolled back stays.
    pub(super) fn take(&mut self, log: Result<Vec<u8>, String>, rows: usize) {
        match log {
            Ok(bytes) => {
                if self.below == 0 || self.lines.len() <= rows {
                    self.lines = plain_lines(&bytes);
                }
                self.problem = None;
            }
            Err(why) => self.problem = Some(why),
        }
    }
}

/// Details of a job, as lines: first why it waits, if it does.
pub(super) fn job_lines(job: &JobDetail, why: Option<&Why>, now: UnixMillis) -> Vec<String> {
    let mut lines: Vec<String> = why.iter().flat_map(|why| why.text.lines().map(printable)).collect();
    if !lines.is_empty() {
        lines.push(String::new());
    }
    let mut text = Vec::new();
    // Writing to memory does not fail.
    let _ = write_job(job, now, &TimeZone::system(), &mut text);
    lines.extend(String::from_utf8_lossy(&text).lines().map(str::to_owned));
    lines
}

impl Panel {
    /// Scrolls down by this many rows, if possible.
    pub(super) fn scroll(&mut self, by: isize, columns: usize, rows: usize) {
        match self {
            Self::Help => {}
            Self::Job(panel) => {
                let last = panel.wrapped(columns).len().saturating_sub(rows);
                panel.above = panel.above.saturating_add_signed(by).min(last);
            }
            Self::Log(panel) => {
                panel.below = panel.below.saturating_add_signed(by.saturating_neg()).min(panel.lines.len().saturating_sub(rows));
            }
        }
    }
}
