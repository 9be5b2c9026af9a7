//! The end of a random test: the log is replayed, and all attempts end.

use carma_core::*;

use super::shares::is_beyond;
use super::world::World;
use crate::lab::window;

impl World {
    /// Everything is back, nothing is busy, no foreign process is there.
    pub(super) fn calm(&mut self) {
        let servers: Vec<ServerId> = self.scheduler().fleet().servers().iter().map(|server| server.spec.id).collect();
        for server in servers {
            self.accepted(Event::HostRecovered { server });
            self.host_memory(server, MiB(1_000_000));
        }
        self.answer_switches();
        for device in self.devices() {
            self.accepted(Event::GpuRecovered { device });
            self.accepted(Event::GpuResumed { device });
            self.accepted(Event::ProcessesSeen { device, processes: Vec::new() });
            self.accepted(Event::GpuWindow { device, window: window(0, 0.0, 0.0, 0.0) });
        }
    }

    /// Lets everything that runs end well, again and again, until nothing runs. Then every job is final, held, waiting for
    /// one that is, or too large, and says so.
    pub(super) fn dry_up(mut self) {
        self.estimate_all();
        self.run_dry();
        self.check_settled(true);
        // What waited for a server, or for one that lasts, has it now.
        self.attach_server(None, &[80; 6]);
        self.run_dry();
        self.check_settled(false);
    }

    fn run_dry(&mut self) {
        for _ in 0..1_000 {
            // GPUs that were switched have rested, and what was never answered is given up.
            self.now = self.now + Seconds::from_secs(1_000);
            self.accepted(Event::Tick);
            self.calm();
            let active = self.active();
            if active.is_empty() && self.switches.is_empty() && self.scheduler().next_wakeup().is_none() {
                break;
            }
            for Active { attempt, .. } in active {
                self.accepted(Event::JobExited { attempt, verdict: Verdict::Succeeded });
            }
            self.answer_switches();
        }
    }

    fn check_settled(&self, may_lack_servers: bool) {
        for job in self.scheduler().jobs() {
            let explanation = self.scheduler().explain(job.id()).unwrap();
            let settled = match &job.state {
                State::Done { .. } | State::Held { .. } => true,
                _ => match explanation.reason {
                    WaitReason::Dependencies { .. }
                    | WaitReason::TooLarge { .. }
                    | WaitReason::TooLargeForHosts { .. }
                    | WaitReason::TooMuchPower { .. } => true,
                    WaitReason::NoServer | WaitReason::ServersEnd { .. } => {
                        // The server that came has plain GPUs, and as many as a small budget may not suffice for.
                        let budget = self.scheduler().config().power.budget;
                        may_lack_servers || job.spec.mode != RequestedMode::Auto || budget.is_some()
                    }
                    WaitReason::Quota { over } => is_beyond(over),
                    _ => false,
                },
            };
            assert!(settled, "forgotten: {explanation}");
        }
    }

    /// Estimators answer for every job that waits for them, with nothing.
    fn estimate_all(&mut self) {
        let waits = |job: &&Job| matches!(job.state, State::Estimating { .. });
        let jobs: Vec<JobId> = self.scheduler().jobs().filter(waits).map(Job::id).collect();
        for job in jobs {
            self.accepted(Event::EstimateReady { job, estimate: Box::default() });
            assert!(!matches!(self.scheduler().job(job).unwrap().state, State::Estimating { .. }));
        }
    }

    pub(super) fn replay(&mut self) {
        let empty = EventLog::new(&Settings::default(), Vec::new()).unwrap();
        let log = std::mem::replace(&mut self.log, empty);
        let scheduler = log.scheduler().clone();
        let written = log.into_output();
        assert!(replay(&written[..]).unwrap().1 == scheduler, "the replayed log leads elsewhere");
        self.log = EventLog::resume(scheduler, written);
    }
}
