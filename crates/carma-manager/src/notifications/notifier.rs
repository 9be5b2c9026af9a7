//! The notifier's thread: it reads new events, groups them, has messages sent, and records what was sent.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{JobId, Seconds};

use super::describe::describe;
use super::message::Message;
use super::outbox::{Batch, Outbox, RateLimit};
use super::sender::MessageSender;
use super::test_messages::{Reply, TestMessages};
use crate::api::{Notification, Problem};
use crate::configuration::NotificationConfig;
use crate::event::JobEvent;
use crate::request::Owner;
use crate::store::{Change, NewEvent, Reader, Store, StoreError, StoredEvent, StoredNotification, UnixMillis};
use crate::supervise::LaunchServer;

/// Events that are older than this when the manager starts are not sent any more.
const MAX_AGE: Duration = Duration::from_secs(3600);
/// Events per read.
const PAGE: u32 = 500;
/// The wait before a failed read of the store is tried again.
const READ_RETRY: Duration = Duration::from_secs(5);
/// The wait for messages in flight when the manager ends.
const GRACE: Duration = Duration::from_secs(5);
/// The progress is recorded after this many events, even if no message was sent.
const CHECKPOINT_EVERY: u64 = 10_000;

/// The manager's wall clock.
pub(super) type Clock = Box<dyn Fn() -> UnixMillis + Send>;

/// A command to the thread.
pub(super) enum Command {
    /// The engine has started, with this clock.
    Begin(Clock),
    /// New events are committed.
    NewEvents,
    /// Subscriptions have changed.
    Reload,
    /// Send a test message over all channels of a user.
    Test(Owner, Reply),
    /// A message was sent, or could not be.
    Sent(Batch, Result<(), String>),
    /// End the thread.
    Stop,
}

/// The state of the thread.
pub(super) struct Notifier {
    store: Arc<Store>,
    reader: Reader,
    sender: Arc<MessageSender>,
    /// The folder of the manager's state.
    state: PathBuf,
    server: String,
    outbox: Outbox,
    subscriptions: BTreeMap<u32, Vec<StoredNotification>>,
    /// Subscriptions must be read again.
    changed: bool,
    /// Unset until the engine has started.
    clock: Option<Clock>,
    /// Older events are not sent.
    oldest: UnixMillis,
    /// Events up to this one are handled.
    through: u64,
    /// The progress that was recorded last.
    written: u64,
    test_messages: TestMessages,
    commands: Sender<Command>,
    /// A wake-up is on its way to this thread.
    awake: Arc<AtomicBool>,
}

impl Notifier {
    pub(super) fn new(
        (program, launch_server): (PathBuf, Arc<LaunchServer>),
        state: PathBuf,
        settings: &NotificationConfig,
        (store, reader): (Arc<Store>, Reader),
        commands: Sender<Command>,
        awake: Arc<AtomicBool>,
    ) -> Self {
        let span = |seconds: Seconds| Duration::from_secs_f64(seconds.get());
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Self {
            store,
            reader,
            sender: Arc::new(MessageSender::new(program, launch_server, state.join("notifications"))),
            state,
            server: hostname.trim().to_owned(),
            outbox: Outbox::new(RateLimit { gather: span(settings.gather_seconds), every: span(settings.every_seconds) }),
            subscriptions: BTreeMap::new(),
            changed: false,
            clock: None,
            oldest: UnixMillis(0),
            through: 0,
            written: 0,
            test_messages: TestMessages::default(),
            commands,
            awake,
        }
    }

    /// Runs until the command to stop; then waits a little for messages in flight.
    pub(super) fn run(mut self, arriving: &Receiver<Command>) {
        let mut retry_at = None;
        loop {
            let due = self.outbox.next_due().into_iter().chain(retry_at).min();
            // With nothing due, only a command wakes it.
            let timeout = due.map_or(Duration::from_secs(3600), |due| due.saturating_duration_since(Instant::now()));
            let command = match arriving.recv_timeout(timeout) {
                Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => return self.finish(arriving),
                command => command.ok(),
            };
            let wakes = retry_at.is_some() || matches!(&command, Some(Command::Begin(_) | Command::NewEvents | Command::Reload));
            if let Some(command) = command {
                self.take(command);
            }
            let read = if wakes { self.read_events() } else { Ok(()) };
            retry_at = read.err().map(|error| {
                tracing::error!("cannot read events for notifications: {}", Problem::from(error));
                Instant::now() + READ_RETRY
            });
            self.send_due();
        }
    }

    fn take(&mut self, command: Command) {
        match command {
            Command::Begin(clock) => {
                if self.clock.is_none() {
                    self.oldest = UnixMillis(clock().0.saturating_sub(MAX_AGE.as_millis() as u64));
                }
                (self.clock, self.changed) = (Some(clock), true);
            }
            Command::NewEvents => self.awake.store(false, Ordering::Release),
            Command::Reload => self.changed = true,
            Command::Test(owner, reply) => self.send_test(owner, reply),
            Command::Sent(batch, sent) => self.sent(batch, sent),
            Command::Stop => {}
        }
    }

    /// Reads the subscriptions.
    fn reload(&mut self) -> Result<(), StoreError> {
        let all = self.reader.all_notifications()?;
        // No user wants events from before the first subscription.
        let first = all.iter().map(|subscription| subscription.sent_through).min().unwrap_or(0);
        self.through = self.through.max(self.reader.notified_through()?).max(first);
        self.subscriptions.clear();
        for subscription in all {
            self.subscriptions.entry(subscription.uid).or_default().push(subscription);
        }
        let subscriptions = &self.subscriptions;
        self.outbox.retain(|recipient| {
            subscriptions.get(&recipient.uid).is_some_and(|own| own.iter().any(|subscription| subscription.notification.by == recipient.by))
        });
        self.changed = false;
        Ok(())
    }

    /// Reads the events since the last read.
    fn read_events(&mut self) -> Result<(), StoreError> {
        if self.changed {
            self.reload()?;
        }
        while self.clock.is_some() && !self.subscriptions.is_empty() {
            let page = self.reader.notable_events_after(self.through, PAGE)?;
            for (uid, stored) in &page.events {
                // A job that cannot be read does not stop notifications of others.
                let _ =
                    self.gather(*uid, stored).inspect_err(|error| tracing::warn!(uid, "an event is left out of notifications: {error}"));
            }
            self.through = page.through;
            if page.events.len() < PAGE as usize {
                break;
            }
        }
        if self.through.saturating_sub(self.written) > CHECKPOINT_EVERY {
            self.write(Vec::new());
        }
        Ok(())
    }

    /// Adds an event to the outbox, for every channel over which the job's user wants it.
    fn gather(&mut self, uid: u32, stored: &StoredEvent) -> Result<(), StoreError> {
        let unsent = |subscription: &&StoredNotification| subscription.sent_through < stored.sequence;
        let subscriptions: Vec<Notification> = self
            .subscriptions
            .get(&uid)
            .into_iter()
            .flatten()
            .filter(unsent)
            .map(|subscription| subscription.notification.clone())
            .collect();
        if subscriptions.is_empty() || stored.event.at < self.oldest {
            return Ok(());
        }
        let Some(history) = stored.event.job.map(|job| self.reader.job(job)).transpose()?.flatten() else { return Ok(()) };
        let Some(happened) = describe(&history, stored, &self.state) else { return Ok(()) };
        for Notification { by, .. } in subscriptions.into_iter().filter(|subscription| subscription.on.contains(&happened.occasion)) {
            self.outbox.add(by, &history.job.owner, &self.server, stored.sequence, happened.clone(), Instant::now());
        }
        Ok(())
    }

    /// Sends what is due, each message from its own thread, which waits for its process.
    fn send_due(&mut self) {
        while let Some(batch) = self.outbox.take_due(Instant::now()) {
            let (sender, commands, spare) = (Arc::clone(&self.sender), self.commands.clone(), batch.clone());
            let run = move || {
                let sent = sender.deliver(&batch.owner, &batch.message);
                let _ = commands.send(Command::Sent(batch, sent));
            };
            if let Err(error) = thread::Builder::new().name("message".to_owned()).spawn(run) {
                self.sent(spare, Err(format!("no thread: {error}")));
            }
        }
    }

    /// Records that a message was sent, or finally could not be.
    fn sent(&mut self, batch: Batch, sent: Result<(), String>) {
        let (uid, by, through, now) = (batch.owner.uid, batch.message.by.clone(), batch.last, Instant::now());
        let mut changes = match sent {
            Ok(()) => {
                self.outbox.sent(&batch, now);
                Vec::new()
            }
            Err(reason) => match self.outbox.failed(batch, now) {
                Some(batch) => self.not_sent(&batch, &reason),
                None => return,
            },
        };
        for subscription in self.subscriptions.get_mut(&uid).into_iter().flatten().filter(|subscription| subscription.notification.by == by)
        {
            subscription.sent_through = subscription.sent_through.max(through);
        }
        changes.push(Change::UserNotified { uid, by, through });
        self.write(changes);
    }

    /// Logs a message that could not be sent with its jobs.
    fn not_sent(&self, batch: &Batch, reason: &str) -> Vec<Change> {
        let Some(clock) = &self.clock else { return Vec::new() };
        let (at, text) = (clock(), format!("{}: {reason}", batch.message.by));
        let jobs: BTreeMap<u64, _> = batch.message.happened.iter().map(|happened| (happened.job, happened.array)).collect();
        let note = |(job, array)| NewEvent { at, job: Some(JobId(job)), array, event: JobEvent::NotificationFailed { text: text.clone() } };
        jobs.into_iter().map(|job| Change::EventLogged(note(job))).collect()
    }

    /// Writes changes and the progress. What cannot be written is sent again by the next manager.
    fn write(&mut self, mut changes: Vec<Change>) {
        let through = self.outbox.first().map_or(self.through, |first| self.through.min(first.saturating_sub(1)));
        self.written = through;
        changes.push(Change::NotifiedThrough { through });
        self.store.write_then(changes, |written| {
            let _ = written.inspect_err(|error| tracing::error!("cannot store what was notified: {error}"));
        });
    }

    /// Sends a test message over all channels of a user, at once.
    fn send_test(&self, owner: Owner, reply: Reply) {
        let at = self.clock.as_ref().map_or_else(UnixMillis::now, |clock| clock());
        let message = |subscription: &StoredNotification| Message::sample(subscription.notification.by.clone(), &self.server, at);
        let messages = self.subscriptions.get(&owner.uid).into_iter().flatten().map(message).collect();
        self.test_messages.begin(&self.sender, owner, messages, reply);
    }

    /// Records messages that arrive while the manager ends, so that they are not sent again.
    fn finish(mut self, arriving: &Receiver<Command>) {
        let until = Instant::now() + GRACE;
        while self.outbox.in_flight() > 0 {
            match arriving.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Command::Sent(batch, sent)) => self.sent(batch, sent),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if self.clock.is_some() {
            self.write(Vec::new());
        }
    }
}
