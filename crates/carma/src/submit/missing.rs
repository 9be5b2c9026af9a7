//! What a job uses and this host does not have: commands of a cluster, a Conda environment.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;

use carma_manager::launch::look_up;
use carma_manager::request::{Activation, JobRequest};

/// Variables of environment modules: with any of them, `module` is a function of the shell.
const MODULES: [&str; 4] = ["BASH_FUNC_module%%", "MODULESHOME", "LMOD_CMD", "MODULES_CMD"];

/// For each of these commands, the first line of a script where it would fail.
pub(super) fn commands(name: &str, script: &str, environment: &BTreeMap<String, String>) -> Vec<String> {
    let path = environment.get("PATH").map_or("", String::as_str);
    let has_srun = env::split_paths(path).any(|folder| Path::new(&folder).join("srun").is_file());
    let has_modules = MODULES.iter().any(|variable| environment.contains_key(*variable));
    let srun = (!has_srun).then(|| (line_of(script, "srun"), "srun is not installed here, and this line will fail: remove srun from it"));
    let modules = (!has_modules).then(|| {
        (line_of(script, "module"), "there are no environment modules here, and this line will fail: use --conda, --venv or --image")
    });
    let warning = |(line, text): (Option<usize>, &str)| Some(format!("{name}, line {}: {text}", line?));
    [srun, modules].into_iter().flatten().filter_map(warning).collect()
}

/// That a Conda environment is not where Conda usually has it. It may have been told of another folder, so this is no error.
pub(super) fn conda(request: &JobRequest) -> Option<String> {
    let Some(Activation::Conda(name)) = &request.activation else { return None };
    let found = look_up(request, None, Path::new("")).ok().and_then(|lookup| lookup.conda);
    found.is_none().then(|| format!("--conda: there is no environment {name:?} in the usual folders; without it, the job will fail"))
}

/// The first line of a script that runs a command, from 1.
fn line_of(script: &str, command: &str) -> Option<usize> {
    script.lines().position(|line| runs(line, command)).map(|place| place + 1)
}

fn runs(line: &str, command: &str) -> bool {
    let is_before = |word: &&str| matches!(*word, "exec" | "time" | "if" | "!" | "nohup") || is_assignment(word);
    let pieces = line.split(['|', ';']).flat_map(|piece| piece.split("&&"));
    pieces.filter_map(|piece| piece.split_whitespace().find(|word| !is_before(word))).any(|word| word == command)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric() || letter == '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_need_a_cluster_are_named() {
        let script = "#!/bin/bash\n#SBATCH -c 2\n# srun is in a comment\nmodule load cuda\necho srun\nOMP_NUM_THREADS=1 srun python train.py\nsrun true\n";
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().to_str().unwrap().to_owned();
        let without = BTreeMap::from([("PATH".to_owned(), path)]);
        let warnings = commands("a.sh", script, &without);
        assert!(warnings[0].starts_with("a.sh, line 6: srun is not installed here"), "{warnings:?}");
        assert!(warnings[1].starts_with("a.sh, line 4: there are no environment modules here"), "{warnings:?}");
        std::fs::write(folder.path().join("srun"), "").unwrap();
        let with = without.into_iter().chain([("MODULESHOME".to_owned(), "/usr/share/modules".to_owned())]).collect();
        assert_eq!(commands("a.sh", script, &with), [""; 0]);
    }
}
