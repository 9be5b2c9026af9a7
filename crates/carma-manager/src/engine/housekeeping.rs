//! Housekeeping: useful state is saved every minute, and old jobs and their logs are deleted every hour.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::Duration;

use carma_core::{AttemptId, PastUse, Seconds};

use super::log_removal::remove_logs;
use super::state::EngineState;
use crate::configuration::KeepConfig;
use crate::saved;
use crate::store::{Change, KeepRule, Retention};

/// How often old jobs are removed, in the time that their age is counted in: that of the GPUs.
const PRUNE_PERIOD: Seconds = Seconds::from_secs(3600);
/// Steps of one removal of old jobs, of 500 rows each. The next housekeeping continues.
const PRUNE_STEPS: u32 = 200;
/// The file with the GPU use of users.
pub(super) const SHARES: &str = "shares.json";

impl EngineState {
    pub(super) fn housekeeping(&mut self) {
        self.save();
        self.decisions.batch.changes.push(Change::ClockAdvanced(self.decisions.now()));
        self.jobs.forget_lingering(&mut self.decisions);
        self.gpus.rescan_devices();
        let is_short = self.log_space.is_short(|attempt| self.written_logs(attempt));
        if self.timetable.prune_is_due(self.decisions.clock.real(PRUNE_PERIOD), is_short) {
            self.prune();
        }
    }

    /// The size of a running attempt's logs.
    fn written_logs(&self, attempt: AttemptId) -> u64 {
        self.attempts.executor().output(attempt).iter().flatten().map(|(bytes, _)| bytes).sum()
    }

    /// Saves the use of attempts and users, so that it continues after a restart. On a full disk, a part is lost.
    pub(super) fn save(&mut self) {
        self.accounting.save();
        let used: Vec<PastUse> = self.decisions.scheduler().shares(self.decisions.now()).iter().map(|report| report.past).collect();
        // Without fair share there is nothing new, and the file is left as it is.
        if !used.is_empty() {
            let _ = saved::write(&self.setup.places.state.join(SHARES), &used);
        }
    }

    /// Deletes old jobs with their logs, on a thread that may be slow.
    fn prune(&self) {
        let retention = retention(&self.setup.configuration.manager.keep);
        let (store, executor, now) = (Arc::clone(self.writer.store()), Arc::clone(self.attempts.executor()), self.decisions.wall());
        let pruning = Arc::clone(&self.timetable.pruning);
        let (kept_logs, space_left) = (self.log_space.kept().clone(), self.log_space.left(|attempt| self.written_logs(attempt)));
        pruning.runs.store(true, Ordering::Release);
        let ended = Arc::clone(&pruning);
        let run = move || {
            match store.prune_some(&retention, now, PRUNE_STEPS) {
                Ok((_, true)) => {}
                Ok((_, false)) => pruning.continues.store(true, Ordering::Release),
                Err(error) => tracing::warn!("cannot delete old jobs: {error}"),
            }
            let Ok(reader) = store.reader() else { return };
            remove_logs(&store, &reader, executor.as_ref(), &kept_logs, &space_left);
            if pruning.continues.load(Ordering::Acquire) {
                return;
            }
            // A job that is being accepted has no logs yet.
            executor.remove_unknown(&|job| !matches!(reader.request(job), Ok(None)));
        };
        let run = move || {
            run();
            ended.runs.store(false, Ordering::Release);
        };
        if thread::Builder::new().name("prune".to_owned()).spawn(run).is_err() {
            self.timetable.pruning.runs.store(false, Ordering::Release);
        }
    }
}

fn retention(keep: &KeepConfig) -> Retention {
    let days = |days: u64, most| KeepRule { age: Duration::from_secs(days * 86_400), most };
    Retention {
        jobs: days(keep.days, keep.jobs_per_user),
        events: days(keep.days, Retention::default().events.most),
        samples: days(keep.sample_days, u64::MAX),
    }
}
