//! Queries the manager once a second, acts on jobs, and listens to events. Retries while the manager is away.

use std::io::Read;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::JobId;
use carma_manager::api::{ActionResult, HistoryQuery, JobAction, LogQuery, Me, QueueQuery, RecentQuery};
use carma_manager::client::{Client, ClientError};
use carma_manager::store::{StoredEvent, UnixMillis};

use super::model::{Answers, Message, Request, Subject};
use crate::manager::past_participle;
use carma_format::printable;

/// Between rounds of questions.
const ROUND: Duration = Duration::from_secs(1);
/// Jobs of each kind that are listed: an answer has 1,000 at most.
pub(super) const MOST_JOBS: u32 = 333;
/// Lines of a log that can be scrolled through.
const LOG_LINES: u32 = 2000;
/// Events of before that are shown.
const PAST_EVENTS: u64 = 200;

/// The thread that queries the manager.
pub(super) struct Poller {
    client: Client,
    messages: Sender<Message>,
    /// The current user; unset: not queried yet.
    me: Option<Me>,
    /// The latest known GPU sample.
    last_sample: Option<UnixMillis>,
    subject: Subject,
}

/// The receiver is gone.
struct Closed;

impl Poller {
    pub(super) const fn new(client: Client, messages: Sender<Message>) -> Self {
        Self { client, messages, me: None, last_sample: None, subject: Subject::Nothing }
    }

    /// Polls the manager and carries out orders until the view is closed.
    pub(super) fn run(mut self, requests: &Receiver<Request>) {
        let mut next = Instant::now();
        loop {
            let done = match requests.recv_timeout(next.saturating_duration_since(Instant::now())) {
                Ok(Request::Act(name, act)) => self.act(&name, &act).and_then(|()| self.poll()),
                Ok(Request::Show(subject)) => {
                    self.subject = subject;
                    self.poll_detail()
                }
                Err(RecvTimeoutError::Timeout) => {
                    next = Instant::now() + ROUND;
                    self.poll()
                }
                Ok(Request::Leave(_) | Request::Suspend) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if done.is_err() {
                return;
            }
        }
    }

    fn send(&self, message: Message) -> Result<(), Closed> {
        self.messages.send(message).map_err(|_| Closed)
    }

    fn poll(&mut self) -> Result<(), Closed> {
        match self.round() {
            Ok(answers) => self.send(Message::Answers(Box::new(answers)))?,
            Err(error) => {
                // Another manager may give us other rights.
                self.me = None;
                return self.send(Message::Away(printable(&error.to_string())));
            }
        }
        self.poll_detail()
    }

    fn round(&mut self) -> Result<Answers, ClientError> {
        let client = &mut self.client;
        let me = match self.me.take() {
            Some(me) => me,
            None => client.me()?,
        };
        self.me = Some(me.clone());
        let status = client.status()?;
        let gpus = client.gpus()?;
        let pools = if status.pools > 0 { client.pools()? } else { Vec::new() };
        let queue = client.queue(&QueueQuery { each: Some(MOST_JOBS), ..QueueQuery::default() })?;
        // First all kept samples, then the new ones. If the clock was set back, we must not wait for the old time.
        let since = self.last_sample.map(|last_sample| last_sample.min(status.now));
        let samples = client.recent(&RecentQuery { since, ..RecentQuery::default() })?;
        self.last_sample = samples.iter().filter_map(|samples| samples.at.last()).max().copied().or(self.last_sample);
        Ok(Answers { status, me, gpus, queue, pools, samples })
    }

    fn poll_detail(&mut self) -> Result<(), Closed> {
        let text = |error: ClientError| printable(&error.to_string());
        let client = &mut self.client;
        let message = match &self.subject {
            Subject::Nothing => return Ok(()),
            Subject::Job(name) => {
                let detail = client.job(name).map_err(text).map(|job| {
                    // A job that no longer waits is not an error.
                    let why = job.state.waiting().and_then(|_| client.why(name).ok()).map(Box::new);
                    (Box::new(job), why)
                });
                Message::Detail(name.clone(), detail)
            }
            Subject::Log(name, stream) => {
                let query = LogQuery { stream: *stream, lines: Some(LOG_LINES), ..LogQuery::default() };
                let mut bytes = Vec::new();
                let read = client.logs(name, query).map_err(text);
                let read =
                    read.and_then(|mut log| log.read_to_end(&mut bytes).map_err(|error| format!("the log was interrupted: {error}")));
                Message::Log(name.clone(), read.map(|_| bytes))
            }
        };
        self.send(message)
    }

    fn act(&mut self, name: &str, act: &JobAction) -> Result<(), Closed> {
        let result = match self.client.act(name, act) {
            Ok(ActionResult { not_done, .. }) => match not_done.first() {
                Some(not_done) => format!("job {name} is not {}: {}", past_participle(act), not_done.reason),
                None => format!("job {name} is {}", past_participle(act)),
            },
            Err(error) => error.to_string(),
        };
        self.send(Message::ActionText(printable(&result)))
    }
}

/// Streams events, after some earlier ones, until the view is closed.
pub(super) fn listen(client: &mut Client, messages: &Sender<Message>) {
    let mut last = None;
    loop {
        // The poller reports a manager that is away.
        let after = last.map_or_else(|| beginning(client), Ok);
        if let Ok(after) = after {
            for event in client.events(Some(after)).into_iter().flatten().map_while(Result::ok) {
                let Ok(event) = serde_json::from_str::<StoredEvent>(&event.data) else { continue };
                last = Some(event.sequence);
                if messages.send(Message::Event(event)).is_err() {
                    return;
                }
            }
        }
        thread::sleep(ROUND);
    }
}

/// The number of an event not long ago, by the last one of the last job.
pub(super) fn beginning(client: &mut Client) -> Result<u64, ClientError> {
    let latest = client.history(&HistoryQuery { limit: Some(1), ..HistoryQuery::default() })?;
    let Some(JobId(number)) = latest.first().map(|job| job.id) else { return Ok(0) };
    let last = client.job(&number.to_string())?.events.last().map_or(0, |event| event.sequence);
    Ok(last.saturating_sub(PAST_EVENTS))
}
