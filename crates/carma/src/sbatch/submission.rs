//! The script of a submission, and the call of sbatch.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail};

use super::options::Line;
use super::plan::Plan;
use super::wrapper::{check, wrapped};

/// What runs: a script in a file, or the command of `--wrap`.
#[derive(Debug)]
pub(super) struct Batch {
    /// The name of the script's file: Slurm calls the job after it.
    pub(super) name: String,
    bytes: Vec<u8>,
    /// The arguments of the script.
    pub(super) arguments: Vec<String>,
    /// The word that names the script; none with `--wrap`.
    word: Option<String>,
}

impl Batch {
    /// Reads the script that a line for sbatch names.
    pub(super) fn read(line: &Line) -> Result<Self> {
        let command = line.options.iter().rev().find(|option| option.name == "wrap").and_then(|option| option.value.clone());
        let (name, bytes, word, arguments) = match (command, line.rest.split_first()) {
            // As sbatch does.
            (Some(command), None) => ("wrap".to_owned(), format!("#!/bin/sh\n{command}\n").into_bytes(), None, Vec::new()),
            (Some(_), Some((script, _))) => bail!("--wrap and the script {script:?} exclude each other"),
            (None, None) => bail!("no script: carma sbatch [OPTIONS] SCRIPT [ARGUMENT]..., or --wrap COMMAND"),
            (None, Some((script, arguments))) => {
                let path = Self::find(script)?;
                let bytes = fs::read(&path).with_context(|| format!("cannot read the script {script:?}"))?;
                let name = path.file_name().map_or_else(|| script.clone(), |name| name.to_string_lossy().into_owned());
                check(script, &bytes)?;
                (name, bytes, Some(script.clone()), arguments.to_owned())
            }
        };
        Ok(Self { name, bytes, arguments, word })
    }

    /// The file of a script: from here, or from PATH like sbatch.
    fn find(script: &str) -> Result<PathBuf> {
        let path = Path::new(script);
        if path.is_file() {
            return Ok(path.to_owned());
        }
        carma_gpu::find_program(path).with_context(|| format!("script {script:?} does not exist"))
    }

    /// The script as text, for its lines of options.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }
}

/// A planned call of sbatch.
#[derive(Debug)]
pub(super) struct Submission<'a> {
    pub(super) batch: &'a Batch,
    pub(super) line: &'a Line,
    pub(super) plan: &'a Plan,
}

impl Submission<'_> {
    /// The arguments of sbatch. Options that are added stand last, so that they count. `script` is the file of the wrapped script, if it is wrapped.
    pub(super) fn arguments(&self, script: Option<&str>) -> Vec<String> {
        // A wrapped command is in the script.
        let given = self.line.options.iter().filter(|option| script.is_none() || option.name != "wrap");
        let given = given.flat_map(|option| option.words.clone());
        let added = self.plan.additions.iter().map(|addition| addition.option.clone());
        let script = script.map(str::to_owned).or_else(|| self.batch.word.clone());
        given.chain(added).chain(script).chain(self.batch.arguments.clone()).collect()
    }

    /// Runs sbatch, with its own input, output and exit code.
    pub(super) fn submit(&self, sbatch: &Path) -> Result<ExitCode> {
        let mut command = Command::new(sbatch);
        let folder = match self.plan.recovery {
            None => {
                command.args(self.arguments(None));
                None
            }
            Some(recovery) => {
                let carma = std::env::current_exe().context("cannot find this program")?;
                let folder = tempfile::Builder::new().prefix("carma-").tempdir().context("cannot create a temporary folder")?;
                // Slurm calls the job after the file, and keeps a copy of it.
                let file = folder.path().join(&self.batch.name);
                fs::write(&file, wrapped(&self.batch.bytes, &carma, recovery))
                    .with_context(|| format!("cannot write {}", file.display()))?;
                command.args(self.arguments(Some(&file.to_string_lossy())));
                Some(folder)
            }
        };
        let status = command.status().with_context(|| format!("cannot run {}", sbatch.display()))?;
        drop(folder);
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
        Ok(ExitCode::from(code as u8))
    }
}
