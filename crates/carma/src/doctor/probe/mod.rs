//! What the doctor looks at, apart from GPUs: all reading, and one small file that is written and removed. The judgement is in the files above.

mod files;
mod manager;

use std::path::{Path, PathBuf};

use carma_manager::configuration::{Configuration, ManagerConfig};
use carma_manager::host::HostWatch;
use carma_manager::network_files::unusable_files;
use carma_manager::places::Places;
use carma_manager::supervise::{Enforced, GroupSupport};
use rustix::fs::{Access, access};
use rustix::process::geteuid;

use self::manager::Found;
use super::cgroups::Groups;
use super::configuration::ConfigurationFile;
use super::contradictions::{HostGpu, HostSize};
use super::disk::Disk;
use super::manager::Manager;
use super::permissions::Permissions;
use super::service::Service;
use crate::service::unit_facts;

/// Everything about the manager and what it stands on.
pub(super) struct Probe {
    pub(super) manager: Manager,
    /// Its state folder, if this user may read it.
    pub(super) state: Option<PathBuf>,
    /// Its process, if it runs on this host.
    pub(super) process: Option<u32>,
    pub(super) service: Service,
    pub(super) configuration: ConfigurationFile,
    pub(super) host: HostSize,
    pub(super) disks: Vec<Disk>,
    pub(super) permissions: Permissions,
    pub(super) groups: Groups,
    /// The limits in force, or those of the file.
    pub(super) settings: ManagerConfig,
}

/// Looks at the manager that answers, or that would be started; with a state folder, at the manager of that folder.
pub(super) fn probe(state: Option<&Path>, gpus: Vec<HostGpu>, enforced: Enforced) -> Probe {
    let Found { manager, places, process, not_enforced, in_force } = manager::find(state);
    let of_system = places == Places::system();
    let path = in_force.as_ref().map_or_else(|| places.configuration.clone(), |in_force| in_force.file.clone());
    let read = Configuration::read(&path);
    let settings = read.as_ref().map(|read| read.manager.clone()).unwrap_or_default();
    let owner = if of_system { 0 } else { files::owner(&places.state).unwrap_or_else(|| geteuid().as_raw()) };
    // Only the manager's user can tell whether the manager may use its secret files.
    let unusable = if owner == geteuid().as_raw() { unusable_files(&settings.network) } else { Vec::new() };
    let groups = match not_enforced {
        Some(not_enforced) => Groups { support: GroupSupport::of(process), not_enforced, of_manager: true, root: owner == 0 },
        None => Groups::of_this_process(enforced, GroupSupport::of(None), owner == 0),
    };
    let user = !of_system && !geteuid().is_root();
    let service = match unit_facts(user) {
        Ok(facts) => Service::Unit { user, facts },
        Err(error) => Service::NoSystemd(error.to_string().lines().next().unwrap_or_default().to_owned()),
    };
    let memory = HostWatch::new(Vec::new()).read().ok().map(|reading| reading.memory_total);
    let readable = access(&places.state, Access::READ_OK | Access::EXEC_OK).is_ok();
    Probe {
        manager,
        state: readable.then(|| places.state.clone()),
        process,
        service,
        host: HostSize { memory, gpus },
        disks: files::disks(&places),
        permissions: files::permissions(&places, &path, owner, &settings),
        groups,
        configuration: ConfigurationFile { exists: path.exists(), path, read, in_force, unusable },
        settings,
    }
}
