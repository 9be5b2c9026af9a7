//! The state of the view: the data and the selection. Only messages change it; each returns the requests that follow.

mod actions;
mod events;
mod filter;
mod jobs;
mod keys;
mod marks;
mod messages;
mod panel;
mod recent;

pub(super) use events::{EventList, Severity};
pub(super) use jobs::{JobList, Sort};
pub(super) use marks::Mark;
pub(super) use messages::{Answers, ExitReason, JobName, Message, Request, Size, Subject};
pub(super) use panel::Panel;

use std::time::Duration;

use carma_core::JobId;
use carma_manager::api::{JobAction, JobDetail, Why};

use self::marks::Marks;
use self::recent::Recent;
use crate::manager::identity;

/// A manager without any answer for this long is shown as silent.
const SILENCE: Duration = Duration::from_secs(5);
/// How long the result of an action is shown.
const NOTICE: Duration = Duration::from_secs(8);

/// A part of the screen that takes keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pane {
    Gpus,
    Jobs,
    Events,
}

impl Pane {
    /// The next list for Tab.
    const fn next(self) -> Self {
        match self {
            Self::Gpus => Self::Jobs,
            Self::Jobs => Self::Events,
            Self::Events => Self::Gpus,
        }
    }
}

/// A prompt that takes keys first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// The text of the filter is typed.
    Filter,
    /// An act waits for a yes.
    Confirm { name: JobName, question: String, act: JobAction },
}

/// The model.
#[derive(Debug)]
pub(crate) struct Model {
    /// Address of the manager.
    pub(super) address: String,
    pub(super) answers: Option<Box<Answers>>,
    pub(super) recent: Recent,
    pub(super) jobs: JobList,
    pub(super) events: EventList,
    pub(super) marks: Marks,
    pub(super) focus: Pane,
    /// The selected GPU, by index.
    pub(super) gpu: usize,
    pub(super) panel: Option<Panel>,
    pub(super) prompt: Option<Prompt>,
    /// When the manager did not answer last, and why.
    absence: Option<(Duration, String)>,
    notice: Option<(Duration, String)>,
    /// When the manager answered last.
    last_answer: Duration,
    now: Duration,
    size: Size,
}

impl Model {
    /// An empty model of the manager at this address.
    pub(crate) fn new(address: String, size: Size) -> Self {
        Self {
            address,
            answers: None,
            recent: Recent::default(),
            jobs: JobList::default(),
            events: EventList::default(),
            marks: Marks::default(),
            focus: Pane::Jobs,
            gpu: 0,
            panel: None,
            prompt: None,
            absence: None,
            notice: None,
            last_answer: Duration::ZERO,
            now: Duration::ZERO,
            size,
        }
    }

    /// Handles a message that came this long after the start, and returns requests.
    pub(crate) fn update(&mut self, message: Message, now: Duration) -> Vec<Request> {
        self.now = now;
        match message {
            Message::Key(key) => return self.press(key),
            Message::Resized(size) => self.size = size,
            Message::Answers(answers) => self.take_answers(answers),
            Message::Away(why) => self.absence = Some((now, why)),
            Message::Event(event) => self.events.take(event),
            Message::Detail(name, detail) => self.show_detail(&name, detail),
            Message::Log(name, log) => {
                let rows = self.panel_rows();
                if let Some(Panel::Log(panel)) = &mut self.panel
                    && panel.name == name
                {
                    panel.take(log, rows);
                }
            }
            Message::ActionText(text) => self.notify(text),
            Message::Leave(departure) => return vec![Request::Leave(departure)],
            Message::Tick => {}
        }
        Vec::new()
    }

    fn take_answers(&mut self, mut answers: Box<Answers>) {
        // The previous notice is about an absence that is over.
        if let Some((away, _)) = self.absence.take() {
            self.notice.take_if(|(shown_at, _)| *shown_at <= away);
        }
        self.last_answer = self.now;
        self.recent.take(std::mem::take(&mut answers.samples));
        self.marks.follow(answers.gpus.iter().flat_map(|gpu| &gpu.tenants).map(|tenant| tenant.attempt.job));
        self.jobs.take(std::mem::take(&mut answers.queue), answers.me.uid);
        self.gpu = self.gpu.min(answers.gpus.len().saturating_sub(1));
        self.answers = Some(answers);
    }

    fn show_detail(&mut self, name: &str, detail: Result<(Box<JobDetail>, Option<Box<Why>>), String>) {
        let Some(now) = self.answers.as_ref().map(|answers| answers.status.now) else { return };
        if let Some(Panel::Job(panel)) = &mut self.panel
            && panel.name == name
        {
            panel.lines = match detail {
                Ok((job, why)) => panel::job_lines(&job, why.as_deref(), now),
                Err(why) => vec![why],
            };
        }
    }

    /// Shows a notice for a while.
    fn notify(&mut self, text: String) {
        self.notice = Some((self.now, text));
    }

    /// The result of the last action, while it is recent.
    pub(super) fn notice(&self) -> Option<&str> {
        self.notice.as_ref().filter(|(shown_at, _)| self.now < *shown_at + NOTICE).map(|(_, text)| text.as_str())
    }

    /// Why the shown data may be old, if so.
    pub(super) fn absence(&self) -> Option<String> {
        let silent = self.now.saturating_sub(self.last_answer);
        match &self.absence {
            Some((_, why)) => Some(format!("{why}; trying again")),
            None if silent > SILENCE => Some(format!("the manager has not answered for {} s", silent.as_secs())),
            None => None,
        }
    }

    /// Whether we may act on a job of this user.
    pub(super) fn may_change(&self, uid: u32) -> bool {
        self.answers.as_ref().is_some_and(|answers| answers.me.operator || answers.me.uid == uid)
    }

    /// The name of a job: its place in an array, if known.
    pub(super) fn name_of(&self, job: JobId) -> JobName {
        self.jobs.named(job).map_or_else(|| job.0.to_string(), |row| identity(row.id, row.array))
    }

    /// Rows of a panel's text: all but the head, its title and the keys.
    pub(super) fn panel_rows(&self) -> usize {
        usize::from(self.size.rows.saturating_sub(3)).max(1)
    }
}
