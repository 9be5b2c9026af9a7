//! Launching, from threads of their own: each launch waits for its shim to begin.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{io, thread};

use carma_core::{AttemptId, Placement};
use carma_gpu::DeviceUuid;
use carma_gpu::mps::MpsControl;

use super::exits::Remains;
use super::input::Input;
use super::pool::Pool;
use super::setup::World;
use crate::attempt::RunAs;
use crate::launch::{Assignment, CheckpointTerms, Prepared, Surroundings, plan};
use crate::request::{JobRequest, Owner};
use crate::store::{Reader, Store, StoreError};
use crate::supervise::{AttemptFolder, FolderError, Standing, find};
use crate::untrusted::remove_tree;

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
    /// How it is asked to checkpoint, where it can; by the manager's clock.
    pub(super) checkpoints: CheckpointTerms,
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
pub(super) struct Launcher {
    pool: Pool<Box<LaunchOrder>>,
    under_way: UnderWay,
}

/// Attempts that are being launched, and of which nothing was heard yet.
#[derive(Debug, Clone, Default)]
struct UnderWay(Arc<Mutex<HashSet<AttemptId>>>);

impl UnderWay {
    fn with<T>(&self, act: impl FnOnce(&mut HashSet<AttemptId>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Launcher {
    pub(super) fn start(launching: Launching, store: &Store, inputs: &Sender<Input>) -> Result<Self, StartError> {
        let (launching, under_way) = (Arc::new(launching), UnderWay::default());
        let hire = || {
            let (reader, launching, inputs, under_way) = (store.reader()?, Arc::clone(&launching), inputs.clone(), under_way.clone());
            Ok::<_, StartError>(move |order: Box<LaunchOrder>| {
                let attempt = order.attempt;
                let input = match launch(&order, &reader, &launching) {
                    Ok(folder) => begun(attempt, &folder, &launching.program),
                    Err(NotLaunched::Job(reason)) => Input::NotLaunched(attempt, reason),
                    Err(NotLaunched::Machine(reason)) => Input::LaunchRefused(order, reason),
                };
                let told = inputs.send(input).is_ok();
                under_way.with(|under_way| under_way.remove(&attempt));
                told
            })
        };
        let pool = Pool::start("launches", THREADS, hire)?;
        Ok(Self { pool, under_way })
    }

    /// Whether something of what became of a launch is still to be told.
    pub(super) fn is_busy(&self) -> bool {
        self.pool.is_busy()
    }

    /// Launches an attempt, unless that is just being done.
    pub(super) fn launch(&self, order: Box<LaunchOrder>) {
        if self.under_way.with(|under_way| under_way.insert(order.attempt)) {
            self.pool.give(order);
        }
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

/// Why an attempt was not launched. Nothing of it ran.
pub(crate) enum NotLaunched {
    /// It cannot be, as it was asked for.
    Job(String),
    /// The machine does not let us just now: a full disk, no more processes, users that cannot be looked up.
    Machine(String),
}

impl NotLaunched {
    /// In words.
    pub(crate) fn reason(self) -> String {
        let (Self::Job(reason) | Self::Machine(reason)) = self;
        reason
    }

    #[expect(clippy::needless_pass_by_value, reason = "errors are handed over as they are")]
    fn by_machine(error: impl ToString) -> Self {
        Self::Machine(error.to_string())
    }
}

fn launch(order: &LaunchOrder, reader: &Reader, launching: &Launching) -> Result<AttemptFolder, NotLaunched> {
    let job = order.attempt.job;
    let request = reader.request(job).map_err(NotLaunched::by_machine)?;
    let mut request: JobRequest = request.ok_or_else(|| NotLaunched::Job(format!("what {job} asked for is no longer known")))?;
    launching.world.prepare(&mut request.environment);
    let user = run_as(&order.owner)?;
    let folder = AttemptFolder::of(&launching.state, order.attempt);
    let assignment = Assignment {
        attempt: order.attempt,
        request: &request,
        owner: &order.owner.name,
        user: user.as_ref(),
        array_index: request.array.as_ref().map(|label| label.index),
        placement: &order.placement,
        devices: &order.devices,
        mps: order.mps.as_ref(),
        folder: &folder,
        log_limit: launching.log_limit,
        checkpoints: request.may_checkpoint.then(|| order.checkpoints.faster(launching.world.speed)),
    };
    let plan = plan(&assignment, &Surroundings::look(&request, user.as_ref())).map_err(|error| NotLaunched::Job(error.to_string()))?;
    if folder.path().exists() {
        match find(&folder) {
            // A launch that was cut short before its shim began has left a folder in which nothing ever ran.
            Ok(Standing::NeverBegun) => {
                let removed = remove_tree(folder.path());
                removed.map_err(|error| NotLaunched::Machine(format!("{}: {error}", folder.path().display())))?;
            }
            // It was launched before everything began anew, and is not launched twice.
            Ok(_) => return Ok(folder),
            Err(error) => return Err(NotLaunched::by_machine(error)),
        }
    }
    let prepared = Prepared::new(folder.clone()).map_err(NotLaunched::by_machine)?;
    prepared.launch(&plan, &launching.program).map_err(NotLaunched::by_machine)
}

/// What became of an attempt whose shim has begun.
pub(super) fn begun(attempt: AttemptId, folder: &AttemptFolder, program: &Path) -> Input {
    let until = Instant::now() + PATIENCE;
    loop {
        match find(folder) {
            Ok(Standing::Starting) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            standing => return stands(attempt, folder, standing, program),
        }
    }
}

/// What the engine is told of how an attempt stands. Only what is certain ends an attempt: one that cannot be looked at may still run.
pub(super) fn stands(attempt: AttemptId, folder: &AttemptFolder, standing: Result<Standing, FolderError>, program: &Path) -> Input {
    match standing {
        Ok(Standing::Running(supervised)) => Input::Launched(attempt, Box::new(supervised)),
        Ok(Standing::Ended(ended)) => Input::Ended(Box::new(Remains::gather(attempt, folder, Some(ended), program))),
        Ok(Standing::Lost) => Input::Ended(Box::new(Remains::gather(attempt, folder, None, program))),
        Ok(Standing::NeverBegun) => Input::NotLaunched(attempt, "its shim ended before it began".to_owned()),
        Ok(Standing::Starting) => Input::Unclear(attempt, "its shim does not say who it is".to_owned()),
        Err(FolderError::Damaged { path, source }) => {
            // After a power cut: nothing of before runs any more.
            eprintln!("carma: {} is damaged: {source}", path.display());
            Input::Ended(Box::new(Remains::gather(attempt, folder, None, program)))
        }
        Err(error) => Input::Unclear(attempt, error.to_string()),
    }
}

/// Whom to run a job as: root runs it as its user, and everybody else as themselves.
pub(crate) fn run_as(owner: &Owner) -> Result<Option<RunAs>, NotLaunched> {
    if !nix::unistd::geteuid().is_root() || owner.uid == 0 {
        return Ok(None);
    }
    let user = nix::unistd::User::from_uid(owner.uid.into()).map_err(NotLaunched::by_machine)?;
    let user = user.ok_or_else(|| NotLaunched::Job(format!("user {} ({}) is no longer known here", owner.name, owner.uid)))?;
    Ok(Some(RunAs { uid: owner.uid, gid: user.gid.as_raw(), name: user.name, home: user.dir }))
}
