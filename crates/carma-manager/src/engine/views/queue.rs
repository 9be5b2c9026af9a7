//! The list of the queue: an overview, or page by page.

use std::collections::BTreeMap;

use carma_core::{Active, ArrayId, Job, JobId, MiB, Seconds, Stall, State, TenantMemory, Time};
use carma_format::duration;

use super::{View, array_place};
use crate::api::{Counts, JobPrediction, MAX_ROWS, Queue, QueueCursor, QueuePart, QueueQuery, QueueRow};
use crate::store::Phase;

/// Default number of jobs of each kind in an overview.
const OVERVIEW: u32 = 100;

/// After this long, a job that was never seen on its GPUs is remarked on, also where `[idle_jobs]` flags no jobs.
const UNUSED_AFTER: Seconds = Seconds::from_secs(600);

/// The kind of an unfinished job, for counting.
#[derive(Debug, Clone, Copy)]
enum Kind {
    Running,
    Waiting,
    Held,
}

impl Counts {
    fn add(&mut self, kind: Kind) {
        *match kind {
            Kind::Running => &mut self.running,
            Kind::Waiting => &mut self.waiting,
            Kind::Held => &mut self.held,
        } += 1;
    }
}

/// Since when a job has been in its state.
pub(super) const fn since(state: &State) -> Time {
    match state {
        State::Held { since, .. }
        | State::Estimating { since }
        | State::Queued { since }
        | State::Recovering { since }
        | State::Preempted { since } => *since,
        State::Starting(active) | State::Running(active) => active.launched_at,
        State::Done { at, .. } => *at,
    }
}

/// How many rows an answer may have.
#[derive(Debug, Clone, Copy)]
struct RowLimits {
    all: usize,
    /// The limit of each kind in an overview.
    each: Option<usize>,
}

impl RowLimits {
    fn of(query: &QueueQuery) -> Self {
        let rows = |rows: u32| rows.min(MAX_ROWS) as usize;
        match (query.limit, query.after) {
            (None, None) => Self { all: rows(MAX_ROWS), each: Some(rows(query.each.unwrap_or(OVERVIEW))) },
            (limit, _) => Self { all: rows(limit.unwrap_or(OVERVIEW)), each: None },
        }
    }

    /// The most of one kind: one more than is listed, to know whether there is another page.
    fn of_kind(self) -> usize {
        self.each.unwrap_or(self.all + 1)
    }
}

impl<'a> View<'a> {
    pub(crate) fn queue(self, query: &QueueQuery) -> Queue {
        let limits = RowLimits::of(query);
        let wanted = |job: &Job| query.user.is_none_or(|user| job.spec.user == user);
        let queued = self.queued(query, limits.of_kind(), &wanted);
        // Jobs that wait for something other than GPUs come after those that wait for GPUs.
        let (mut counts, mut running, mut blocked, mut held) = (Counts::default(), Vec::new(), Vec::new(), Vec::new());
        let mut arrays: BTreeMap<ArrayId, Counts> = BTreeMap::new();
        for (kind, job) in self.unfinished() {
            counts.add(kind);
            if let Some(member) = job.spec.array.filter(|_| wanted(job)) {
                arrays.entry(member.array).or_default().add(kind);
            }
            let (part, list, most) = match kind {
                Kind::Running => (QueuePart::Running, &mut running, limits.of_kind()),
                Kind::Waiting => (QueuePart::Blocked, &mut blocked, limits.of_kind() - queued.len()),
                Kind::Held => (QueuePart::Held, &mut held, limits.of_kind()),
            };
            let follows = || query.after.is_none_or(|after| after.is_before(part, job.id()));
            let is_queued = || part == QueuePart::Blocked && self.decisions.scheduler().is_queued(job);
            if list.len() < most && wanted(job) && follows() && !is_queued() {
                list.push((0, job));
            }
        }
        let parts = [(QueuePart::Running, running), (QueuePart::Queued, queued), (QueuePart::Blocked, blocked), (QueuePart::Held, held)];
        let mut rows: Vec<_> =
            parts.into_iter().flat_map(|(part, jobs)| jobs.into_iter().map(move |(place, job)| (part, place, job))).collect();
        let more = rows.len() > limits.all && limits.each.is_none();
        rows.truncate(limits.all);
        let next = rows.last().filter(|_| more).map(|(part, place, job)| QueueCursor { part: *part, place: *place, job: job.id() });
        let jobs = rows.into_iter().map(|(_, _, job)| self.row(job, query.after.is_none())).collect();
        Queue { counts, jobs, arrays, next }
    }

    /// Jobs that wait for GPUs, in queue order, each with its position.
    fn queued(self, query: &QueueQuery, most: usize, wanted: &dyn Fn(&Job) -> bool) -> Vec<(u64, &'a Job)> {
        let scheduler = self.decisions.scheduler();
        let skipped = match query.after {
            Some(QueueCursor { part: QueuePart::Running, .. }) | None => 0,
            Some(QueueCursor { part: QueuePart::Queued, place, job }) => self.place_after(place, job),
            Some(_) => return Vec::new(),
        };
        let places = (1..).zip(scheduler.queue_ids()).skip(usize::try_from(skipped).unwrap_or(usize::MAX));
        places.filter_map(|(place, id)| Some((place, scheduler.job(id)?))).filter(|(_, job)| wanted(job)).take(most).collect()
    }

    /// The current position of a job. One that is no longer queued keeps its last position: jobs that moved may be listed twice or not at all.
    fn place_after(self, place: u64, job: JobId) -> u64 {
        let now = self.decisions.scheduler().queue_ids().position(|id| id == job);
        now.map_or(place, |before| before as u64 + 1)
    }

    /// Unfinished jobs with their kind. There may be many: iterate once.
    fn unfinished(self) -> impl Iterator<Item = (Kind, &'a Job)> {
        self.decisions.scheduler().jobs().filter_map(move |job| {
            let kind = match job.state {
                State::Starting(_) | State::Running(_) => Kind::Running,
                State::Held { .. } => Kind::Held,
                State::Done { .. } => return None,
                _ => Kind::Waiting,
            };
            Some((kind, job))
        })
    }

    pub(super) fn counts(self) -> Counts {
        let mut counts = Counts::default();
        self.unfinished().for_each(|(kind, _)| counts.add(kind));
        counts
    }

    /// The memory that a running job uses on its fullest GPU, as measured.
    fn memory_in_use(self, active: &Active) -> Option<MiB> {
        let fleet = self.decisions.scheduler().fleet();
        let devices = active.placement.devices.iter().filter_map(|granted| fleet.device(granted.device));
        let tenants = devices.flat_map(|device| &device.tenants).filter(|tenant| tenant.attempt == active.attempt);
        let used = tenants.filter_map(|tenant| match tenant.memory {
            TenantMemory::Reading(memory) => Some(memory),
            TenantMemory::Unseen | TenantMemory::Unreadable => None,
        });
        used.max()
    }

    /// That a job was started long ago, and was never seen on its GPUs.
    pub(super) fn unused_for(self, job: &Job) -> Option<String> {
        let State::Starting(active) = &job.state else { return None };
        let flagged = self.decisions.scheduler().config().idle_jobs.flag_after.unwrap_or(UNUSED_AFTER);
        let since = self.decisions.now() - active.launched_at;
        let lent = if active.idle.is_some_and(|idle| idle.lent) { ", lent to others" } else { "" };
        let gpus = if active.placement.devices.len() == 1 { "GPU" } else { "GPUs" };
        let is_long = !active.placement.devices.is_empty() && since >= flagged;
        is_long.then(|| format!("not used its {gpus} for {}{lent}", duration(since.get())))
    }

    fn row(self, job: &Job, explain: bool) -> QueueRow {
        let (id, spec) = (job.id(), &job.spec);
        let known = self.jobs.get(id);
        let granted = job.state.active().map(|active| active.placement.devices.as_slice()).unwrap_or_default();
        let need = spec.memory.known.as_ref().and_then(|known| known.get(0)).copied();
        let raised = Some(job.climb.floor).filter(|floor| *floor > MiB::ZERO);
        let expected = || spec.memory.estimated.as_ref().and_then(|estimated| estimated.get(0)).map(|estimate| estimate.expected);
        let explained = || {
            let explanation = self.decisions.scheduler().explain(id).ok()?;
            Some(self.worded(|words| explanation.reason.text(words)))
        };
        let reason = match &job.state {
            State::Queued { .. } | State::Recovering { .. } | State::Preempted { .. } if self.setup.observes => {
                Some("waits for a manager that starts jobs: this one only observes".to_owned())
            }
            State::Starting(_) if self.unused_for(job).is_some() => self.unused_for(job).map(|text| format!("has {text}")),
            State::Starting(active) | State::Running(active) => remark(active, self.decisions.now()),
            State::Done { .. } => None,
            _ => explain.then(explained).flatten(),
        };
        let JobPrediction { progress, starts, ends, .. } = self.prediction(job);
        QueueRow {
            id,
            name: known.and_then(|known| known.name.clone()),
            user: known.map(|known| known.owner.name.clone()).unwrap_or_default(),
            uid: spec.user.0,
            state: Phase::from(&job.state),
            for_seconds: self.decisions.now() - since(&job.state),
            submitted: known.map(|known| known.submitted).unwrap_or_default(),
            total_seconds: self.decisions.now() - job.submitted_at,
            priority: spec.priority,
            gpus: spec.gpus,
            attempts: job.attempts,
            array: array_place(job),
            devices: granted.iter().map(|granted| granted.device).collect(),
            // After running out of memory, a job needs more than its user declared.
            memory: self.reserved_now(job).first().map(|(_, reserved)| *reserved).or(need.or_else(expected).max(raised)),
            used: job.state.active().and_then(|active| self.memory_in_use(active)),
            progress,
            starts,
            ends,
            reason,
        }
    }
}

/// Notable facts about a running attempt.
fn remark(active: &Active, now: Time) -> Option<String> {
    let since = |time: Time| duration((now - time).get());
    let stall = active.stall.map(|stall| match stall {
        Stall::Hanging { since: time } => format!("hanging for {}", since(time)),
        Stall::Slow { speed, .. } => format!("slow: {:.0} % of its earlier speed", speed.get() * 100.0),
    });
    let idle = || active.idle.map(|idle| format!("idle for {}{}", since(idle.since), if idle.lent { ", lent to others" } else { "" }));
    stall.or_else(idle)
}
