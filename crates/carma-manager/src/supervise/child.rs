//! Starting a process for an attempt: as its user, in its folder and control group, and never outliving the shim.

use std::fs::{self, File};
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::process::{Pid, Resource, Rlimit, Signal, getpid, getppid, getrlimit, ioctl_tiocsctty};
use rustix::process::{set_parent_process_death_signal, setrlimit, setsid, umask};

use super::cgroup::Cgroup;
use crate::attempt::Order;
use crate::credentials::Credentials;
use crate::umask::Umask;

/// When the host runs out of memory, the kernel kills a job before other processes, and its supervisor last.
pub(super) const JOB_OOM_SCORE: i32 = 100;
const SUPERVISOR_OOM_SCORE: i32 = -900;

/// Steps of a new process before exec. Each is reported to the parent as it begins, so that a failure can be explained.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Session,
    User,
    Folder,
    Program,
}

/// The standard streams of a new process.
#[derive(Clone, Copy)]
pub(super) enum Streams<'a> {
    /// None.
    None,
    /// No input, and pipes for output and errors.
    Pipes,
    /// A terminal for all three, which becomes the terminal of its session.
    Terminal(&'a OwnedFd),
}

impl Streams<'_> {
    fn of(self, command: &mut Command) -> io::Result<&mut Command> {
        Ok(match self {
            Self::None => command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()),
            Self::Pipes => command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()),
            Self::Terminal(terminal) => command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal.try_clone()?),
        })
    }
}

/// Starts a command of an attempt. The error explains the reason.
pub(super) fn start(order: &Order, command: &[String], streams: Streams<'_>, cgroup: Option<&Cgroup>) -> Result<Child, String> {
    let [program, arguments @ ..] = command else { return Err("there is no command to run".to_owned()) };
    let user = order.user.as_ref().map(Credentials::of).transpose().map_err(|error| format!("cannot find the user's groups: {error}"))?;
    let pipe = io::pipe().and_then(|(reader, writer)| Ok((reader, writer.try_clone()?, writer)));
    let (mut steps, step, ours) = pipe.map_err(|error| format!("cannot make a pipe: {error}"))?;
    // Without a control group, the processes of the job are found as descendants of the shim.
    let procs_files = cgroup.and_then(|cgroup| cgroup.procs_files().ok()).unwrap_or_default();
    let mut spawned = Command::new(program);
    spawned.args(arguments).env_clear().envs(&order.environment);
    streams.of(&mut spawned).map_err(|error| format!("cannot give it its terminal: {error}"))?;
    let has_terminal = matches!(streams, Streams::Terminal(_));
    before_exec(&mut spawned, enter(step, procs_files, user, order, has_terminal));
    let child = spawned.spawn();
    drop((spawned, ours));
    child.map_err(|error| {
        let mut last = Vec::new();
        let _ = steps.read_to_end(&mut last);
        explain(last.last().copied(), &error, program, order)
    })
}

#[expect(unsafe_code, reason = "code between fork and exec")]
fn before_exec(command: &mut Command, enter: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: the shim has one thread, so no lock can be held by a thread that the new process lacks.
    unsafe { command.pre_exec(enter) };
}

/// Setup of the new process before exec.
fn enter(
    mut steps: PipeWriter,
    procs_files: Vec<File>,
    user: Option<Credentials>,
    order: &Order,
    has_terminal: bool,
) -> impl FnMut() -> io::Result<()> + use<> {
    let (shim, folder, open_files, job_umask) = (getpid(), order.directory.clone(), order.open_files, order.job_umask());
    move || {
        steps.write_all(&[Step::Session as u8])?;
        for mut procs_file in &procs_files {
            let _ = procs_file.write_all(b"0");
        }
        prefer_as_victim(JOB_OOM_SCORE);
        if open_files.is_some() {
            let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
            // An even lower limit is fine.
            let _ = setrlimit(Resource::Nofile, Rlimit { current: open_files, maximum });
        }
        setsid()?;
        if has_terminal {
            ioctl_tiocsctty(io::stdin())?;
        }
        // Signals that the shim blocks are meant for the job.
        SigSet::empty().thread_set_mask()?;
        steps.write_all(&[Step::User as u8])?;
        if let Some(user) = &user {
            user.assume()?;
        }
        job_umask.into_iter().for_each(set_umask);
        // After the change of user, which would undo it. The shim may have died before this took effect.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(shim) {
            return Err(io::ErrorKind::NotFound.into());
        }
        steps.write_all(&[Step::Folder as u8])?;
        std::env::set_current_dir(&folder)?;
        steps.write_all(&[Step::Program as u8])
    }
}

/// Protects a supervisor from the kernel's OOM killer, as far as allowed.
pub(super) fn spare_supervisor() {
    prefer_as_victim(SUPERVISOR_OOM_SCORE);
}

pub(super) fn prefer_as_victim(score: i32) {
    let _ = fs::write("/proc/self/oom_score_adj", score.to_string());
}

fn explain(step: Option<u8>, error: &io::Error, program: &str, order: &Order) -> String {
    let is = |step: Step| step as u8;
    match step {
        Some(step) if step == is(Step::User) => {
            format!("cannot run as {}: {error}", order.user.as_ref().map_or("its user", |user| &user.name))
        }
        Some(step) if step == is(Step::Folder) => format!("cannot enter the folder {}: {error}", order.directory.display()),
        Some(step) if step == is(Step::Program) => format!(
            "cannot run {program}: {}",
            match error.kind() {
                io::ErrorKind::NotFound if !program.contains('/') => "no folder of PATH has it".to_owned(),
                io::ErrorKind::NotFound if order.directory.join(program).exists() => {
                    "it is there, but what its first line (#!) names or its loader is not".to_owned()
                }
                io::ErrorKind::PermissionDenied => "it may not be executed (chmod +x?)".to_owned(),
                io::ErrorKind::ArgumentListTooLong => "arguments and environment are too long together".to_owned(),
                _ => error.to_string(),
            }
        ),
        _ => format!("cannot start a process: {error}"),
    }
}

/// Sets the umask of this process.
pub(super) fn set_umask(of_job: Umask) {
    umask(Mode::from_raw_mode(of_job.bits().into()));
}

/// The pid of a child.
pub(super) fn pid(child: &Child) -> Option<Pid> {
    Pid::from_raw(child.id().try_into().ok()?)
}
