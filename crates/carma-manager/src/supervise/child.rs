//! Starting a process for an attempt: as its user, in its folder and control group, and never outliving the shim.

use std::fs;
use std::io::{self, PipeWriter, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio, exit};

use nix::sys::signal::SigSet;
use rustix::fs::Mode;
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, getpid, getppid, getrlimit, ioctl_tiocsctty};
use rustix::process::{set_parent_process_death_signal, setrlimit, setsid, umask, waitpid};

use super::cgroup::{Cgroup, GroupHandles};
use super::fork::Fork;
use crate::attempt::Order;
use crate::credentials::Credentials;
use crate::umask::Umask;

/// When the host runs out of memory, the kernel kills a job before other processes, and its supervisor last.
pub(super) const JOB_OOM_SCORE: i32 = 100;
const SUPERVISOR_OOM_SCORE: i32 = -900;
/// The exit of a process that could not run its program, as in shells. Its parent hears the reason by a pipe.
const EXIT_NOT_RUN: i32 = 127;

/// Steps of a new process before exec. Each is reported to the parent as it begins, so that a failure can be explained.
#[derive(Clone, Copy)]
#[repr(u8)]
enum Step {
    Session,
    User,
    Folder,
    Program,
}

/// The message after a failed last step: this byte, and the error number.
const FAILED: u8 = u8::MAX;

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

/// A started process.
pub(super) struct Child {
    pub(super) pid: Pid,
    /// Its output and errors, if they are pipes.
    pub(super) pipes: [Option<OwnedFd>; 2],
}

/// Starts a command of an attempt. The error explains the reason.
pub(super) fn start(order: &Order, command: &[String], streams: Streams<'_>, cgroup: Option<&Cgroup>) -> Result<Child, String> {
    let [program, arguments @ ..] = command else { return Err("there is no command to run".to_owned()) };
    let user = order.user.as_ref().map(Credentials::of).transpose().map_err(|error| format!("cannot find the user's groups: {error}"))?;
    let unusable = |error| format!("cannot make a pipe: {error}");
    let (steps, step) = io::pipe().map_err(unusable)?;
    let pipe = || matches!(streams, Streams::Pipes).then(io::pipe).transpose().map_err(unusable);
    let ((output, to_output), (errors, to_errors)) = (pipe()?.unzip(), pipe()?.unzip());
    // Without a control group, the processes of the job are found as descendants of the shim.
    let mut group_handles = cgroup.and_then(|cgroup| cgroup.group_handles().ok()).unwrap_or_default();
    let shim = getpid();
    match group_handles.fork().map_err(|error| format!("cannot start a process: {error}"))? {
        Fork::Child => {
            let mut report = step.try_clone();
            let mut spawned = Command::new(program);
            spawned.args(arguments).env_clear().envs(&order.environment);
            let has_terminal = matches!(streams, Streams::Terminal(_));
            let streams = connect(&mut spawned, streams, to_output, to_errors);
            before_exec(&mut spawned, enter(step, shim, group_handles, user, order, has_terminal));
            let error = streams.map_or_else(|error| error, |()| spawned.exec());
            let number = error.raw_os_error().unwrap_or(libc::EINVAL).to_le_bytes();
            let _ = report.as_mut().map(|report| report.write_all(&[&[FAILED], &number[..]].concat()));
            exit(EXIT_NOT_RUN)
        }
        Fork::Parent(pid) => {
            drop((step, to_output, to_errors));
            let Some((last, error)) = failure(steps) else {
                return Ok(Child { pid, pipes: [output.map(OwnedFd::from), errors.map(OwnedFd::from)] });
            };
            let _ = waitpid(Some(pid), WaitOptions::empty());
            Err(explain(last, &error, program, order))
        }
    }
}

/// Gives a new process its streams.
fn connect(command: &mut Command, streams: Streams<'_>, output: Option<PipeWriter>, errors: Option<PipeWriter>) -> io::Result<()> {
    let of = |pipe: Option<PipeWriter>| pipe.map_or_else(Stdio::null, Stdio::from);
    match streams {
        Streams::None | Streams::Pipes => command.stdin(Stdio::null()).stdout(of(output)).stderr(of(errors)),
        Streams::Terminal(terminal) => command.stdin(terminal.try_clone()?).stdout(terminal.try_clone()?).stderr(terminal.try_clone()?),
    };
    Ok(())
}

/// Waits until a new process runs its program; its last step and the error if it does not.
fn failure(mut steps: impl Read) -> Option<(Option<u8>, io::Error)> {
    let mut told = Vec::new();
    let _ = steps.read_to_end(&mut told);
    let (begun, error) = told.split_last_chunk::<4>()?;
    let begun = begun.strip_suffix(&[FAILED])?;
    Some((begun.last().copied(), io::Error::from_raw_os_error(i32::from_le_bytes(*error))))
}

#[expect(unsafe_code, reason = "code between fork and exec")]
fn before_exec(command: &mut Command, enter: impl FnMut() -> io::Result<()> + Send + Sync + 'static) {
    // SAFETY: it is run by a process with one thread, so no lock can be held by another one.
    unsafe { command.pre_exec(enter) };
}

/// Setup of the new process before exec.
fn enter(
    mut steps: PipeWriter,
    shim: Pid,
    group_handles: GroupHandles,
    user: Option<Credentials>,
    order: &Order,
    has_terminal: bool,
) -> impl FnMut() -> io::Result<()> + use<> {
    let (folder, open_files, job_umask) = (order.directory.clone(), order.open_files, order.job_umask());
    move || {
        steps.write_all(&[Step::Session as u8])?;
        group_handles.join();
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
                io::ErrorKind::NotFound if !program.contains('/') => "it is not in PATH".to_owned(),
                io::ErrorKind::NotFound if order.directory.join(program).exists() => {
                    "its interpreter (first line, #!) or its loader is missing".to_owned()
                }
                io::ErrorKind::PermissionDenied => "it is not executable (chmod +x?)".to_owned(),
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
