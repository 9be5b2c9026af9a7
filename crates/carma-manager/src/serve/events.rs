//! Server-sent events: updates, and stored events. A replay of the history may be long, so it is read and written page by page, in turns with the
//! requests of other users.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use carma_core::JobId;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use super::caller::Caller;
use super::concurrency_limit::Permit;
use super::privacy::{Redact, View};
use crate::api::{Problem, ProblemKind, TimedUpdate, Update};
use crate::store::{Reader, StoredEvent, UnixMillis};

/// Events that wait for a client.
const BUFFERED: usize = 256;
/// A client that takes nothing for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Stored events per read.
const PAGE: u32 = 500;
/// The shortest time between two reads of stored events, unless there are more of them. Updates come in bursts.
const READ_INTERVAL: Duration = Duration::from_millis(50);
/// Maximum number of jobs with a cached owner.
const MAX_REMEMBERED: usize = 10_000;

/// Events on their way to a client.
type Events = mpsc::Sender<Result<Event, Infallible>>;

impl Shared {
    /// Updates from now on; with a number, also the stored events after it.
    pub(super) async fn events(
        self: &Arc<Self>,
        caller: Caller,
        after: Option<u64>,
    ) -> Result<ReceiverStream<Result<Event, Infallible>>, Problem> {
        let permit = self.streams.take(caller.uid).await?;
        let (events, stream) = mpsc::channel(BUFFERED);
        let client = EventStream { shared: Arc::clone(self), caller, owners: HashMap::new(), events, _permit: permit };
        // Subscribed before the replay, so that no update is missed.
        let updates = self.handle.updates();
        tokio::spawn(async move {
            // The client is gone or too slow, or the manager ends. The client connects again.
            let _ = client.run(updates, after).await;
        });
        Ok(ReceiverStream::new(stream))
    }
}

/// A client that receives events.
struct EventStream {
    shared: Arc<Shared>,
    caller: Caller,
    owners: HashMap<JobId, u32>,
    events: Events,
    _permit: Permit,
}

/// The receiver of events, and the owners of the jobs in them.
struct Viewer {
    caller: Caller,
    owners: HashMap<JobId, u32>,
}

/// A page of stored events, written for a client.
struct Page {
    events: Vec<Event>,
    /// The number of the last one.
    last: Option<u64>,
    owners: HashMap<JobId, u32>,
}

/// The client is gone.
struct StreamEnded;

impl From<Problem> for StreamEnded {
    fn from(_: Problem) -> Self {
        Self
    }
}

impl EventStream {
    async fn run(
        mut self,
        mut updates: tokio::sync::broadcast::Receiver<(UnixMillis, Update)>,
        after: Option<u64>,
    ) -> Result<(), StreamEnded> {
        let mut last = after;
        loop {
            if let Some(sequence) = &mut last {
                self.replay(sequence).await?;
            }
            let next_read = Instant::now() + READ_INTERVAL;
            let (at, update) = tokio::select! {
                // A client that missed updates must connect again.
                update = updates.recv() => update.map_err(|_| StreamEnded)?,
                () = self.events.closed() => return Err(StreamEnded),
            };
            self.send(self.updated(at, update)?).await?;
            // One read for all updates that come at once, however many.
            while Instant::now() < next_read
                && let Ok(next) = timeout_at(next_read, updates.recv()).await
            {
                let (at, update) = next.map_err(|_| StreamEnded)?;
                self.send(self.updated(at, update)?).await?;
            }
        }
    }

    /// Sends all stored events after a number, and updates the number.
    async fn replay(&mut self, sequence: &mut u64) -> Result<(), StreamEnded> {
        loop {
            let viewer = Viewer { caller: self.caller.clone(), owners: std::mem::take(&mut self.owners) };
            let after = *sequence;
            let page = self.shared.readers.read(self.caller.uid, move |reader| viewer.page(reader, after)).await?;
            self.owners = page.owners;
            for event in page.events {
                self.send(event).await?;
            }
            match page.last {
                Some(last) => *sequence = last,
                None => return Ok(()),
            }
        }
    }

    fn updated(&self, at: UnixMillis, update: Update) -> Result<Event, StreamEnded> {
        let (name, view) = match &update {
            Update::Job { uid, .. } => ("job", self.caller.view(*uid)),
            Update::Gpus => ("gpus", View::Own),
            Update::Machine { .. } => ("machine", View::Own),
        };
        Event::default().event(name).json_data(TimedUpdate { at, update: update.visible_to(view) }).map_err(|_| StreamEnded)
    }

    async fn send(&self, event: Event) -> Result<(), StreamEnded> {
        timeout(SEND_TIMEOUT, self.events.send(Ok(event))).await.map_err(|_| StreamEnded)?.map_err(|_| StreamEnded)
    }
}

impl Viewer {
    /// Stored events after a number. On a thread that may block.
    fn page(mut self, reader: &Reader, after: u64) -> Result<Page, Problem> {
        let stored = reader.events_after(after, PAGE)?;
        let last = stored.last().map(|latest| latest.sequence);
        self.learn_owners(reader, &stored)?;
        let events = stored.into_iter().map(|stored| self.kept(stored)).collect::<Result<_, _>>()?;
        Ok(Page { events, last, owners: self.owners })
    }

    fn kept(&self, stored: StoredEvent) -> Result<Event, Problem> {
        let owner = stored.event.job.map(|job| self.owners.get(&job));
        // Events without a job are for all users; a forgotten job belongs to another user.
        let view = owner.map_or(View::Own, |owner| owner.map_or(self.caller.view(u32::MAX), |uid| self.caller.view(*uid)));
        let stored = stored.visible_to(view);
        let event = Event::default().id(stored.sequence.to_string()).event("kept").json_data(&stored);
        event.map_err(|error| ProblemKind::Internal.because(error.to_string()))
    }

    fn learn_owners(&mut self, reader: &Reader, page: &[StoredEvent]) -> Result<(), Problem> {
        if self.owners.len() > MAX_REMEMBERED {
            self.owners.clear();
        }
        for job in page.iter().filter_map(|stored| stored.event.job) {
            if let Entry::Vacant(unknown) = self.owners.entry(job)
                && let Some(owner) = reader.owner(job)?
            {
                unknown.insert(owner.0);
            }
        }
        Ok(())
    }
}
