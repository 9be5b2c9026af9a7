//! Predicted starts and ends of jobs.
//!
//! ```text
//!  engine: a copy of the core's front ─► thread: runs it ahead some dozen times, with lengths drawn from what is known ─► engine: intervals
//!  Tracks: progress, time alone   ─┐
//!  Lengths of earlier runs        ─┴─► Known: how long a job still takes
//! ```
//!
//! The engine's thread makes a copy of at most [`WAITING`] waiting jobs and never waits. The other thread has one round at a time. It takes at most a
//! tenth of a core while jobs come and go, and at most a fiftieth while only progress changes.

mod arrivals;
mod lengths;
mod range;
mod rounds;
mod tracks;

use std::collections::HashMap;
use std::io;
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use carma_core::{AttemptId, Fraction, Job, JobId, Seconds};

use self::arrivals::Submissions;
use self::lengths::Known;
use self::rounds::Round;
use self::tracks::Tracks;
use super::decide::Decisions;
use super::estimates::Lengths;
pub(crate) use range::{JobPrediction, Range};
pub(crate) use rounds::Predicted;

/// Waiting jobs that are simulated: the first of the queue.
pub(crate) const WAITING: usize = 200;
/// Time between two rounds if nothing has changed: at least and at most. Progress changes all the time.
const UNCHANGED_PERIOD: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(20)];
/// Within this range, it is this many times the length of a round.
const UNCHANGED_PAUSE: u32 = 1_000;
/// Time between two readings of the progress of jobs.
const FOLLOW_PERIOD: Duration = Duration::from_millis(200);
/// The shortest time between two rounds.
const LEAST_PERIOD: Duration = Duration::from_millis(100);
/// A round is followed by a pause of this many times its length.
const PAUSE: u32 = 9;

/// The latest predictions, and the thread that makes them. It ends when this is dropped.
#[derive(Debug)]
pub(crate) struct Predictions {
    tracks: Tracks,
    submissions: Submissions,
    rounds: Sender<Round>,
    latest: HashMap<JobId, JobPrediction>,
    /// The round that was ordered last was about this state of the core.
    changes: u64,
    is_busy: bool,
    next: Instant,
    next_unchanged: Instant,
    next_follow: Instant,
}

impl Predictions {
    /// Starts the thread.
    pub(crate) fn start(done: impl Fn(Predicted) -> bool + Send + 'static) -> io::Result<Self> {
        let (rounds, orders) = channel::<Round>();
        let run = move || {
            for round in orders {
                if !done(round.look_ahead()) {
                    return;
                }
            }
        };
        thread::Builder::new().name("predictions".to_owned()).spawn(run)?;
        let now = Instant::now();
        let latest = HashMap::new();
        let (tracks, submissions) = (Tracks::default(), Submissions::default());
        Ok(Self { tracks, submissions, rounds, latest, changes: 0, is_busy: false, next: now, next_unchanged: now, next_follow: now })
    }

    /// Forgets what was predicted: the core begins again.
    pub(crate) fn clear(&mut self) {
        self.latest.clear();
        self.tracks = Tracks::default();
    }

    /// Sees how far the running jobs are.
    pub(crate) fn follow(&mut self, decisions: &Decisions) {
        let now = Instant::now();
        if now >= self.next_follow {
            self.next_follow = now + FOLLOW_PERIOD;
            self.tracks.update(decisions);
        }
    }

    /// A job is submitted.
    pub(crate) fn submitted(&mut self, decisions: &Decisions, lengths: &Lengths, job: JobId) {
        let known = || Some((decisions.job(job)?.spec.clone(), Known::new(lengths.expected(job), None, 0.0)));
        self.submissions.note(decisions.scheduler().now(), known);
    }

    /// How long an attempt that ends now would have taken without the jobs beside it, as predicted.
    pub(crate) fn time_alone(&self, decisions: &Decisions, attempt: AttemptId) -> Option<Seconds> {
        self.tracks.time_alone(attempt, decisions.now())
    }

    /// Whether a round is due.
    pub(crate) fn is_due(&self, decisions: &Decisions) -> bool {
        let now = Instant::now();
        !self.is_busy && now >= self.next && (decisions.changes() != self.changes || now >= self.next_unchanged)
    }

    /// Orders a prediction from the present state.
    pub(crate) fn order(&mut self, decisions: &Decisions, lengths: &Lengths) {
        let now = Instant::now();
        (self.changes, self.next_unchanged) = (decisions.changes(), now + UNCHANGED_PERIOD[0]);
        let scheduler = decisions.scheduler().front(WAITING);
        let known = |job: &Job| {
            let progress = self.tracks.of(decisions, job.id());
            let saved = job.saved_progress.filter(|_| job.checkpointed_at.is_some()).map_or(0.0, Fraction::get);
            (job.id(), Known::new(lengths.expected(job.id()), progress, saved))
        };
        let unfinished = scheduler.jobs().filter(|job| job.state.outcome().is_none());
        let known: HashMap<JobId, Known> = unfinished.map(known).collect();
        if known.is_empty() {
            return self.latest.clear();
        }
        let arrivals = self.submissions.arrivals(decisions.now());
        self.is_busy = self.rounds.send(Round { now: decisions.now(), scheduler, known, arrivals }).is_ok();
    }

    /// A round is done.
    pub(crate) fn take(&mut self, predicted: Predicted) {
        let now = Instant::now();
        self.is_busy = false;
        self.next = now + (predicted.took * PAUSE).max(LEAST_PERIOD);
        let [least, most] = UNCHANGED_PERIOD;
        self.next_unchanged = now + (predicted.took * UNCHANGED_PAUSE).clamp(least, most);
        self.latest = predicted.jobs;
    }

    /// Whether the progress of a job has stopped.
    pub(crate) fn is_overdue(&self, decisions: &Decisions, job: JobId) -> bool {
        self.tracks.is_overdue(decisions, job)
    }

    /// The latest prediction for a job.
    pub(crate) fn of(&self, job: JobId) -> Option<&JobPrediction> {
        self.latest.get(&job)
    }
}
