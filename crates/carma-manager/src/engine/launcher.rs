//! Launching, from threads of their own: each launch waits for its shim to begin.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use carma_core::{AttemptId, Placement};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::MpsControl;

use super::exits::Remains;
use super::input::Input;
use super::pool::Pool;
use super::setup::World;
use crate::attempt::RunAs;
use crate::launch::{Assignment, Prepared, Surroundings, plan};
use crate::request::{JobRequest, Owner};
use crate::store::{Reader, Store, StoreError};
use crate::supervise::{AttemptFolder, Standing, find};

/// Launches at the same time. Most of one is waiting.
const THREADS: usize = 4;
/// How long a shim that has begun may take to say who it is.
const PATIENCE: Duration = Duration::from_secs(10);

/// An attempt to launch; it is written down already.
#[derive(Debug)]
pub(super) struct LaunchOrder {
    pub(super) attempt: AttemptId,
    pub(super) owner: Owner,
    pub(super) placement: Placement,
    pub(super) devices: Vec<DeviceUuid>,
    pub(super) mps: Option<MpsControl>,
}

/// What all launches have in common.
#[derive(Debug)]
pub(super) struct Launching {
    pub(super) state: PathBuf,
    pub(super) program: PathBuf,
    pub(super) log_limit: u64,
    pub(super) world: World,
}

/// The launching threads. Dropped, they end when all was launched.
#[derive(Debug)]
pub(super) struct Launcher(Pool<Box<LaunchOrder>>);

impl Launcher {
    pub(super) fn start(launching: Launching, store: &Store, inputs: &Sender<Input>) -> Result<Self, StartError> {
        let launching = Arc::new(launching);
        let hire = || {
            let (reader, launching, inputs) = (store.reader()?, Arc::clone(&launching), inputs.clone());
            Ok(move |order: Box<LaunchOrder>| {
                let input = match launch(&order, &reader, &launching) {
                    Ok(folder) => begun(order.attempt, &folder, &launching.program),
                    Err(reason) => Input::NotLaunched(order.attempt, reason),
                };
                inputs.send(input).is_ok()
            })
        };
        Pool::start("launches", THREADS, hire).map(Self)
    }

    /// Whether something of what became of a launch is still to be told.
    pub(super) fn is_busy(&self) -> bool {
        self.0.is_busy()
    }

    pub(super) fn launch(&self, order: Box<LaunchOrder>) {
        self.0.give(order);
    }
}

/// Why no launching thread could be started.
#[derive(Debug, thiserror::Error)]
pub(super) enum StartError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

fn launch(order: &LaunchOrder, reader: &Reader, launching: &Launching) -> Result<AttemptFolder, String> {
    let job = order.attempt.job;
    let mut request: JobRequest =
        reader.request(job).map_err(|error| error.to_string())?.ok_or_else(|| format!("what {job} asked for is no longer known"))?;
    launching.world.prepare(&mut request.environment);
    let user = run_as(&order.owner)?;
    let folder = AttemptFolder::of(&launching.state, order.attempt);
    let assignment = Assignment {
        attempt: order.attempt,
        request: &request,
        user: user.as_ref(),
        array_index: request.array.as_ref().map(|label| label.index),
        placement: &order.placement,
        devices: &order.devices,
        mps: order.mps.as_ref(),
        folder: &folder,
        log_limit: launching.log_limit,
    };
    let plan = plan(&assignment, &Surroundings::look(&request, user.as_ref())).map_err(|error| error.to_string())?;
    // A launch that was cut short before its shim began has left a folder in which nothing ever ran.
    if folder.path().exists() && matches!(find(&folder), Ok(Standing::NeverBegun)) {
        fs::remove_dir_all(folder.path()).map_err(|error| format!("{}: {error}", folder.path().display()))?;
    }
    let prepared = Prepared::new(folder.clone()).map_err(|error| error.to_string())?;
    prepared.launch(&plan, &launching.program).map_err(|error| error.to_string())
}

/// What became of an attempt whose shim has begun.
pub(super) fn begun(attempt: AttemptId, folder: &AttemptFolder, program: &Path) -> Input {
    let until = Instant::now() + PATIENCE;
    loop {
        match find(folder) {
            Ok(Standing::Running(supervised)) => return Input::Launched(attempt, Box::new(supervised)),
            Ok(Standing::Starting) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            standing => return Input::Ended(Box::new(Remains::gather(attempt, folder, standing, program))),
        }
    }
}

/// Whom to run a job as: root runs it as its user, and everybody else as themselves.
pub(super) fn run_as(owner: &Owner) -> Result<Option<RunAs>, String> {
    if !nix::unistd::geteuid().is_root() || owner.uid == 0 {
        return Ok(None);
    }
    let user = nix::unistd::User::from_uid(owner.uid.into()).ok().flatten();
    let user = user.ok_or_else(|| format!("user {} ({}) is no longer known here", owner.name, owner.uid))?;
    Ok(Some(RunAs { uid: owner.uid, gid: user.gid.as_raw(), name: user.name, home: user.dir }))
}
