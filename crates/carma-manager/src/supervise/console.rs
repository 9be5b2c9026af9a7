//! The job's terminal as its shim holds it: a pseudo-terminal, what it printed last, and the socket where people attach.

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

use super::attached::Attached;
use super::folder::AttemptFolder;
use super::scrollback::Scrollback;
use crate::attempt::{Exit, RunAs, Terminal, TerminalSize};
use crate::terminal::{Frame, short};

/// No more is heard from whoever is attached while so much waits for the job to read it.
const WAITING: usize = 64 * 1024;
/// How long the end of a job waits for one who is attached and does not read; and one who is replaced is not waited for at all.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A job's terminal.
pub(super) struct Console {
    ours: File,
    /// Kept, so that a job may close its terminal and open it again.
    jobs: Option<OwnedFd>,
    listener: UnixListener,
    socket: PathBuf,
    attached: Option<Attached>,
    scrollback: Scrollback,
    typed: Vec<u8>,
    idle_limit: Option<Seconds>,
    active: Instant,
}

impl Console {
    /// Makes a terminal that is the user's, and listens for those who attach.
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
        // A backspace is to remove a letter, not a part of one.
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&jobs, OptionalActions::Now, &modes)?;
        resize(&ours, terminal.size)?;
        ioctl_fionbio(&ours, true)?;

        let (_folder, path) = short(folder)?;
        // From its first moment on it is nobody else's.
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

    /// The job's end.
    pub(super) fn jobs_end(&self) -> Option<&OwnedFd> {
        self.jobs.as_ref()
    }

    /// Where what the job prints is read.
    pub(super) fn output(&self) -> io::Result<OwnedFd> {
        self.ours.as_fd().try_clone_to_owned()
    }

    /// Nothing of the job is left: what was printed has an end.
    pub(super) fn close_jobs_end(&mut self) {
        self.jobs = None;
    }

    /// What to wait for.
    pub(super) fn interests(&self) -> Vec<PollFd<'_>> {
        let mut fds = vec![PollFd::new(&self.listener, PollFlags::IN)];
        if !self.typed.is_empty() {
            fds.push(PollFd::new(&self.ours, PollFlags::OUT));
        }
        if let Some(attached) = &self.attached {
            let mut interest = PollFlags::empty();
            interest.set(PollFlags::IN, self.typed.len() < WAITING);
            interest.set(PollFlags::OUT, attached.is_behind(&self.scrollback));
            // Without any, one who has left would be told of again and again.
            if !interest.is_empty() {
                fds.push(PollFd::new(attached, interest));
            }
        }
        fds
    }

    /// Until when nothing that is printed is to be taken, for the sake of one who reads slowly.
    pub(super) fn holds_back(&self, now: Instant) -> Option<Instant> {
        self.attached.as_ref()?.holds_back(&self.scrollback, now)
    }

    /// When it will have been idle for too long, and how long that is.
    pub(super) fn idle_at(&self) -> Option<(Instant, Seconds)> {
        let limit = self.idle_limit?;
        Some((self.active.checked_add(Duration::try_from_secs_f64(limit.get()).ok()?)?, limit))
    }

    /// Takes what was printed.
    pub(super) fn print(&mut self, printed: &[u8], now: Instant) {
        if !printed.is_empty() {
            self.scrollback.print(printed);
            self.active = now;
        }
    }

    /// Does everything that can be done without waiting.
    pub(super) fn serve(&mut self, now: Instant) {
        while let Ok((stream, _)) = self.listener.accept() {
            if let Ok(new) = Attached::new(stream, &self.scrollback, now)
                && let Some(old) = self.attached.replace(new)
            {
                old.dismiss(&self.scrollback, &Frame::TakenOver, now);
            }
            self.active = now;
        }
        if let Some(mut attached) = self.attached.take() {
            let heard = if self.typed.len() < WAITING { attached.hear(|frame| self.hear(frame, now)) } else { Ok(()) };
            if heard.and_then(|()| attached.send(&self.scrollback, now)).is_ok() {
                self.attached = Some(attached);
            }
        }
        if !self.typed.is_empty()
            && let Ok(length) = self.ours.write(&self.typed)
        {
            self.typed.drain(..length);
        }
    }

    /// Waits for one who reads slowly until there is room for more.
    pub(super) fn let_catch_up(&mut self) {
        loop {
            let now = Instant::now();
            self.serve(now);
            let (Some(attached), Some(until)) = (&self.attached, self.holds_back(now)) else { return };
            let left = Timespec::try_from(until - now).ok();
            let _ = poll(&mut [PollFd::new(attached, PollFlags::OUT)], left.as_ref());
        }
    }

    fn hear(&mut self, frame: Frame, now: Instant) {
        match frame {
            Frame::Data(data) => {
                self.typed.extend(data);
                self.active = now;
            }
            Frame::Resize(size) => {
                let _ = resize(&self.ours, size);
            }
            // Ours to say.
            Frame::TakenOver | Frame::Ended(_) => {}
        }
    }

    /// Tells whoever is attached how the job ended.
    pub(super) fn finish(mut self, exit: &Exit) {
        self.serve(Instant::now());
        if let Some(attached) = self.attached.take() {
            attached.dismiss(&self.scrollback, &Frame::Ended(exit.clone()), Instant::now() + LAST_WORDS);
        }
    }
}

impl Drop for Console {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.socket);
    }
}

/// Tells the programs in front too.
fn resize(terminal: impl AsFd, size: TerminalSize) -> rustix::io::Result<()> {
    tcsetwinsize(terminal, Winsize { ws_row: size.rows, ws_col: size.columns, ws_xpixel: 0, ws_ypixel: 0 })
}
