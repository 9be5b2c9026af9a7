//! The user's own terminal while attached: in raw mode, so that every key goes to the job, and always restored at the end.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcgetwinsize, tcsetattr};
use signal_hook::SigId;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGWINCH};
use signal_hook::{flag, low_level};

use crate::attempt::TerminalSize;

/// A terminal in raw mode until this is dropped.
pub(super) struct RawTerminal {
    terminal: OwnedFd,
    before: Termios,
}

impl RawTerminal {
    /// Sets raw mode; unset where it is no terminal.
    pub(super) fn new(terminal: BorrowedFd<'_>) -> io::Result<Option<Self>> {
        let Ok(before) = tcgetattr(terminal) else { return Ok(None) };
        let this = Self { terminal: terminal.try_clone_to_owned()?, before };
        let mut raw = this.before.clone();
        raw.make_raw();
        tcsetattr(terminal, OptionalActions::Now, &raw)?;
        Ok(Some(this))
    }

    /// Its size, where it is known.
    pub(super) fn size(&self) -> Option<TerminalSize> {
        let size = tcgetwinsize(&self.terminal).ok().filter(|size| size.ws_row > 0 && size.ws_col > 0)?;
        Some(TerminalSize { rows: size.ws_row, columns: size.ws_col })
    }
}

impl Drop for RawTerminal {
    fn drop(&mut self) {
        let _ = tcsetattr(&self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Handles signals that would end this program and leave the terminal raw, and the one for a new size. Dropped, it restores the old handlers.
pub(super) struct Signals {
    wake: UnixStream,
    last: Arc<AtomicUsize>,
    registered: Vec<SigId>,
    over: Arc<AtomicBool>,
}

impl Signals {
    /// Handles signals from now on, in any thread.
    pub(super) fn listen() -> io::Result<Self> {
        let (wake, woken) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        let mut this = Self { wake, last: Arc::default(), registered: Vec::new(), over: Arc::default() };
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM] {
            flag::register_conditional_default(signal, Arc::clone(&this.over))?;
            this.registered.push(flag::register_usize(signal, Arc::clone(&this.last), signal.unsigned_abs() as usize)?);
            this.registered.push(low_level::pipe::register(signal, woken.try_clone()?)?);
        }
        this.registered.push(low_level::pipe::register(SIGWINCH, woken)?);
        Ok(this)
    }

    /// Reads the signals that came. Answers the one that ends this program, if any.
    pub(super) fn pending(&self) -> Option<i32> {
        while io::Read::read(&mut &self.wake, &mut [0; 64]).is_ok_and(|length| length > 0) {}
        match self.last.load(Ordering::SeqCst) {
            0 => None,
            signal => i32::try_from(signal).ok(),
        }
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.over.store(true, Ordering::SeqCst);
        self.registered.drain(..).for_each(|signal| {
            low_level::unregister(signal);
        });
    }
}
