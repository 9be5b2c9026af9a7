//! Server-sent events: updates, and stored events.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::Event;
use carma_core::JobId;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_stream::wrappers::ReceiverStream;

use super::Shared;
use super::caller::Caller;
use super::privacy::{Redact, View};
use crate::api::{Problem, TimedUpdate, Update};
use crate::store::{StoredEvent, UnixMillis};

/// Events that wait for a client.
const BUFFERED: usize = 256;
/// A client that takes nothing for this long is disconnected.
const SEND_TIMEOUT: Duration = Duration::from_secs(30);
/// Stored events per read.
const PAGE: u32 = 500;
/// Maximum number of jobs with a cached owner.
const MAX_REMEMBERED: usize = 10_000;

/// Events on their way to a client.
type Events = mpsc::Sender<Result<Event, Infallible>>;

impl Shared {
    /// Updates from now on; with a number, also the stored events after it.
    pub(super) fn events(self: &Arc<Self>, caller: Caller, after: Option<u64>) -> ReceiverStream<Result<Event, Infallible>> {
        let (events, stream) = mpsc::channel(BUFFERED);
        let client = EventStream { shared: Arc::clone(self), caller, owners: HashMap::new(), events };
        // Subscribed before the replay, so that no update is missed.
        let updates = self.handle.updates();
        tokio::spawn(async move {
            // The client is gone or too slow, or the manager ends. The client connects again.
            let _ = client.run(updates, after).await;
        });
        ReceiverStream::new(stream)
    }
}

/// A client that receives events.
struct EventStream {
    shared: Arc<Shared>,
    caller: Caller,
    owners: HashMap<JobId, u32>,
    events: Events,
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
            let (at, update) = tokio::select! {
                // A client that missed updates must connect again.
                update = updates.recv() => update.map_err(|_| StreamEnded)?,
                () = self.events.closed() => return Err(StreamEnded),
            };
            self.send(self.updated(at, update)?).await?;
        }
    }

    /// Sends all stored events after a number, and updates the number.
    async fn replay(&mut self, sequence: &mut u64) -> Result<(), StreamEnded> {
        loop {
            let after = *sequence;
            let page = self.shared.readers.read(move |reader| Ok(reader.events_after(after, PAGE)?)).await?;
            let Some(latest) = page.last() else { return Ok(()) };
            *sequence = latest.sequence;
            self.learn_owners(&page).await?;
            for stored in page {
                self.send(self.kept(stored)?).await?;
            }
        }
    }

    fn kept(&self, stored: StoredEvent) -> Result<Event, StreamEnded> {
        let owner = stored.event.job.map(|job| self.owners.get(&job));
        // Events without a job are for all users; a forgotten job belongs to another user.
        let view = owner.map_or(View::Own, |owner| owner.map_or(self.caller.view(u32::MAX), |uid| self.caller.view(*uid)));
        let stored = stored.visible_to(view);
        Event::default().id(stored.sequence.to_string()).event("kept").json_data(&stored).map_err(|_| StreamEnded)
    }

    fn updated(&self, at: UnixMillis, update: Update) -> Result<Event, StreamEnded> {
        let (name, view) = match &update {
            Update::Job { uid, .. } => ("job", self.caller.view(*uid)),
            Update::Gpus => ("gpus", View::Own),
            Update::Machine { .. } => ("machine", View::Own),
        };
        Event::default().event(name).json_data(TimedUpdate { at, update: update.visible_to(view) }).map_err(|_| StreamEnded)
    }

    async fn learn_owners(&mut self, page: &[StoredEvent]) -> Result<(), StreamEnded> {
        if self.owners.len() > MAX_REMEMBERED {
            self.owners.clear();
        }
        let unknown: Vec<JobId> = page.iter().filter_map(|stored| stored.event.job).filter(|job| !self.owners.contains_key(job)).collect();
        if unknown.is_empty() {
            return Ok(());
        }
        let read = self.shared.readers.read(move |reader| {
            let mut owners = HashMap::new();
            for job in unknown {
                if let Some(known) = reader.summary(job)? {
                    owners.insert(job, known.user.0);
                }
            }
            Ok(owners)
        });
        self.owners.extend(read.await?);
        Ok(())
    }

    async fn send(&self, event: Event) -> Result<(), StreamEnded> {
        timeout(SEND_TIMEOUT, self.events.send(Ok(event))).await.map_err(|_| StreamEnded)?.map_err(|_| StreamEnded)
    }
}
