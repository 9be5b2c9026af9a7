//! Duties: minutes of GPUs are kept, old jobs are forgotten with their logs, the clock is written down.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use carma_core::{DeviceId, Event, EventError, Fraction, JobId, MiB, Sample, Signal, Utilisation, Watts};

use super::run::Running;
use crate::store::{Change, Keep, MinuteMean, Retention, UnixMillis, UnixMinute};
use crate::supervise::{AttemptFolder, Standing, find};

/// How often old jobs are forgotten.
const PRUNE: Duration = Duration::from_secs(3600);

/// Samples of the current minute of each device.
#[derive(Debug, Default)]
pub(super) struct Minutes {
    running: BTreeMap<DeviceId, Minute>,
    over: Vec<MinuteMean>,
}

#[derive(Debug)]
struct Minute {
    number: UnixMinute,
    readings: u32,
    memory: u64,
    /// Sums of SMACT, SMOCC, DRAMA, utilisation and power, with how many had them.
    sums: [(f64, u32); 5],
}

impl Minutes {
    pub(super) fn take(&mut self, device: DeviceId, at: UnixMillis, sample: &Sample) {
        let minute = at.minute();
        let fresh = || Minute { number: minute, readings: 0, memory: 0, sums: [(0.0, 0); 5] };
        let current = self.running.entry(device).or_insert_with(fresh);
        if current.number != minute {
            let done = std::mem::replace(current, fresh());
            self.over.push(done.mean(device));
        }
        current.readings += 1;
        current.memory += sample.memory_used.0;
        let share = |value: Option<Fraction>| value.map(Fraction::get);
        let values =
            [share(sample.smact), share(sample.smocc), share(sample.drama), share(sample.utilisation), sample.power.map(|power| power.0)];
        for ((sum, count), value) in current.sums.iter_mut().zip(values).filter_map(|(sum, value)| Some((sum, value?))) {
            *sum += value;
            *count += 1;
        }
    }

    /// Minutes that are over.
    pub(super) fn over(&mut self) -> Vec<MinuteMean> {
        std::mem::take(&mut self.over)
    }
}

impl Minute {
    fn mean(&self, device: DeviceId) -> MinuteMean {
        let mean = |(sum, count): (f64, u32)| (count > 0).then(|| sum / f64::from(count));
        let [smact, smocc, drama, gpu, power] = self.sums.map(mean);
        let share = |value: Option<f64>| value.map(Fraction::clamped);
        MinuteMean {
            device,
            minute: self.number,
            readings: self.readings,
            memory_used: MiB(self.memory / u64::from(self.readings.max(1))),
            utilisation: Utilisation { smact: share(smact), smocc: share(smocc), drama: share(drama), gpu: share(gpu) },
            power: power.map(Watts),
        }
    }
}

impl Running {
    pub(super) fn see_to_duties(&mut self) {
        let minutes = self.minutes.over();
        self.batch.changes.extend(minutes.into_iter().map(Change::SampleKept));
        self.batch.changes.push(Change::ClockSeen(self.now()));
        for job in std::mem::take(&mut self.lingering) {
            self.forget(job);
        }
        self.look_for_devices();
        if Instant::now() >= self.next_prune {
            self.next_prune = Instant::now() + PRUNE;
            self.prune();
        }
    }

    /// A job that is over leaves the core, unless others wait for it.
    pub(super) fn forget(&mut self, job: JobId) {
        match self.core.handle(Event::JobForgotten { job }, self.clock.now()) {
            Ok(actions) => self.act_on(actions),
            Err(EventError::StillNeeded(_)) => {
                self.lingering.insert(job);
            }
            Err(_) => {}
        }
        self.unknow(job);
    }

    /// Forgets old jobs with their logs, from a thread of its own: it may take a while.
    fn prune(&self) {
        let keep = &self.setup.configuration.manager.keep;
        let days = |days: u64| Keep { age: Duration::from_secs(days * 86_400), ..Retention::default().jobs };
        let retention =
            Retention { jobs: days(keep.days), events: days(keep.days), samples: Keep { most: u64::MAX, ..days(keep.sample_days) } };
        let (store, folder, now) = (std::sync::Arc::clone(&self.store), self.setup.places.state.join("attempts"), self.clock.wall());
        let run = move || {
            if let Err(error) = store.prune(&retention, now) {
                eprintln!("carma: old jobs could not be forgotten: {error}");
            }
            let Ok(reader) = store.reader() else { return };
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let job = entry.file_name().to_str().and_then(|name| name.parse().ok()).map(JobId);
                // A job that nobody knows has no logs to show. One that is just being accepted has none yet.
                if job.is_some_and(|job| matches!(reader.request(job), Ok(None))) && nothing_runs_in(&entry.path()) {
                    let _ = fs::remove_dir_all(entry.path());
                }
            }
        };
        let _ = std::thread::Builder::new().name("prune".to_owned()).spawn(run);
    }
}

/// Whether nothing runs of a job that nobody knows. An attempt that does, as after a store was put back from a backup, is told to end.
fn nothing_runs_in(folder: &Path) -> bool {
    let attempts = fs::read_dir(folder).into_iter().flatten().flatten();
    let running = attempts.filter_map(|entry| match find(&AttemptFolder::at(entry.path())) {
        Ok(Standing::Running(supervised)) => Some(supervised),
        _ => None,
    });
    running.map(|supervised| drop(supervised.signal(Signal::Kill))).count() == 0
}

#[cfg(test)]
mod tests {
    use carma_core::{ServerId, Time};

    use super::*;

    #[test]
    fn a_minute_is_the_mean_of_what_was_seen_in_it() {
        let device = DeviceId::gpu(ServerId(0), 0);
        let mut minutes = Minutes::default();
        let sample = |memory, smact: Option<f64>| Sample { smact: smact.map(Fraction::clamped), ..Sample::new(Time::ZERO, MiB(memory)) };
        minutes.take(device, UnixMillis(60_000), &sample(100, Some(0.5)));
        minutes.take(device, UnixMillis(90_000), &sample(300, None));
        assert_eq!(minutes.over(), []);
        minutes.take(device, UnixMillis(120_000), &sample(7, None));
        let [mean] = minutes.over().try_into().unwrap();
        assert_eq!(
            (mean.minute, mean.readings, mean.memory_used, mean.utilisation.smact),
            (UnixMinute(1), 2, MiB(200), Some(Fraction::clamped(0.5)))
        );
        assert_eq!(minutes.over(), []);
    }
}
