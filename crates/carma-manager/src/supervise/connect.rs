//! Connecting to the terminal of an attempt: a socket in its folder, which only the manager's user may use.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use super::folder::AttemptFolder;
use super::state::{AttemptState, find};

/// How long a new attempt may take to open its terminal.
const TIMEOUT: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(5);

/// Connects to the terminal of an attempt, and waits for it while the attempt is about to start.
pub fn connect_terminal(folder: &AttemptFolder) -> io::Result<UnixStream> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let refused = match short(folder).and_then(|(_folder, path)| UnixStream::connect(path)) {
            Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::ConnectionRefused) => error,
            other => return other,
        };
        let why = match find(folder).map_err(io::Error::other)? {
            AttemptState::Ended(_) | AttemptState::Lost => "it has ended",
            AttemptState::NeverStarted => "it has not begun",
            AttemptState::Running(_) if folder.order().map_err(io::Error::other)?.is_none_or(|order| order.terminal.is_none()) => {
                "it has no terminal: it was not submitted with --interactive"
            }
            AttemptState::Starting | AttemptState::Running(_) if Instant::now() < until => {
                thread::sleep(PAUSE);
                continue;
            }
            AttemptState::Starting | AttemptState::Running(_) => {
                return Err(io::Error::new(refused.kind(), format!("its terminal does not answer: {refused}")));
            }
        };
        return Err(io::Error::new(ErrorKind::NotConnected, why));
    }
}

/// A path to the socket that fits into a socket address, however long the folder's path is. Valid while the file is open.
pub(super) fn short(folder: &AttemptFolder) -> io::Result<(File, PathBuf)> {
    let open = File::open(folder.path())?;
    let path = format!("/proc/self/fd/{}/terminal", open.as_raw_fd()).into();
    Ok((open, path))
}
