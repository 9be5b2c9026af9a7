//! Signals for a job, now and later: a job that does not end gets a stronger one.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd;
use rustix::process::Pid;

use super::cgroup::Cgroup;
use super::shim::{CHECKPOINT, KILL, TERMINATE};
use super::supervisor_log::log_line;
use crate::attempt::Order;

/// Interactive shells ignore SIGTERM but end on SIGHUP. Other programs get this long to end first.
const HANG_UP_AFTER: Duration = Duration::from_secs(2);
/// How long an idle job may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// A signal for a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JobSignal {
    Checkpoint,
    Terminate,
    HangUp,
    Kill,
}

/// Sends signals to a job when they are due.
pub(super) struct SignalPlan<'a> {
    job: Pid,
    order: &'a Order,
    cgroup: Option<&'a Cgroup>,
    later: Vec<(Instant, JobSignal)>,
    /// Signals of the manager, each forwarded once: a restarted manager does not know whether it sent one, and sends it again.
    passed_on: Vec<Signal>,
}

impl<'a> SignalPlan<'a> {
    pub(super) const fn new(job: Pid, order: &'a Order, cgroup: Option<&'a Cgroup>) -> Self {
        Self { job, order, cgroup, later: Vec::new(), passed_on: Vec::new() }
    }

    /// Passes on a signal of the manager.
    pub(super) fn pass_on(&mut self, signal: Signal, now: Instant) {
        if signal != KILL && self.passed_on.contains(&signal) {
            return;
        }
        self.passed_on.push(signal);
        match signal {
            CHECKPOINT => self.send(JobSignal::Checkpoint),
            TERMINATE => self.terminate(now),
            KILL => self.send(JobSignal::Kill),
            _ => {}
        }
    }

    /// Ends an idle job.
    pub(super) fn end_idle(&mut self, now: Instant) {
        self.terminate(now);
        self.later.push((now + GRACE, JobSignal::Kill));
    }

    /// When the next signal is due.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Sends the signals that are due.
    pub(super) fn send_due(&mut self, now: Instant) {
        for (_, signal) in self.later.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            self.send(signal);
        }
    }

    fn terminate(&mut self, now: Instant) {
        self.send(JobSignal::Terminate);
        if self.order.terminal.is_some() {
            self.later.push((now + HANG_UP_AFTER, JobSignal::HangUp));
        }
    }

    /// The job has not been reaped, so its pid and process group are still its own.
    fn send(&self, signal: JobSignal) {
        let number = match signal {
            JobSignal::Checkpoint => self.order.checkpoint_signal,
            JobSignal::Terminate => Signal::SIGTERM as i32,
            JobSignal::HangUp => Signal::SIGHUP as i32,
            JobSignal::Kill => Signal::SIGKILL as i32,
        };
        if let (JobSignal::Kill, Some(cgroup)) = (signal, self.cgroup) {
            cgroup.kill();
        }
        let group = unistd::Pid::from_raw(self.job.as_raw_nonzero().get());
        let sent = Signal::try_from(number).and_then(|signal| nix::sys::signal::killpg(group, signal));
        if let Err(error) = sent {
            log_line(format_args!("cannot send signal {number}: {error}"));
        }
    }
}
