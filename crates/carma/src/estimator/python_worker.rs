//! Input of estimators for a measured row: its layers, and the events of its dry run, made by the Python package where needed.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::python::Package;

/// The kind of input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Allocation events.
    Trace,
    /// The description of its layers.
    Describe,
    /// Its memory on a real GPU.
    Measure,
}

impl Kind {
    const fn name(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Describe => "describe",
            Self::Measure => "measure",
        }
    }
}

/// One Python process that handles recipe after recipe, and its output folder.
pub(super) struct PythonWorker {
    package: Package,
    folder: PathBuf,
    _temporary: Option<TempDir>,
    running: Option<(Child, ChildStdin, BufReader<ChildStdout>)>,
    /// Whether PyTorch is installed; unset before the first start.
    torch: Option<bool>,
}

impl PythonWorker {
    /// `keep` is a folder that caches the output.
    pub(super) fn new(python: Option<&Path>, keep: Option<&Path>) -> Result<Self> {
        let temporary = if keep.is_none() { Some(tempfile::tempdir().context("cannot create a temporary folder")?) } else { None };
        let folder =
            keep.map(Path::to_path_buf).or_else(|| temporary.as_ref().map(|folder| folder.path().to_path_buf())).unwrap_or_default();
        fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self { package: Package::unpack(python)?, folder, _temporary: temporary, running: None, torch: None })
    }

    /// Whether PyTorch finds a GPU.
    pub(super) fn has_gpu(&self) -> Result<bool> {
        let code = "import sys, torch; sys.exit(0 if torch.cuda.is_available() else 1)";
        let status = std::process::Command::new(self.package.interpreter()).args(["-c", code]).stderr(Stdio::null()).status();
        Ok(status.with_context(|| format!("cannot start {}", self.package.interpreter().display()))?.success())
    }

    /// Whether a row needed PyTorch, and it is not installed.
    pub(super) fn lacks_torch(&self) -> bool {
        self.torch == Some(false)
    }

    fn imports_torch(&self) -> bool {
        // Without importing it, which takes seconds.
        let code = "import importlib.util as u, sys; sys.exit(0 if u.find_spec('torch') else 1)";
        let status = std::process::Command::new(self.package.interpreter()).args(["-c", code]).stderr(Stdio::null()).status();
        status.is_ok_and(|status| status.success())
    }

    /// Makes the input for a recipe, unless it is cached; returns its file.
    pub(super) fn make(&mut self, kind: Kind, name: &str, recipe: &Value) -> Result<PathBuf> {
        let file = self.folder.join(format!("{}.{}", sanitised(name), kind.name()));
        if file.exists() {
            return Ok(file);
        }
        let answer = self.request(&json!({ "id": name, "mode": kind.name(), "recipe": recipe, "output": file }))?;
        if answer["ok"] == true { Ok(file) } else { Err(anyhow!("{}", answer["error"].as_str().unwrap_or("no reason given").to_owned())) }
    }

    fn request(&mut self, request: &Value) -> Result<Value> {
        if self.torch.is_none() {
            self.torch = Some(self.imports_torch());
        }
        if self.lacks_torch() {
            bail!(
                "{} does not start, or has no PyTorch: install it (pip install torch), or name another interpreter with --python or CARMA_PYTHON",
                self.package.interpreter().display()
            );
        }
        if self.running.is_none() {
            let mut command = self.package.memory();
            command.arg("batch").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
            let interpreter = self.package.interpreter().display();
            let mut child = command.spawn().with_context(|| format!("cannot start {interpreter}"))?;
            let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else { bail!("cannot talk to {interpreter}") };
            self.running = Some((child, input, BufReader::new(output)));
        }
        let Some((_, input, output)) = &mut self.running else { bail!("the Python process is gone") };
        let mut line = String::new();
        let exchanged = writeln!(input, "{request}").and_then(|()| input.flush()).and_then(|()| output.read_line(&mut line));
        if !matches!(exchanged, Ok(read) if read > 0) {
            self.running = None;
            bail!("{} ended before it answered (--python names another interpreter)", self.package.interpreter().display());
        }
        serde_json::from_str(&line).context("the Python process did not answer in JSON")
    }
}

impl Drop for PythonWorker {
    fn drop(&mut self) {
        if let Some((mut child, input, _)) = self.running.take() {
            drop(input);
            let _ = child.wait();
        }
    }
}

/// A valid file name: letters and digits, and a digest that keeps long names distinct.
fn sanitised(name: &str) -> String {
    let plain: String = name.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).take(100).collect();
    let digest = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
    format!("{plain}-{digest:08x}")
}
