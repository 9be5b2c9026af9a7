//! The manager's folders and files: their disks, owners and modes.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use carma_core::MiB;
use carma_manager::configuration::ManagerConfig;
use carma_manager::contact;
use carma_manager::places::Places;
use nix::unistd::Group;
use rustix::fs::{Access, access, statvfs};

use crate::doctor::disk::{Disk, Written};
use crate::doctor::permissions::{Entry, Kind, Permissions};

/// The size of the file that is written and synced: a page of the store.
const PAGE: usize = 4096;

/// The owner of a file.
pub(super) fn owner(path: &Path) -> Option<u32> {
    fs::metadata(path).ok().map(|metadata| metadata.uid())
}

/// The disks of the state and, if it is another one, of the logs of jobs.
pub(super) fn disks(places: &Places) -> Vec<Disk> {
    let logs = places.state.join("attempts");
    let device = |path: &Path| fs::metadata(path).ok().map(|metadata| metadata.dev());
    let apart = device(&logs).is_some_and(|logs| Some(logs) != device(&places.state));
    let folders = [("the state and logs", &places.state, !apart), ("the state", &places.state, apart), ("the logs of jobs", &logs, apart)];
    folders.into_iter().filter(|(.., checked)| *checked).filter_map(|(what, folder, _)| disk(what, folder)).collect()
}

fn disk(what: &'static str, folder: &Path) -> Option<Disk> {
    // A folder that does not exist yet is created on the disk of the one above.
    let existing = folder.ancestors().find(|folder| folder.is_dir())?;
    let status = statvfs(existing).ok()?;
    let size = |blocks: u64| MiB(blocks.saturating_mul(status.f_frsize) >> 20);
    let inodes = (status.f_files > 0).then_some((status.f_favail, status.f_files));
    let written = if existing == folder && access(folder, Access::WRITE_OK).is_ok() { written(folder) } else { Written::NotTried };
    Some(Disk { what, folder: folder.to_owned(), total: size(status.f_blocks), free: size(status.f_bavail), inodes, written })
}

/// Writes and syncs a small file, which is removed again.
fn written(folder: &Path) -> Written {
    let write = || -> io::Result<Duration> {
        let mut file = tempfile::Builder::new().prefix(".doctor-").tempfile_in(folder)?;
        let began = Instant::now();
        file.write_all(&[0; PAGE])?;
        file.as_file().sync_all()?;
        File::open(folder)?.sync_all()?;
        Ok(began.elapsed())
    };
    write().map_or_else(|error| Written::Failed(error.to_string()), Written::In)
}

/// The manager's files that exist.
pub(super) fn permissions(places: &Places, configuration: &Path, owner: u32, settings: &ManagerConfig) -> Permissions {
    let state = |name: &str| places.state.join(name);
    let database = places.database();
    let beside = |suffix: &str| database.with_extension(format!("db{suffix}"));
    let secrets = [database.clone(), beside("-wal"), beside("-shm"), state("agents.secret"), contact::file(&places.state)];
    let network = ["tokens", "key.pem"].map(|name| state("network").join(name));
    let given = [&settings.network.tokens, &settings.network.key].into_iter().flatten().cloned();
    let secrets = secrets.into_iter().chain(network).chain(given).map(|path| (path, Kind::Secret));
    let others =
        [(places.state.clone(), Kind::State), (places.socket.clone(), Kind::Socket), (configuration.to_owned(), Kind::Configuration)];
    let entries = others.into_iter().chain(secrets).filter_map(|(path, kind)| entry(path, kind)).collect();
    let exists = !matches!(Group::from_name(&settings.operators), Ok(None));
    Permissions { entries, owner, operators: (settings.operators.clone(), exists) }
}

fn entry(path: PathBuf, kind: Kind) -> Option<Entry> {
    let metadata = fs::metadata(&path).ok()?;
    let is_kind = kind != Kind::Socket || metadata.file_type().is_socket();
    is_kind.then(|| Entry { owner: metadata.uid(), mode: metadata.mode(), path, kind })
}
