//! Entering a Conda or virtual environment, without a shell wherever that is enough.

use std::collections::BTreeMap;
use std::path::Path;

use super::error::PlanError;
use super::host_facts::CondaPrefix;
use crate::request::Activation;

/// Activates an environment and execs the command after its name. The shell interprets neither.
const SCRIPT: &str = r#"eval "$("${CONDA_EXE:-conda}" shell.bash hook)" && conda activate "$1" && shift && exec "$@""#;

/// Changes command and variables so that the command runs in the environment.
pub(super) fn activate(
    activation: &Activation,
    conda: Option<&CondaPrefix>,
    command: Vec<String>,
    variables: &mut BTreeMap<String, String>,
) -> Result<Vec<String>, PlanError> {
    match (activation, conda) {
        (Activation::Venv(folder), _) => {
            enter(folder, "VIRTUAL_ENV", variables);
            Ok(command)
        }
        (Activation::Conda(name), Some(CondaPrefix { folder, has_scripts: false })) => {
            enter(folder, "CONDA_PREFIX", variables);
            variables.insert("CONDA_DEFAULT_ENV".to_owned(), name.clone());
            Ok(command)
        }
        (Activation::Conda(name), _) if name.is_empty() || name.starts_with('-') => Err(PlanError::NotAName(name.clone())),
        (Activation::Conda(name), _) => {
            // Without CONDA_EXE, the start-up files of a login shell must find Conda.
            let flag = if variables.contains_key("CONDA_EXE") { "-c" } else { "-lc" };
            let shell = ["bash", flag, SCRIPT, "carma", name].map(str::to_owned);
            Ok(shell.into_iter().chain(command).collect())
        }
    }
}

fn enter(folder: &Path, name: &str, variables: &mut BTreeMap<String, String>) {
    let folder = folder.to_string_lossy().into_owned();
    let path = variables.get("PATH").map_or_else(|| "/usr/bin:/bin".to_owned(), Clone::clone);
    variables.insert("PATH".to_owned(), format!("{folder}/bin:{path}"));
    variables.insert(name.to_owned(), folder);
    // It would point Python to the libraries of another installation.
    variables.remove("PYTHONHOME");
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn python() -> Vec<String> {
        vec!["python".to_owned(), "train.py".to_owned()]
    }

    #[test]
    fn a_virtual_environment_needs_no_shell() {
        let mut environment = variables(&[("PATH", "/bin"), ("PYTHONHOME", "/opt")]);
        let activation = Activation::Venv("/home/ada/my env".into());
        assert_eq!(activate(&activation, None, python(), &mut environment).unwrap(), python());
        assert_eq!(environment, variables(&[("PATH", "/home/ada/my env/bin:/bin"), ("VIRTUAL_ENV", "/home/ada/my env")]));
    }

    #[test]
    fn a_conda_environment_needs_one_for_its_scripts_only() {
        let activation = Activation::Conda("torch".to_owned());
        let mut environment = variables(&[("PATH", "/bin")]);
        let prefix = CondaPrefix { folder: "/opt/conda/envs/torch".into(), has_scripts: false };
        assert_eq!(activate(&activation, Some(&prefix), python(), &mut environment).unwrap(), python());
        assert_eq!(environment["CONDA_PREFIX"], "/opt/conda/envs/torch");
        assert_eq!(environment["PATH"], "/opt/conda/envs/torch/bin:/bin");
        let command = activate(&activation, Some(&CondaPrefix { has_scripts: true, ..prefix }), python(), &mut environment).unwrap();
        assert_eq!(
            (&command[..2], &command[4..]),
            (&["bash".to_owned(), "-lc".to_owned()][..], &["torch", "python", "train.py"].map(str::to_owned)[..])
        );
    }

    #[test]
    fn the_shell_leaves_names_and_arguments_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let conda = folder.path().join("conda");
        // A fake Conda: `conda activate` prints its arguments.
        std::fs::write(&conda, "#!/bin/sh\necho 'conda() { printf \"<%s>\" \"$@\"; }'\n").unwrap();
        std::fs::set_permissions(&conda, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let name = "a 'b' \"$(echo c)\"\n;d";
        let mut environment = variables(&[("PATH", "/usr/bin:/bin"), ("CONDA_EXE", conda.to_str().unwrap())]);
        let arguments = ["printf", "[%s]", "-n", "$HOME `id`", "e\nf", "'"].map(str::to_owned).to_vec();
        let command = activate(&Activation::Conda(name.to_owned()), None, arguments, &mut environment).unwrap();
        let output = Command::new(&command[0]).args(&command[1..]).env_clear().envs(&environment).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), format!("<activate><{name}>[-n][$HOME `id`][e\nf][']"));
        for bad in ["", "--help"] {
            assert!(activate(&Activation::Conda(bad.to_owned()), None, python(), &mut environment).is_err());
        }
    }
}
