//! Signals for a job, some of them later: one that does not end when told is told more clearly.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd;
use rustix::process::Pid;

use super::cgroup::Cgroup;
use super::shim::{CHECKPOINT, KILL, TERMINATE, say};
use crate::attempt::Order;

/// Shells at a terminal take no notice when told to terminate. They do when their terminal hangs up, which would end others before they are done.
const HANG_UP_AFTER: Duration = Duration::from_secs(2);
/// How long an idle job may take to end.
const GRACE: Duration = Duration::from_secs(10);

/// What a job can be told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Checkpoint,
    Terminate,
    HangUp,
    Kill,
}

/// Tells a job what it is to be told, in time.
pub(super) struct Ending<'a> {
    job: Pid,
    order: &'a Order,
    cgroup: Option<&'a Cgroup>,
    later: Vec<(Instant, Told)>,
    /// What the manager sent, which is passed on once: one that has crashed cannot know whether it had sent it, and sends it again.
    heard: Vec<Signal>,
}

impl<'a> Ending<'a> {
    pub(super) const fn new(job: Pid, order: &'a Order, cgroup: Option<&'a Cgroup>) -> Self {
        Self { job, order, cgroup, later: Vec::new(), heard: Vec::new() }
    }

    /// Passes on what the manager sent.
    pub(super) fn pass_on(&mut self, signal: Signal, now: Instant) {
        if signal != KILL && self.heard.contains(&signal) {
            return;
        }
        self.heard.push(signal);
        match signal {
            CHECKPOINT => self.tell(Told::Checkpoint),
            TERMINATE => self.terminate(now),
            KILL => self.tell(Told::Kill),
            _ => {}
        }
    }

    /// Ends a job that is idle, whatever it does about it.
    pub(super) fn end_idle(&mut self, now: Instant) {
        self.terminate(now);
        self.later.push((now + GRACE, Told::Kill));
    }

    /// When there is something to tell next.
    pub(super) fn next(&self) -> Option<Instant> {
        self.later.iter().map(|(at, _)| *at).min()
    }

    /// Tells what is due.
    pub(super) fn tell_due(&mut self, now: Instant) {
        for (_, told) in self.later.extract_if(.., |(at, _)| *at <= now).collect::<Vec<_>>() {
            self.tell(told);
        }
    }

    fn terminate(&mut self, now: Instant) {
        self.tell(Told::Terminate);
        if self.order.terminal.is_some() {
            self.later.push((now + HANG_UP_AFTER, Told::HangUp));
        }
    }

    /// The job has not been waited for, so its number, and that of its group, are still its own.
    fn tell(&self, told: Told) {
        let number = match told {
            Told::Checkpoint => self.order.checkpoint_signal,
            Told::Terminate => Signal::SIGTERM as i32,
            Told::HangUp => Signal::SIGHUP as i32,
            Told::Kill => Signal::SIGKILL as i32,
        };
        if let (Told::Kill, Some(cgroup)) = (told, self.cgroup) {
            cgroup.kill();
        }
        let group = unistd::Pid::from_raw(self.job.as_raw_nonzero().get());
        let sent = Signal::try_from(number).and_then(|signal| nix::sys::signal::killpg(group, signal));
        if let Err(error) = sent {
            say(format_args!("cannot send signal {number}: {error}"));
        }
    }
}
