//! Facts about the host that the plan of a job's command needs.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::attempt::RunAs;
use crate::request::{Activation, ContainerEngine, JobRequest};

/// The host facts that a job needs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lookup {
    /// The engine of its container.
    pub engine: Option<ContainerEngine>,
    /// Its Conda environment, if found.
    pub conda: Option<CondaPrefix>,
    /// Its user's home, if it exists.
    pub home: Option<PathBuf>,
    /// How many files a job may have open; unset: as many as the manager.
    pub open_files: Option<u64>,
    /// The name of the host, without its domain.
    #[serde(default)]
    pub node: String,
}

/// A Conda environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CondaPrefix {
    /// Its folder.
    pub folder: PathBuf,
    /// It has scripts that a shell must run to activate it.
    pub has_scripts: bool,
}

/// What to look up for a job, in folders that its user controls.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LookupQuestion {
    conda: Option<String>,
    conda_program: Option<PathBuf>,
    container: bool,
    engine: Option<ContainerEngine>,
    path: Option<String>,
    home: Option<PathBuf>,
}

impl LookupQuestion {
    pub(super) fn of(request: &JobRequest, user: Option<&RunAs>) -> Self {
        let variable = |name: &str| request.environment.get(name).cloned();
        let conda = match &request.activation {
            Some(Activation::Conda(name)) => Some(name.clone()),
            Some(Activation::Venv(_)) | None => None,
        };
        Self {
            conda,
            conda_program: variable("CONDA_EXE").map(PathBuf::from),
            container: request.image.is_some(),
            engine: request.image.as_ref().and_then(|image| image.engine),
            path: variable("PATH"),
            home: user.map(|user| user.home.clone()).or_else(|| variable("HOME").map(PathBuf::from)),
        }
    }

    /// Whether an answer needs to read files.
    pub(super) fn is_about_files(&self) -> bool {
        self.container || self.conda.is_some()
    }

    /// The answer, with the rights of this process.
    pub(super) fn answer(self) -> Lookup {
        let home = self.home.as_deref();
        let engine = || self.engine.or_else(|| ContainerEngine::installed(self.path.as_deref()?));
        Lookup {
            engine: self.container.then(engine).flatten(),
            conda: self.conda.as_ref().and_then(|name| conda(name, self.conda_program.as_deref(), home)),
            home: home.filter(|home| self.container && home.is_dir()).map(Path::to_owned),
            open_files: None,
            node: String::new(),
        }
    }
}

impl ContainerEngine {
    /// The program's name.
    pub const fn program(self) -> &'static str {
        match self {
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::Apptainer => "apptainer",
        }
    }

    /// The first one in these folders.
    fn installed(path: &str) -> Option<Self> {
        let is_there = |engine: &Self| path.split(':').any(|folder| Path::new(folder).join(engine.program()).is_file());
        [Self::Docker, Self::Podman, Self::Apptainer].into_iter().find(is_there)
    }
}

/// The folder of a Conda environment: given as a path, or by name in one of Conda's usual places.
fn conda(name: &str, program: Option<&Path>, home: Option<&Path>) -> Option<CondaPrefix> {
    let root = program.and_then(|program| program.parent()?.parent());
    let named = |root: &Path| if name == "base" { root.to_owned() } else { root.join("envs").join(name) };
    let folders = if name.contains('/') {
        vec![PathBuf::from(name)]
    } else {
        let own = home.map(|home| home.join(".conda/envs").join(name));
        root.map(named).into_iter().chain(own).collect()
    };
    let folder = folders.into_iter().find(|folder| folder.join("conda-meta").is_dir())?;
    let scripts = std::fs::read_dir(folder.join("etc/conda/activate.d")).into_iter().flatten().flatten();
    Some(CondaPrefix { has_scripts: scripts.count() > 0, folder })
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::request::{Image, JobCommand};

    #[test]
    fn conda_environments_are_found_where_conda_keeps_them() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("mini conda");
        fs::create_dir_all(root.join("conda-meta")).unwrap();
        fs::create_dir_all(root.join("envs/torch/conda-meta")).unwrap();
        fs::create_dir_all(root.join("envs/torch/etc/conda/activate.d")).unwrap();
        fs::write(root.join("envs/torch/etc/conda/activate.d/cuda.sh"), "").unwrap();
        let program = root.join("bin/conda");
        let found = |name: &str| conda(name, Some(&program), None);
        assert_eq!(found("base"), Some(CondaPrefix { folder: root.clone(), has_scripts: false }));
        assert_eq!(found("torch"), Some(CondaPrefix { folder: root.join("envs/torch"), has_scripts: true }));
        assert_eq!(found(root.to_str().unwrap()).map(|prefix| prefix.folder), Some(root));
        assert_eq!(found("no such"), None);
    }

    #[test]
    fn the_first_engine_in_the_path_is_taken_unless_one_was_asked_for() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("apptainer"), "").unwrap();
        let mut request = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
        request.environment.insert("PATH".to_owned(), format!("/nonexistent:{}", folder.path().display()));
        let engine = |engine, request: &JobRequest| {
            let image = Some(Image { name: "torch".to_owned(), engine });
            LookupQuestion::of(&JobRequest { image, ..request.clone() }, None).answer().engine
        };
        assert_eq!(engine(None, &request), Some(ContainerEngine::Apptainer));
        assert_eq!(engine(Some(ContainerEngine::Podman), &request), Some(ContainerEngine::Podman));
        request.environment.clear();
        assert_eq!(engine(None, &request), None);
    }
}
