//! Small tasks in folders that a user controls, done by a process with the user's rights: a folder on a file system that does not answer delays only
//! that process, which is killed at its time limit.

use std::io::{self, Read};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::host_facts::LookupQuestion;
use crate::credentials::Credentials;
use crate::untrusted::empty_folder;

/// The longest time for a task.
const LIMIT: Duration = Duration::from_secs(10);
/// The longest answer. The user can make the process say anything.
const MAX_ANSWER: u64 = 64 << 10;

/// A task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub enum UserTask {
    /// Looks up what a job needs of its host.
    LookUp(LookupQuestion),
    /// Removes everything in a folder.
    Empty(PathBuf),
}

impl UserTask {
    /// Does the task with the rights of this process, and answers in JSON.
    pub fn perform(self) -> io::Result<String> {
        Ok(match self {
            Self::LookUp(question) => serde_json::to_string(&question.answer())?,
            Self::Empty(folder) => serde_json::to_string(&empty_folder(&folder)?)?,
        })
    }

    /// Lets `program user-task` do the task as a user.
    pub(crate) fn run<T: DeserializeOwned>(&self, user: io::Result<Credentials>, program: &Path) -> io::Result<T> {
        let user = user?;
        let mut command = Command::new(program);
        command.arg("user-task").arg(serde_json::to_string(self)?).env_clear().current_dir("/");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        become_user(&mut command, user);
        let mut child = command.spawn()?;
        let answer = answer(&mut child, Instant::now() + LIMIT);
        end(child);
        Ok(serde_json::from_slice(&answer?)?)
    }
}

/// Kills a process. One that is stuck in the kernel ends later.
fn end(mut child: Child) {
    let _ = child.kill();
    if !matches!(child.try_wait(), Ok(Some(_))) {
        // Without a thread it stays a zombie.
        let _ = thread::Builder::new().name("user-task".to_owned()).spawn(move || child.wait());
    }
}

#[expect(unsafe_code, reason = "code between fork and exec")]
fn become_user(command: &mut Command, user: Credentials) {
    // SAFETY: three system calls, which use no memory or lock of another thread.
    unsafe { command.pre_exec(move || user.assume()) };
}

/// What a process prints until it ends, unless that takes too long.
fn answer(child: &mut Child, until: Instant) -> io::Result<Vec<u8>> {
    let mut output = child.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let ready = poll(&mut [PollFd::new(&output, PollFlags::IN)], Timespec::try_from(left).ok().as_ref());
        match ready {
            Ok(0) => return Err(io::Error::new(io::ErrorKind::TimedOut, format!("no answer within {} s", LIMIT.as_secs()))),
            Ok(_) => {}
            Err(rustix::io::Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        match output.read(&mut piece)? {
            0 if answer.is_empty() => return Err(io::Error::other("it failed")),
            0 => return Ok(answer),
            length => answer.extend_from_slice(&piece[..length]),
        }
        if answer.len() as u64 > MAX_ANSWER {
            return Err(io::Error::other("its answer is too long"));
        }
    }
}
