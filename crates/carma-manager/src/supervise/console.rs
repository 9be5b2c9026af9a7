//! The shim's side of a job's terminal: a pseudo-terminal, its last output, and the socket where clients attach.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use carma_core::Seconds;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, Uid, fchmod, fchown};
use rustix::io::ioctl_fionbio;
use rustix::process::umask;
use rustix::pty::{OpenptFlags, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};

use super::client::Client;
use super::connect::short;
use super::folder::AttemptFolder;
use super::scrollback::Scrollback;
use crate::attempt::{Exit, RunAs, Terminal, TerminalSize};
use crate::terminal::Frame;

/// While this much input waits for the job, no more is read from the client.
const MAX_PENDING_INPUT: usize = 64 * 1024;
/// How long the end of a job waits for a client that does not read. A client that is replaced is not waited for.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// A job's terminal.
pub(super) struct Console {
    ours: File,
    /// Kept, so that a job may close its terminal and open it again.
    jobs: Option<OwnedFd>,
    listener: UnixListener,
    socket: PathBuf,
    attached: Option<Client>,
    scrollback: Scrollback,
    typed: Vec<u8>,
    idle_limit: Option<Seconds>,
    active: Instant,
}

impl Console {
    /// Creates a terminal that the user owns, and listens for clients.
    pub(super) fn open(folder: &AttemptFolder, terminal: &Terminal, user: Option<&RunAs>) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let ours = openpt(flags)?;
        unlockpt(&ours)?;
        let jobs = ioctl_tiocgptpeer(&ours, flags)?;
        if let Some(user) = user {
            fchown(&jobs, Some(Uid::from_raw(user.uid)), None)?;
        }
        fchmod(&jobs, Mode::RUSR | Mode::WUSR)?;
        let mut modes = tcgetattr(&jobs)?;
        // Backspace removes a whole UTF-8 character.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&jobs, OptionalActions::Now, &modes)?;
        resize(&ours, terminal.size)?;
        ioctl_fionbio(&ours, true)?;

        let (_folder, path) = short(folder)?;
        // Private from the beginning.
        let usual = umask(Mode::from_raw_mode(0o177));
        let listener = UnixListener::bind(path);
        umask(usual);
        let listener = listener?;
        listener.set_nonblocking(true)?;
        Ok(Self {
            ours: ours.into(),
            jobs: Some(jobs),
            listener,
            socket: folder.path().join("terminal"),
            attached: None,
            scrollback: Scrollback::default(),
            typed: Vec::new(),
            idle_limit: terminal.idle_limit,
            active: Instant::now(),
        })
    }

    /// The job's side.
    pub(super) fn job_side(&self) -> Option<&OwnedFd> {
        self.jobs.as_ref()
    }

    /// The file to read the job's output from.
    pub(super) fn output(&self) -> io::Result<OwnedFd> {
        self.ours.as_fd().try_clone_to_owned()
    }

    /// No process of the job is left: its output ends.
    pub(super) fn close_job_side(&mut self) {
        self.jobs = None;
    }

    /// The files to poll.
    pub(super) fn interests(&self) -> Vec<PollFd<'_>> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        if !self.typed.is_empty() {
            fds.push(PollFd::new(&self.ours, PollFlags::OUT));
        }
        if let Some(attached) = &self.attached {
            let mut interest = PollFlags::empty();
            interest.set(PollFlags::IN, self.typed.len() < MAX_PENDING_INPUT);
            interest.set(PollFlags::OUT, attached.has_output(&self.scrollback));
            // Without any interest, a client that is gone would be reported again and again.
            if !interest.is_empty() {
                fds.push(PollFd::new(attached, interest));
            }
        }
        fds
    }

    /// Until when no output is read from the job, because the client is slow.
    pub(super) fn paused_until(&self, now: Instant) -> Option<Instant> {
        self.attached.as_ref()?.paused_until(&self.scrollback, now)
    }

    /// When it reaches its idle limit, and that limit.
    pub(super) fn idle_at(&self) -> Option<(Instant, Seconds)> {
        let limit = self.idle_limit?;
        Some((self.active.checked_add(Duration::try_from_secs_f64(limit.get()).ok()?)?, limit))
    }

    /// Takes output of the job.
    pub(super) fn print(&mut self, printed: &[u8], now: Instant) {
        if !printed.is_empty() {
            self.scrollback.print(printed);
            self.active = now;
        }
    }

    /// Does everything that does not block.
    pub(super) fn serve(&mut self, now: Instant) {
        while let Ok((stream, _)) = self.listener.accept() {
            if let Ok(new) = Client::new(stream, &self.scrollback, now)
                && let Some(old) = self.attached.replace(new)
            {
                old.close(&self.scrollback, &Frame::TakenOver, now);
            }
            self.active = now;
        }
        if let Some(mut attached) = self.attached.take() {
            let read = if self.typed.len() < MAX_PENDING_INPUT { attached.read_frames(|frame| self.handle(frame, now)) } else { Ok(()) };
            if read.and_then(|()| attached.send(&self.scrollback, now)).is_ok() {
                self.attached = Some(attached);
            }
        }
        if !self.typed.is_empty()
            && let Ok(length) = self.ours.write(&self.typed)
        {
            self.typed.drain(..length);
        }
    }

    /// Waits for a slow client until there is room for more output.
    pub(super) fn wait_for_client(&mut self) {
        loop {
            let now = Instant::now();
            self.serve(now);
            let (Some(attached), Some(until)) = (&self.attached, self.paused_until(now)) else { return };
            let left = Timespec::try_from(until - now).ok();
            let _ = poll(&mut [PollFd::new(attached, PollFlags::OUT)], left.as_ref());
        }
    }

    fn handle(&mut self, frame: Frame, now: Instant) {
        match frame {
            Frame::Data(data) => {
                self.typed.extend(data);
                self.active = now;
            }
            Frame::Resize(size) => {
                let _ = resize(&self.ours, size);
            }
            // Only the shim sends these.
            Frame::TakenOver | Frame::Ended(_) => {}
        }
    }

    /// Reports the end of the job to the attached client.
    pub(super) fn finish(mut self, exit: &Exit) {
        self.serve(Instant::now());
        if let Some(attached) = self.attached.take() {
            attached.close(&self.scrollback, &Frame::Ended(exit.clone()), Instant::now() + CLOSE_TIMEOUT);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Sets the size. The kernel signals the foreground programs.
fn resize(terminal: impl AsFd, size: TerminalSize) -> rustix::io::Result<()> {
    tcsetwinsize(terminal, Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 })
}
