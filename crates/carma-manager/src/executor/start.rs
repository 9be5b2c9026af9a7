//! Starts an attempt on this host: plans its command, makes its folder, and hands it to a shim.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use carma_core::JobId;
use carma_gpu::Driver;

use super::StartOrder;
use super::memory_limits::{Limited, Unlimited, limit};
use crate::attempt::HostLimits;
use crate::launch::{Assignment, NotLaunched, Prepared, checkpoint_folder, look_up, plan, run_as};
use crate::request::JobRequest;
use crate::supervise::{AttemptFolder, AttemptState, Cgroup, FolderError, LaunchServer, find};
use crate::untrusted::remove_tree;
use crate::world::World;

/// Timeout for a started shim to identify itself.
const SHIM_TIMEOUT: Duration = Duration::from_secs(10);

/// Common settings of all attempts on this host.
#[derive(Debug)]
pub(crate) struct LocalSettings {
    /// The folder of the manager's state.
    pub(crate) state: PathBuf,
    /// The program that looks into folders of users, as these users.
    pub(crate) program: PathBuf,
    /// Starts shims.
    pub(crate) launch_server: Arc<LaunchServer>,
    /// The most processes and threads of a job.
    pub(crate) processes: Option<u64>,
    /// Jobs cannot open the device files of other GPUs.
    pub(crate) isolate_gpus: bool,
    /// The folder with a folder of checkpoints for each job; unset: beside the attempts. Agents use one that all servers share.
    pub(crate) checkpoints: Option<PathBuf>,
    pub(crate) world: World,
    /// The driver that limits the memory of attempts; unset: none does.
    pub(crate) driver: Option<Arc<Driver>>,
}

impl LocalSettings {
    fn checkpoint_folder(&self, folder: &AttemptFolder, job: JobId) -> PathBuf {
        self.checkpoints.as_ref().map_or_else(|| checkpoint_folder(folder), |shared| shared.join(job.0.to_string()).join("checkpoint"))
    }

    pub(super) fn attempts(&self) -> PathBuf {
        self.state.join("attempts")
    }
}

/// Hands an attempt to a shim, unless it has one. Returns where it runs without its memory limits.
pub(super) fn start(order: &StartOrder, mut request: JobRequest, settings: &LocalSettings) -> Result<Option<Unlimited>, NotLaunched> {
    settings.world.prepare(&mut request.environment);
    let user = run_as(&order.owner)?;
    let folder = AttemptFolder::of(&settings.state, order.attempt);
    let assignment = Assignment {
        attempt: order.attempt,
        request: &request,
        owner: &order.owner.name,
        user: user.as_ref(),
        placement: &order.placement,
        devices: &order.devices,
        mps: order.mps.as_ref(),
        folder: &folder,
        log_limit: order.log_limit,
        limits: HostLimits {
            memory: request.resources.host_memory,
            cpus: request.resources.cpus,
            processes: settings.processes,
            gpus: order.gpu_files.clone().filter(|_| settings.isolate_gpus),
        },
        checkpoint_folder: settings.checkpoint_folder(&folder, order.attempt.job),
        checkpoints: request.may_checkpoint.then(|| order.checkpoints.scaled(settings.world.speed)),
    };
    let lookup = look_up(&request, user.as_ref(), &settings.program).map_err(NotLaunched::Job)?;
    let mut plan = plan(&assignment, &lookup).map_err(|error| NotLaunched::Job(error.to_string()))?;
    if folder.path().exists() {
        match find(&folder) {
            // A launch that was interrupted before its shim began left an unused folder.
            Ok(AttemptState::NeverStarted) => {
                let unused = folder.order().ok().flatten().and_then(|order| Cgroup::at(&order.group?));
                unused.iter().for_each(Cgroup::end);
                let removed = remove_tree(folder.path());
                removed.map_err(|error| NotLaunched::Host(format!("{}: {error}", folder.path().display())))?;
            }
            // It was launched before, and is not launched twice.
            Ok(_) => return Ok(None),
            Err(error) => return Err(NotLaunched::by_host(error)),
        }
    }
    let prepared = Prepared::new(folder).map_err(NotLaunched::by_host)?;
    let Limited { group, unlimited } = limit(order, &plan.order, settings.driver.as_deref())?;
    plan.order.group = group.as_ref().map(|group| group.folders().clone());
    let launched = prepared.launch(plan, &settings.launch_server);
    launched.map(|_| unlimited).map_err(|error| {
        group.iter().for_each(Cgroup::end);
        NotLaunched::by_host(error)
    })
}

/// The state of an attempt. A started shim gets time to identify itself.
pub(super) fn wait_for_shim(folder: &AttemptFolder) -> Result<AttemptState, FolderError> {
    let until = Instant::now() + SHIM_TIMEOUT;
    loop {
        match find(folder) {
            Ok(AttemptState::Starting) if Instant::now() < until => thread::sleep(Duration::from_millis(1)),
            state => return state,
        }
    }
}
