//! One run ahead of time.

use std::collections::{BTreeMap, BTreeSet};

use carma_core::{Action, AttemptId, Device, DeviceId, Event, Job, JobId, Scheduler, Seconds, Time, Verdict};

use super::shown::shown;
use super::{Assumptions, Future};

/// A scheduler that is run ahead, with what is known of its jobs.
#[derive(Debug)]
pub struct Lookahead<'a, Left> {
    scheduler: Scheduler,
    /// How long a job still takes when alone, from now or from its launch.
    left: Left,
    assumptions: &'a Assumptions,
    running: BTreeMap<AttemptId, Running>,
    /// Arrivals so far.
    arrived: usize,
    /// The jobs of the present that are not over.
    awaited: BTreeSet<JobId>,
    future: Future,
}

/// An attempt under way.
#[derive(Debug)]
struct Running {
    /// Seconds alone.
    left: f64,
    speed: f64,
    devices: Vec<DeviceId>,
    /// When it appears on its GPUs; unset: it has.
    appears: Option<Time>,
    since: Time,
    /// It was told to end.
    stopped: bool,
}

impl Running {
    fn advance(&mut self, now: Time) {
        self.left = (self.left - self.speed * (now - self.since).get()).max(0.0);
        self.since = now;
    }

    fn ends(&self) -> Time {
        let left = if self.stopped { 0.0 } else { self.left / self.speed };
        self.since + Seconds::new(left).unwrap_or_default()
    }
}

/// The next thing that happens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Ends(AttemptId),
    Appears(AttemptId),
    Arrives,
    Timer,
}

impl<'a, Left: Fn(JobId) -> Seconds> Lookahead<'a, Left> {
    /// Runs a copy of a scheduler ahead from its present.
    pub fn run(scheduler: Scheduler, left: Left, assumptions: &'a Assumptions) -> Future {
        let awaited = scheduler.jobs().filter(|job| job.state.outcome().is_none()).map(Job::id).collect();
        let (running, future) = (BTreeMap::new(), Future::default());
        let mut ahead = Self { scheduler, left, assumptions, running, arrived: 0, awaited, future };
        ahead.begin();
        ahead.go_on();
        ahead.future
    }

    fn begin(&mut self) {
        let now = self.scheduler.now();
        let active: Vec<_> = self.scheduler.jobs().filter_map(|job| job.state.active().cloned()).collect();
        for active in active {
            let devices: Vec<DeviceId> = active.placement.devices.iter().map(|granted| granted.device).collect();
            let seen = |device: &Device| device.tenants.iter().any(|tenant| tenant.attempt == active.attempt && tenant.seen_at.is_some());
            let is_seen = devices.iter().filter_map(|device| self.scheduler.fleet().device(*device)).any(seen);
            let appears = (!is_seen).then(|| (active.launched_at + self.assumptions.start_up).max(now));
            let left = (self.left)(active.attempt.job).get();
            let running = Running { left, speed: 1.0, devices, appears, since: now, stopped: active.stopping.is_some() };
            self.running.insert(active.attempt, running);
        }
        let devices: Vec<DeviceId> = self.scheduler.fleet().devices().map(Device::id).collect();
        self.show(&devices, now);
        self.change_speeds(now);
    }

    fn go_on(&mut self) {
        let end = self.scheduler.now() + self.assumptions.horizon;
        for _ in 0..self.assumptions.steps {
            if self.awaited.is_empty() {
                return;
            }
            let Some((now, next)) = self.next().filter(|(time, _)| *time <= end) else { return };
            match next {
                Next::Timer => self.tell(Event::Tick, now),
                Next::Arrives => {
                    let submitted = self.assumptions.arrivals[self.arrived].1.clone();
                    self.arrived += 1;
                    self.tell(Event::JobSubmitted(Box::new(submitted)), now);
                }
                Next::Appears(attempt) => {
                    let devices = self.running.get_mut(&attempt).map(|running| {
                        running.appears = None;
                        running.devices.clone()
                    });
                    self.show(&devices.unwrap_or_default(), now);
                }
                Next::Ends(attempt) => self.end(attempt, now),
            }
        }
    }

    fn next(&self) -> Option<(Time, Next)> {
        let ends = self.running.iter().map(|(attempt, running)| (running.ends(), Next::Ends(*attempt)));
        let appear = self.running.iter().filter_map(|(attempt, running)| Some((running.appears?, Next::Appears(*attempt))));
        let timer = self.scheduler.next_wakeup().map(|time| (time.max(self.scheduler.now()), Next::Timer));
        let arrives = self.assumptions.arrivals.get(self.arrived).map(|(time, _)| (*time, Next::Arrives));
        ends.chain(appear).chain(arrives).chain(timer).min()
    }

    fn end(&mut self, attempt: AttemptId, now: Time) {
        let Some(running) = self.running.remove(&attempt) else { return };
        let verdict = if running.stopped { Verdict::Failed { code: 1 } } else { Verdict::Succeeded };
        self.tell(Event::JobExited { attempt, verdict }, now);
        if self.scheduler.job(attempt.job).is_none_or(|job| job.state.outcome().is_some()) {
            self.future.ends.insert(attempt.job, now);
            self.awaited.remove(&attempt.job);
        }
        self.show(&running.devices, now);
        self.change_speeds(now);
    }

    /// Tells an event. One that the scheduler refuses changes nothing.
    fn tell(&mut self, event: Event, now: Time) {
        let actions = self.scheduler.handle(event, now).unwrap_or_default();
        let mut launched = false;
        for action in actions {
            match action {
                Action::Launch { attempt, placement, .. } => {
                    launched = true;
                    self.future.starts.entry(attempt.job).or_insert(now);
                    let devices: Vec<DeviceId> = placement.devices.iter().map(|granted| granted.device).collect();
                    let (left, appears) = ((self.left)(attempt.job).get(), Some(now + self.assumptions.start_up));
                    let running = Running { left, speed: 1.0, devices, appears, since: now, stopped: false };
                    self.running.insert(attempt, running);
                }
                Action::Signal { attempt, .. } => {
                    if let Some(running) = self.running.get_mut(&attempt) {
                        running.advance(now);
                        running.stopped = true;
                    }
                }
                Action::SwitchMode { device, .. } => {
                    self.tell(Event::ModeRefused { device, reason: "only looking ahead".to_owned() }, now);
                }
                Action::LimitPower { .. } | Action::Idle { .. } | Action::Stall { .. } | Action::Requeue { .. } | Action::Finish { .. } => {
                }
            }
        }
        if launched {
            self.change_speeds(now);
        }
    }

    fn show(&mut self, devices: &[DeviceId], now: Time) {
        for id in devices {
            let Some(device) = self.scheduler.fleet().device(*id) else { continue };
            let is_seen = |attempt: AttemptId| self.running.get(&attempt).is_some_and(|running| running.appears.is_none());
            for event in shown(device, is_seen) {
                self.tell(event, now);
            }
        }
    }

    /// The tenants of devices have changed.
    fn change_speeds(&mut self, now: Time) {
        for (attempt, running) in &mut self.running {
            running.advance(now);
            let devices = running.devices.iter().filter_map(|device| self.scheduler.fleet().device(*device));
            let slowdown = devices.map(|device| device.predicted_slowdown(*attempt)).fold(1.0, f64::max);
            running.speed = 1.0 / (1.0 + (slowdown - 1.0) * self.assumptions.interference);
        }
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{Config, DeviceSpec, JobSpec, MemoryNeed, MiB, Preset, Sample, ServerId, ServerSpec};

    use super::*;

    /// A server with GPUs that take one job each, and jobs of half an hour.
    fn busy(gpus: u16, jobs: u64) -> Scheduler {
        let mut scheduler = Scheduler::new(Config { mapping: "exclusive".parse().unwrap(), ..Config::from(Preset::Carma) });
        let now = Time::from_secs(100);
        scheduler.handle(Event::ServerAttached(ServerSpec::new(ServerId(0))), now).unwrap();
        for gpu in (0..gpus).map(|ordinal| DeviceId::gpu(ServerId(0), ordinal)) {
            scheduler.handle(Event::GpuAttached(DeviceSpec::new(gpu, MiB(40_960))), now).unwrap();
            scheduler.handle(Event::GpuSampled { device: gpu, sample: Sample::new(now, MiB(4)) }, now).unwrap();
        }
        for job in (1..=jobs).map(JobId) {
            let spec = JobSpec { memory: MemoryNeed::known(MiB(8_000)), ..JobSpec::new(job) };
            scheduler.handle(Event::JobSubmitted(Box::new(spec)), now).unwrap();
        }
        scheduler
    }

    fn half_an_hour(_: JobId) -> Seconds {
        Seconds::from_secs(1800)
    }

    #[test]
    fn jobs_start_when_those_before_them_end() {
        let scheduler = busy(1, 3);
        let before = scheduler.clone();
        let future = Lookahead::run(scheduler.front(10), half_an_hour, &Assumptions::default());
        let seconds = |times: &BTreeMap<JobId, Time>| times.values().map(|time| time.get()).collect::<Vec<_>>();
        assert_eq!(seconds(&future.starts), [1900.0, 3700.0], "jobs 2 and 3: the first runs already");
        assert_eq!(seconds(&future.ends), [1900.0, 3700.0, 5500.0]);
        assert_eq!(scheduler, before, "only the copy has changed");
    }

    #[test]
    fn the_cost_is_bounded() {
        let run = |steps| Lookahead::run(busy(2, 50), half_an_hour, &Assumptions { steps, ..Assumptions::default() });
        assert!(run(5).ends.len() <= 5);
        assert_eq!(run(5_000).ends.len(), 50);
        let near = Assumptions { horizon: Seconds::from_secs(2_000), ..Assumptions::default() };
        assert_eq!(Lookahead::run(busy(2, 50), half_an_hour, &near).ends.len(), 2);
    }

    #[test]
    fn jobs_that_are_submitted_later_may_go_first() {
        let spec = JobSpec { priority: carma_core::Priority(5), memory: MemoryNeed::known(MiB(8_000)), ..JobSpec::new(JobId(1 << 40)) };
        let arrivals = vec![(Time::from_secs(500), spec)];
        let future = Lookahead::run(busy(1, 2), half_an_hour, &Assumptions { arrivals, ..Assumptions::default() });
        assert_eq!(future.starts[&JobId(2)], Time::from_secs(3700), "after the first and after the one that comes");
    }

    #[test]
    fn the_front_of_a_long_queue_predicts_like_the_whole() {
        let whole = busy(2, 200);
        let (front, all) = (whole.front(20), Assumptions::default());
        assert_eq!(front.jobs().count(), 22);
        let (few, many) = (Lookahead::run(front, half_an_hour, &all), Lookahead::run(whole, half_an_hour, &all));
        for (job, start) in &few.starts {
            assert_eq!(many.starts.get(job), Some(start), "{job}");
        }
    }
}
