//! A running job and its shim: output goes to the log, the terminal is served, and signals are forwarded.

use std::io;
use std::os::fd::AsFd;
use std::path::Path;
use std::time::Instant;

use carma_core::Seconds;
use nix::sys::signal::Signal;
use nix::sys::signalfd::SignalFd;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, WaitOptions, WaitStatus, wait};

use super::console::Console;
use super::folder::AttemptFolder;
use super::lifeline::{PERIOD, is_alive};
use super::shim::KILL;
use super::signals::SignalPlan;
use super::stream::Stream;
use super::switches::SwitchLog;
use super::user_processes::UserProcesses;
use crate::attempt::Exit;

/// A running job.
pub(super) struct RunningJob<'a> {
    folder: &'a AttemptFolder,
    job: Pid,
    /// Output first, then errors. A terminal has output only.
    streams: [Stream; 2],
    switches: SwitchLog,
    processes: UserProcesses,
    console: Option<Console>,
    signals: SignalPlan<'a>,
    /// The lease of its agent, and when to look at it again.
    lease: Option<(&'a Path, Instant)>,
    /// Its idle limit, set when it was reached and the job is being ended.
    idle: Option<Seconds>,
    buffer: Vec<u8>,
}

impl<'a> RunningJob<'a> {
    pub(super) fn new(
        folder: &'a AttemptFolder,
        job: Pid,
        streams: [Stream; 2],
        switches: SwitchLog,
        processes: UserProcesses,
        console: Option<Console>,
        signals: SignalPlan<'a>,
    ) -> Self {
        Self { folder, job, streams, switches, processes, console, signals, lease: None, idle: None, buffer: vec![0; 64 * 1024] }
    }

    /// The job ends when the lease in this file is over.
    pub(super) fn leased(self, lease: Option<&'a Path>) -> Self {
        Self { lease: lease.map(|lease| (lease, Instant::now())), ..self }
    }

    /// Serves the job until it ends.
    pub(super) fn serve(&mut self, asked: &SignalFd) -> Exit {
        loop {
            let client = self.console.as_ref().and_then(|console| console.paused_until(Instant::now()));
            let paused = [client, self.processes.paused_until()].into_iter().flatten().min();
            self.wait(asked, paused);
            let now = Instant::now();
            self.processes.serve(self.folder, now);
            if paused.is_none() {
                self.take_output(now);
            }
            if let Some(console) = &mut self.console {
                console.serve(now);
            }
            if let Some((_, limit)) = self.idle_at().filter(|(at, _)| *at <= now) {
                self.end_idle(limit, now);
            }
            while let Ok(Some(signal)) = asked.read_signal() {
                if let Ok(signal) = Signal::try_from(signal.ssi_signo.cast_signed()) {
                    self.signals.pass_on(signal, now);
                }
            }
            self.signals.send_due(now);
            self.check_lease(now);
            if let Some(exit) = reap(self.job) {
                return self.idle.map_or(exit, Exit::Idle);
            }
        }
    }

    /// Sleeps until there is something to do.
    fn wait(&self, asked: &SignalFd, paused: Option<Instant>) {
        let mut fds = vec![PollFd::new(asked, PollFlags::IN)];
        fds.extend(self.console.iter().flat_map(Console::interests));
        fds.extend(self.processes.interests());
        if paused.is_none() {
            fds.extend(self.streams.iter().filter_map(Stream::source).map(|source| PollFd::from_borrowed_fd(source, PollFlags::IN)));
        }
        let lease = self.lease.map(|(_, at)| at);
        let next = [paused, self.idle_at().map(|(at, _)| at), self.signals.next(), lease].into_iter().flatten().min();
        let left = next.and_then(|next| Timespec::try_from(next.saturating_duration_since(Instant::now())).ok());
        let _ = poll(&mut fds, left.as_ref());
    }

    /// Ends the job with the lease of its agent. The guard does too, unless it was killed.
    fn check_lease(&mut self, now: Instant) {
        let Some((lease, at)) = self.lease.filter(|(_, at)| *at <= now) else { return };
        self.lease = Some((lease, at + PERIOD));
        if !is_alive(io::stdout().as_fd(), lease) {
            self.signals.pass_on(KILL, now);
        }
    }

    /// Reads output, at most a buffer from each stream. Answers whether there was any.
    fn take_output(&mut self, now: Instant) -> bool {
        let mut any = false;
        for number in 0..self.streams.len() {
            let printed = self.streams[number].read(&mut self.buffer);
            if printed.is_empty() {
                continue;
            }
            any = true;
            self.switches.follows(number, self.streams.each_ref().map(Stream::written));
            self.streams[number].write(printed);
            self.processes.copy(number, printed, now);
            if let Some(console) = &mut self.console {
                console.print(printed, now);
            }
        }
        any
    }

    fn idle_at(&self) -> Option<(Instant, Seconds)> {
        self.console.as_ref().filter(|_| self.idle.is_none())?.idle_at()
    }

    fn end_idle(&mut self, limit: Seconds, now: Instant) {
        let text = format!("\r\n[carma: {}, and is ended]\r\n", Exit::Idle(limit));
        if let (Some(console), Some(output)) = (&mut self.console, self.streams.first_mut()) {
            console.print(text.as_bytes(), now);
            output.write(text.as_bytes());
            self.processes.copy(0, text.as_bytes(), now);
        }
        self.signals.end_idle(now);
        self.idle = Some(limit);
    }

    /// Reads the rest of the output when all processes are gone, and notifies the attached client.
    pub(super) fn finish(mut self, exit: &Exit) {
        if let Some(console) = &mut self.console {
            console.close_job_side();
        }
        while self.take_output(Instant::now()) {
            self.console.iter_mut().for_each(Console::wait_for_client);
        }
        for (stream, note) in self.processes.finish(self.folder) {
            self.streams.get_mut(stream).into_iter().for_each(|stream| stream.write(note.as_bytes()));
        }
        self.streams.into_iter().for_each(Stream::finish);
        if let Some(console) = self.console {
            console.finish(exit);
        }
    }
}

/// Reaps ended processes. Answers the exit of the job, if it is among them.
fn reap(job: Pid) -> Option<Exit> {
    while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
        if pid == job {
            return Some(exit(status));
        }
    }
    None
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or_default()),
    }
}
