//! `carma catalogue`: the known workloads, and your own beside them.

mod add;
mod view;

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use carma_sim::{Catalogue, Workload};
use clap::{Args, Subcommand};

/// Where workloads come from.
#[derive(Debug, Args)]
pub(crate) struct CatalogueArguments {
    /// Also read workloads from this file (TOML). Can be repeated.
    #[arg(long, value_name = "FILE")]
    catalogue: Vec<PathBuf>,
}

impl CatalogueArguments {
    /// The shipped workloads, the user's own file if it exists, and the given files.
    ///
    /// Jobs may name workloads of the user's own file. They are drawn at random only if the file is given, so that a seed gives the same
    /// trace to all users.
    pub(crate) fn load(&self) -> Result<Catalogue> {
        let mut catalogue = Catalogue::shipped();
        if let Some(own) = self.own_not_given() {
            catalogue.extend_named_only(&read(&own)?).with_context(|| format!("{} cannot be used", own.display()))?;
        }
        for file in &self.catalogue {
            extend(&mut catalogue, file, &read(file)?)?;
        }
        Ok(catalogue)
    }

    /// All files that are read, the user's own first.
    pub(crate) fn read_files(&self) -> Vec<PathBuf> {
        self.own_not_given().into_iter().chain(self.catalogue.iter().cloned()).collect()
    }

    /// The user's own file, if it exists and is not one of the given ones.
    fn own_not_given(&self) -> Option<PathBuf> {
        own_file().filter(|own| own.exists() && !self.catalogue.iter().any(|given| same(own, given)))
    }

    /// The given files.
    pub(crate) fn files(&self) -> &[PathBuf] {
        &self.catalogue
    }
}

/// The workload with this name, or an error with similar names.
pub(crate) fn find<'a>(catalogue: &'a Catalogue, name: &str) -> Result<&'a Workload> {
    catalogue.find(name).map(|id| catalogue.get(id)).ok_or_else(|| {
        let suggestion = catalogue.nearest(name).map(|nearest| format!("; did you mean {nearest:?}?")).unwrap_or_default();
        anyhow!("{name:?} is not a workload of the catalogue{suggestion}")
    })
}

fn same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

fn read(file: &Path) -> Result<String> {
    fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))
}

/// Like [`read`]; a missing file counts as empty.
fn read_or_empty(file: &Path) -> Result<String> {
    match fs::read_to_string(file) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(String::new()),
        other => other.with_context(|| format!("cannot read {}", file.display())),
    }
}

fn extend(catalogue: &mut Catalogue, file: &Path, text: &str) -> Result<()> {
    catalogue.extend(text).with_context(|| format!("{} cannot be used", file.display()))
}

/// The default file of the user's own workloads.
fn own_file() -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    // The XDG standard ignores a folder that is not absolute.
    let folder = set("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute()).or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(folder.join("carma").join("workloads.toml"))
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List all workloads with their load on a GPU of their own.
    #[command(after_help = "Example:\n  carma catalogue list --json")]
    List {
        #[command(flatten)]
        catalogue: CatalogueArguments,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Show a workload, in the format of a catalogue file.
    #[command(after_help = "Example:\n  carma catalogue show resnet50_imagenet_bs64")]
    Show {
        /// The name of the workload, or one of its other names.
        name: String,
        #[command(flatten)]
        catalogue: CatalogueArguments,
        /// Print JSON.
        #[arg(long)]
        json: bool,
    },
    /// Add your own workloads from a file, either in the format of `carma catalogue show`, or a table of solo measurements as for `carma
    /// calibrate` (.csv).
    ///
    /// All workloads are checked first; if one is wrong, nothing is written. Jobs of a trace may name workloads of your own catalogue in
    /// every command. `carma trace generate` and `map` draw from it only if `--catalogue` names it. The configuration folder is ~/.config, or `$XDG_CONFIG_HOME`.
    #[command(after_help = "Example:\n  carma catalogue add my-workloads.toml")]
    Add {
        /// The file (TOML or CSV).
        file: PathBuf,
        /// The catalogue file to extend; it is created if necessary [default: carma/workloads.toml in your configuration folder].
        #[arg(long, value_name = "CATALOGUE_FILE")]
        to: Option<PathBuf>,
    },
}

/// Runs the command.
pub(crate) fn run(command: &Command, output: &mut impl Write) -> Result<()> {
    match command {
        Command::List { catalogue, json } => view::list(&catalogue.load()?, *json, output),
        Command::Show { name, catalogue, json } => view::show(&catalogue.load()?, name, *json, output),
        Command::Add { file, to } => {
            let to = to.clone().or_else(own_file).ok_or_else(|| anyhow!("no home folder: give a catalogue file with --to"))?;
            add::add(file, &to, output)
        }
    }
}
