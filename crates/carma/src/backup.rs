//! `carma backup` and `carma restore`: copies of a manager's store.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use carma_format::count;
use carma_manager::places::{Places, SOCKET_VARIABLE};
use carma_manager::store::{Copied, back_up, restore as put_back};
use clap::Args;

/// Which manager's state.
#[derive(Debug, Args)]
struct StateFolder {
    /// The state folder of the manager [default: that of `CARMA_SOCKET`, otherwise /var/lib/carma (root) or ~/.local/state/carma].
    #[arg(long, value_name = "FOLDER")]
    state: Option<PathBuf>,
}

impl StateFolder {
    fn places(&self) -> Result<Places> {
        if let Some(state) = &self.state {
            return Ok(Places::at(state));
        }
        let Some(socket) = Places::chosen_socket() else { return Ok(Places::own()) };
        let unknown = || format!("no manager has its state beside {SOCKET_VARIABLE} ({}): name its folder with --state", socket.display());
        Places::of_socket(&socket).with_context(unknown)
    }
}

#[derive(Debug, Args)]
#[command(after_help = "The manager can run meanwhile. The file holds all jobs with their history, measurements and environment \
variables: only its owner can read it. It does not hold logs, scripts and checkpoints; these are in the folder `attempts` of the state.\n\n\
Example:\n  carma backup carma.backup")]
pub(crate) struct BackupArguments {
    /// The file to write.
    file: PathBuf,
    /// Replace the file if it exists.
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    folder: StateFolder,
}

#[derive(Debug, Args)]
#[command(after_help = "Stop the manager first (carma down). The file is checked before anything changes, and the replaced store is kept \
beside the new one. When the manager starts, it finds running jobs of the backup by their folders, as after a crash. \
It does not know jobs that were submitted after the backup, and ends them.\n\n\
Example:\n  carma down && carma restore carma.backup && carma up --detach")]
pub(crate) struct RestoreArguments {
    /// A file written by `carma backup`.
    file: PathBuf,
    #[command(flatten)]
    folder: StateFolder,
}

pub(crate) fn backup(arguments: &BackupArguments, output: &mut impl Write) -> Result<()> {
    let copied = back_up(&arguments.folder.places()?.database(), &arguments.file, arguments.force)?;
    writeln!(output, "{}: {}", arguments.file.display(), content(copied))?;
    Ok(())
}

pub(crate) fn restore(arguments: &RestoreArguments, output: &mut impl Write) -> Result<()> {
    let Places { state, .. } = arguments.folder.places()?;
    // A mistaken place would become a new state folder, which no manager reads.
    ensure!(
        arguments.folder.state.is_some() || state.is_dir(),
        "there is no folder {}: name the folder with --state to create it",
        state.display()
    );
    let store = Places::at(&state).database();
    let restored = put_back(&arguments.file, &store).context("the store was not restored")?;
    writeln!(output, "{}: {}", store.display(), content(restored.copied))?;
    if let Some(kept) = restored.kept {
        writeln!(output, "the replaced store is {}", kept.display())?;
    }
    Ok(())
}

fn content(copied: Copied) -> String {
    let Copied { jobs, unfinished, bytes } = copied;
    format!("{}, {unfinished} of them unfinished; {:.1} MiB", count(jobs as usize, "job"), bytes as f64 / f64::from(1 << 20))
}
