//! Command lines that run a job in a container, with its GPUs, its folder and its variables.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carma_core::AttemptId;
use carma_gpu::DeviceUuid;

use super::error::PlanError;
use crate::attempt::{HostLimits, RunAs};
use crate::request::ContainerEngine;

/// Variables that describe the host and would be wrong inside an image.
const HOST_VARIABLES: [&str; 12] = [
    "PATH",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "PYTHONHOME",
    "PYTHONPATH",
    "SHELL",
    "HOSTNAME",
    "TMPDIR",
    "PWD",
    "OLDPWD",
    "XDG_RUNTIME_DIR",
    "VIRTUAL_ENV",
];

/// The container of a job.
pub(super) struct Container<'a> {
    pub(super) engine: ContainerEngine,
    pub(super) image: &'a str,
    pub(super) attempt: AttemptId,
    pub(super) user: Option<&'a RunAs>,
    pub(super) devices: &'a [DeviceUuid],
    pub(super) limits: &'a HostLimits,
    pub(super) directory: &'a Path,
    /// Paths that are mounted at the same place, besides the directory.
    pub(super) mounts: Vec<PathBuf>,
    pub(super) variables: &'a BTreeMap<String, String>,
    /// The file where the engine writes the id of the container.
    pub(super) name_file: PathBuf,
    /// Whether the job has a terminal. Apptainer passes on the one it has.
    pub(super) terminal: bool,
}

impl Container<'_> {
    /// The command line that runs this command in it.
    pub(super) fn run(&self, command: Vec<String>) -> Result<Vec<String>, PlanError> {
        if self.image.is_empty() || self.image.starts_with('-') {
            return Err(PlanError::NotAName(self.image.to_owned()));
        }
        let mut line = match self.engine {
            ContainerEngine::Docker | ContainerEngine::Podman => self.with_daemon()?,
            ContainerEngine::Apptainer => self.apptainer()?,
        };
        line.push(self.image.to_owned());
        line.extend(command);
        Ok(line)
    }

    /// The command that removes it in any state. Apptainer's containers are plain processes.
    pub(super) fn remove(&self) -> Option<Vec<String>> {
        let line = [self.engine.program(), "rm", "--force", &self.name()].map(str::to_owned);
        (self.engine != ContainerEngine::Apptainer).then(|| line.to_vec())
    }

    fn name(&self) -> String {
        format!("carma-{}-{}", self.attempt.job.0, self.attempt.number)
    }

    fn with_daemon(&self) -> Result<Vec<String>, PlanError> {
        let docker = self.engine == ContainerEngine::Docker;
        let mut line = vec![self.engine.program().to_owned(), "run".to_owned(), "--rm".to_owned()];
        if self.terminal {
            line.extend(["--interactive", "--tty"].map(str::to_owned));
        }
        let mut option = |name: &str, value: String| line.extend([name.to_owned(), value]);
        option("--name", self.name());
        option("--cidfile", text(&self.name_file)?.to_owned());
        match self.user {
            Some(user) if docker || user.uid == 0 => option("--user", format!("{}:{}", user.uid, user.gid)),
            // Rootless Podman maps users: without this, the user would be root inside.
            _ if !docker => option("--userns", "keep-id".to_owned()),
            _ => {}
        }
        match (self.devices, docker) {
            // Images may ask for all GPUs by themselves.
            ([], _) => option("--env", "NVIDIA_VISIBLE_DEVICES=void".to_owned()),
            (devices, true) => {
                let names: Vec<&str> = devices.iter().map(DeviceUuid::as_str).collect();
                option("--gpus", format!("\"device={}\"", names.join(",")));
            }
            (devices, false) => devices.iter().for_each(|device| option("--device", format!("nvidia.com/gpu={device}"))),
        }
        // The daemon's containers are not in the attempt's control group. Rootless Podman may lack the right to set limits, and would refuse to run.
        if docker {
            let HostLimits { memory, cpus, processes, gpus: _ } = self.limits;
            memory.inspect(|memory| option("--memory", format!("{}m", memory.0)));
            cpus.inspect(|cpus| option("--cpus", cpus.to_string()));
            processes.inspect(|processes| option("--pids-limit", processes.to_string()));
        }
        if self.variables.contains_key("CUDA_MPS_PIPE_DIRECTORY") {
            // MPS clients and server share memory.
            option("--ipc", "host".to_owned());
        }
        for path in self.all_mounts() {
            let path = text(path)?;
            option("--mount", format!("type=bind,{},{}", quoted(&format!("source={path}")), quoted(&format!("target={path}"))));
        }
        // Names only: the engine takes the values from its own environment, which other users cannot see.
        let inside = self.variables.keys().filter(|name| !HOST_VARIABLES.contains(&name.as_str()) && !name.starts_with("CONDA"));
        inside.for_each(|name| option("--env", name.clone()));
        option("--workdir", text(self.directory)?.to_owned());
        Ok(line)
    }

    fn apptainer(&self) -> Result<Vec<String>, PlanError> {
        let mut line = vec![self.engine.program().to_owned(), "exec".to_owned()];
        if !self.devices.is_empty() {
            line.push("--nv".to_owned());
        }
        for path in self.all_mounts() {
            let path = text(path)?;
            if path.contains([',', ':']) {
                return Err(PlanError::NotMountable(path.to_owned()));
            }
            line.extend(["--bind".to_owned(), path.to_owned()]);
        }
        line.extend(["--pwd".to_owned(), text(self.directory)?.to_owned()]);
        Ok(line)
    }

    /// Each once, and never `/`, which would hide the image.
    fn all_mounts(&self) -> impl Iterator<Item = &Path> {
        let all: std::collections::BTreeSet<&Path> = self.mounts.iter().map(PathBuf::as_path).chain([self.directory]).collect();
        all.into_iter().filter(|path| *path != Path::new("/"))
    }
}

/// A field of a comma-separated list, quoted where it contains a comma.
fn quoted(field: &str) -> String {
    format!("\"{}\"", field.replace('"', "\"\""))
}

fn text(path: &Path) -> Result<&str, PlanError> {
    path.to_str().ok_or_else(|| PlanError::NotMountable(path.display().to_string()))
}

#[cfg(test)]
mod tests {
    use carma_core::{JobId, MiB};

    use super::*;

    fn lines(engine: ContainerEngine, devices: &[&str], directory: &str, user: Option<&RunAs>) -> Result<String, PlanError> {
        let variables = ["CUDA_VISIBLE_DEVICES", "PATH", "TOKEN"].map(|name| (name.to_owned(), "secret".to_owned()));
        let devices: Vec<DeviceUuid> = devices.iter().map(|device| device.parse().unwrap()).collect();
        let container = Container {
            engine,
            image: "registry/torch:2",
            attempt: AttemptId { job: JobId(12), number: 3 },
            user,
            devices: &devices,
            limits: &HostLimits { memory: Some(MiB(4096)), cpus: Some(3), processes: Some(100), gpus: None },
            directory: directory.as_ref(),
            mounts: vec!["/home/ada".into()],
            variables: &variables.into(),
            name_file: "/state/attempts/12/3/container".into(),
            terminal: user.is_some(),
        };
        let remove = container.remove().map_or_else(|| "nothing".to_owned(), |line| line.join(" "));
        let line = container.run(["python", "-c", "print('a b')"].map(str::to_owned).to_vec())?;
        Ok(format!("{}\nthen {remove}", line.join("\n")))
    }

    #[test]
    fn command_lines_name_gpus_folders_and_variables() {
        let ada = RunAs { uid: 1000, gid: 100, name: "ada".to_owned(), home: "/home/ada".into() };
        let all = [
            lines(ContainerEngine::Docker, &["GPU-1", "GPU-2"], "/data/a,b \"c\"", Some(&ada)),
            lines(ContainerEngine::Docker, &[], "/", None),
            lines(ContainerEngine::Podman, &["GPU-1", "GPU-2"], "/home/ada", Some(&ada)),
            lines(ContainerEngine::Apptainer, &["GPU-1"], "/data/x y", Some(&ada)),
        ];
        insta::assert_snapshot!("containers", all.map(Result::unwrap).join("\n\n"));
    }

    #[test]
    fn unsupported_paths_are_refused() {
        let refused = lines(ContainerEngine::Apptainer, &[], "/data/a:b", None).unwrap_err();
        assert_eq!(refused.to_string(), "\"/data/a:b\" cannot be mounted into a container: rename it");
    }
}
