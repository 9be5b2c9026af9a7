//! The notifier's thread: it reads what has happened, gathers it, has it brought, and writes down what was told.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::JobId;

use super::courier::Courier;
use super::message::Message;
use super::news::happened;
use super::outbox::{Letter, Outbox, Rhythm};
use super::trials::{Reply, Trials};
use crate::api::{Notification, Problem};
use crate::configuration::NotificationSettings;
use crate::event::JobEvent;
use crate::request::Owner;
use crate::store::{Change, NewEvent, Reader, Store, StoreError, StoredEvent, StoredNotification, UnixMillis};

/// What happened longer ago than this when the manager begins is not told any more.
const STALE: Duration = Duration::from_secs(3600);
/// Events that are read at once.
const PAGE: u32 = 500;
/// How long until a store that could not be read is read again.
const READ_AGAIN: Duration = Duration::from_secs(5);
/// How long messages that are on their way are waited for when the manager ends.
const GRACE: Duration = Duration::from_secs(5);
/// After so many events it is written down how far we are, though nobody was told of any.
const WRITE_DOWN: u64 = 10_000;

/// What the manager's wall clock shows.
pub(super) type Clock = Box<dyn Fn() -> UnixMillis + Send>;

/// All that reaches the thread.
pub(super) enum Order {
    /// The engine begins, with this clock.
    Begin(Clock),
    /// Something has happened.
    Look,
    /// Somebody has other wishes.
    Reload,
    /// Somebody wants to see whether it works.
    Try(Owner, Reply),
    /// A message has arrived, or has not.
    Brought(Letter, Result<(), String>),
    /// That is all.
    Stop,
}

/// All that the thread has.
pub(super) struct Desk {
    store: Arc<Store>,
    reader: Reader,
    courier: Arc<Courier>,
    /// The folder of the manager's state.
    state: PathBuf,
    server: String,
    outbox: Outbox,
    wishes: BTreeMap<u32, Vec<StoredNotification>>,
    /// Wishes have to be read anew.
    changed: bool,
    /// Unset until the engine begins.
    clock: Option<Clock>,
    /// What happened before is not told any more.
    stale: UnixMillis,
    /// Events up to this one were looked at.
    through: u64,
    /// How far we are, as it was written down last.
    written: u64,
    trials: Trials,
    orders: Sender<Order>,
    /// Whether it is known already that something has happened.
    awake: Arc<AtomicBool>,
}

impl Desk {
    pub(super) fn new(
        program: PathBuf,
        state: PathBuf,
        settings: &NotificationSettings,
        store: &Arc<Store>,
        orders: Sender<Order>,
        awake: Arc<AtomicBool>,
    ) -> Result<Self, StoreError> {
        let span = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
        Ok(Self {
            reader: store.reader()?,
            store: Arc::clone(store),
            courier: Arc::new(Courier::new(program, state.join("notifications"))),
            state,
            server: hostname.trim().to_owned(),
            outbox: Outbox::new(Rhythm { gather: span(settings.gather_seconds), every: span(settings.every_seconds) }),
            wishes: BTreeMap::new(),
            changed: false,
            clock: None,
            stale: UnixMillis(0),
            through: 0,
            written: 0,
            trials: Trials::default(),
            orders,
            awake,
        })
    }

    /// Tells until it is told to stop; then waits a little for what is on its way.
    pub(super) fn run(mut self, arriving: &Receiver<Order>) {
        let mut read_again = None;
        loop {
            let due = self.outbox.next_due().into_iter().chain(read_again).min();
            // Without anything to wait for, somebody has to say something.
            let patience = due.map_or(Duration::from_secs(3600), |due| due.saturating_duration_since(Instant::now()));
            let order = match arriving.recv_timeout(patience) {
                Ok(Order::Stop) | Err(RecvTimeoutError::Disconnected) => return self.finish(arriving),
                order => order.ok(),
            };
            let news = read_again.is_some() || matches!(&order, Some(Order::Begin(_) | Order::Look | Order::Reload));
            if let Some(order) = order {
                self.take(order);
            }
            let looked = if news { self.look() } else { Ok(()) };
            read_again = looked.err().map(|error| {
                eprintln!("carma: what users are to be told cannot be read: {}", Problem::from(error));
                Instant::now() + READ_AGAIN
            });
            self.send_due();
        }
    }

    fn take(&mut self, order: Order) {
        match order {
            Order::Begin(clock) => {
                if self.clock.is_none() {
                    self.stale = UnixMillis(clock().0.saturating_sub(STALE.as_millis() as u64));
                }
                (self.clock, self.changed) = (Some(clock), true);
            }
            Order::Look => self.awake.store(false, Ordering::Release),
            Order::Reload => self.changed = true,
            Order::Try(owner, reply) => self.try_out(owner, reply),
            Order::Brought(letter, brought) => self.brought(letter, brought),
            Order::Stop => {}
        }
    }

    /// Reads who wants to be told what.
    fn reload(&mut self) -> Result<(), StoreError> {
        let all = self.reader.all_notifications()?;
        // Of what was before the first wish, nobody is told.
        let first = all.iter().map(|wish| wish.told).min().unwrap_or(0);
        self.through = self.through.max(self.reader.told()?).max(first);
        self.wishes.clear();
        for wish in all {
            self.wishes.entry(wish.uid).or_default().push(wish);
        }
        let wishes = &self.wishes;
        self.outbox.retain(|way| wishes.get(&way.uid).is_some_and(|own| own.iter().any(|wish| wish.notification.by == way.by)));
        self.changed = false;
        Ok(())
    }

    /// Reads what has happened since the last look.
    fn look(&mut self) -> Result<(), StoreError> {
        if self.changed {
            self.reload()?;
        }
        while self.clock.is_some() && !self.wishes.is_empty() {
            let news = self.reader.news_after(self.through, PAGE)?;
            for (uid, stored) in &news.events {
                // One job that cannot be read keeps nothing of others from their users.
                let _ = self.gather(*uid, stored).inspect_err(|error| eprintln!("carma: a user is not told of what happened: {error}"));
            }
            self.through = news.through;
            if news.events.len() < PAGE as usize {
                break;
            }
        }
        if self.through.saturating_sub(self.written) > WRITE_DOWN {
            self.write(Vec::new());
        }
        Ok(())
    }

    /// Puts what happened to a job into the outbox, for every way by which its user wants to be told.
    fn gather(&mut self, uid: u32, stored: &StoredEvent) -> Result<(), StoreError> {
        let untold = |wish: &&StoredNotification| wish.told < stored.sequence;
        let wishes: Vec<Notification> =
            self.wishes.get(&uid).into_iter().flatten().filter(untold).map(|wish| wish.notification.clone()).collect();
        if wishes.is_empty() || stored.event.at < self.stale {
            return Ok(());
        }
        let Some(history) = stored.event.job.map(|job| self.reader.job(job)).transpose()?.flatten() else { return Ok(()) };
        let Some(happened) = happened(&history, stored, &self.state) else { return Ok(()) };
        for Notification { by, .. } in wishes.into_iter().filter(|wish| wish.on.contains(&happened.occasion)) {
            self.outbox.add(by, &history.job.owner, &self.server, stored.sequence, happened.clone(), Instant::now());
        }
        Ok(())
    }

    /// Sends what is due, each message from a thread of its own, which waits for its process.
    fn send_due(&mut self) {
        while let Some(letter) = self.outbox.take_due(Instant::now()) {
            let (courier, orders, spare) = (Arc::clone(&self.courier), self.orders.clone(), letter.clone());
            let run = move || {
                let brought = courier.deliver(&letter.owner, &letter.message);
                let _ = orders.send(Order::Brought(letter, brought));
            };
            if let Err(error) = thread::Builder::new().name("message".to_owned()).spawn(run) {
                self.brought(spare, Err(format!("no thread: {error}")));
            }
        }
    }

    /// Writes down that a user was told, or finally could not be.
    fn brought(&mut self, letter: Letter, brought: Result<(), String>) {
        let (uid, by, through, now) = (letter.owner.uid, letter.message.by.clone(), letter.last, Instant::now());
        let mut changes = match brought {
            Ok(()) => {
                self.outbox.sent(&letter, now);
                Vec::new()
            }
            Err(reason) => match self.outbox.failed(letter, now) {
                Some(letter) => self.not_told(&letter, &reason),
                None => return,
            },
        };
        for wish in self.wishes.get_mut(&uid).into_iter().flatten().filter(|wish| wish.notification.by == by) {
            wish.told = wish.told.max(through);
        }
        changes.push(Change::UserTold { uid, by, through });
        self.write(changes);
    }

    /// What could not be told is noted with the jobs it was about.
    fn not_told(&self, letter: &Letter, reason: &str) -> Vec<Change> {
        let Some(clock) = &self.clock else { return Vec::new() };
        let (at, text) = (clock(), format!("{}: {reason}", letter.message.by));
        let jobs: BTreeSet<u64> = letter.message.happened.iter().map(|happened| happened.job).collect();
        let note = |job| NewEvent { at, job: Some(JobId(job)), event: JobEvent::NotTold { text: text.clone() } };
        jobs.into_iter().map(|job| Change::EventLogged(note(job))).collect()
    }

    /// Writes changes, and how far we are. What cannot be written is told again by the next manager.
    fn write(&mut self, mut changes: Vec<Change>) {
        let through = self.outbox.first().map_or(self.through, |first| self.through.min(first.saturating_sub(1)));
        self.written = through;
        changes.push(Change::AllTold { through });
        self.store.write_then(changes, |written| {
            let _ = written.inspect_err(|error| eprintln!("carma: that users were told is not written down: {error}"));
        });
    }

    /// Has something made up told by all ways of a user, at once.
    fn try_out(&self, owner: Owner, reply: Reply) {
        let at = self.clock.as_ref().map_or_else(UnixMillis::now, |clock| clock());
        let message = |wish: &StoredNotification| Message::sample(wish.notification.by.clone(), &self.server, at);
        let messages = self.wishes.get(&owner.uid).into_iter().flatten().map(message).collect();
        self.trials.begin(&self.courier, owner, messages, reply);
    }

    /// What has arrived when the manager ends is not told again.
    fn finish(mut self, arriving: &Receiver<Order>) {
        let until = Instant::now() + GRACE;
        while self.outbox.under_way() > 0 {
            match arriving.recv_timeout(until.saturating_duration_since(Instant::now())) {
                Ok(Order::Brought(letter, brought)) => self.brought(letter, brought),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        if self.clock.is_some() {
            self.write(Vec::new());
        }
    }
}
