//! The jobs to profile: those of a list, or workloads of the catalogue if the GPUs are emulated.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use carma_sim::Catalogue;
use serde::Deserialize;

use crate::catalogue::find;
use crate::gpus::World;

/// Something to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) command: Vec<String>,
    pub(super) directory: PathBuf,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    job: Vec<Listed>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Listed {
    name: String,
    /// The shell command.
    command: String,
    #[serde(default)]
    directory: Option<PathBuf>,
}

/// All named jobs, by name.
pub(super) fn read(named: &[String], world: &World) -> Result<BTreeMap<String, Job>> {
    let here = std::env::current_dir()?;
    let mut jobs = BTreeMap::new();
    for name in named {
        let more = if Path::new(name).extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(name).with_context(|| format!("cannot read {name}"))?;
            listed(&text, &here).with_context(|| format!("{name} cannot be used"))?
        } else {
            vec![(name.clone(), workload(name, world, &here)?)]
        };
        for (name, job) in more {
            ensure!(jobs.insert(name.clone(), job).is_none(), "{name} is given twice: give each job its own name");
        }
    }
    Ok(jobs)
}

fn listed(text: &str, here: &Path) -> Result<Vec<(String, Job)>> {
    let List { job } = toml::from_str(text)?;
    let jobs = job.into_iter().map(|listed| {
        // The tables set names apart by these.
        let plain = |letter: char| !letter.is_whitespace() && !letter.is_control() && !",;\"".contains(letter);
        ensure!(
            !listed.name.is_empty() && listed.name.chars().all(plain),
            "{:?} is not a valid name: use letters, digits and -_.+",
            listed.name
        );
        let command = ["sh", "-c", &listed.command].map(str::to_owned).to_vec();
        let directory = listed.directory.map_or_else(|| here.to_owned(), |directory| here.join(directory));
        Ok((listed.name, Job { command, directory }))
    });
    jobs.collect()
}

fn workload(name: &str, world: &World, here: &Path) -> Result<Job> {
    let catalogue = Catalogue::shipped();
    let workload = find(&catalogue, name)?;
    if *world == World::Real {
        bail!("{name} is a workload of the catalogue, and these are real GPUs: list the commands to run in a TOML file");
    }
    let program = std::env::current_exe()?.display().to_string();
    let command = [&program, "emu", "train", "--workload", &workload.name].map(str::to_owned).to_vec();
    Ok(Job { command, directory: here.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_names_commands_and_where_they_run() {
        let text = "[[job]]\nname = \"a\"\ncommand = \"python a.py\"\ndirectory = \"sub\"\n[[job]]\nname = \"b\"\ncommand = \"./b\"\n";
        let jobs = listed(text, Path::new("/home")).unwrap();
        let summary: Vec<_> =
            jobs.iter().map(|(name, job)| (name.as_str(), job.command[2].as_str(), job.directory.to_str().unwrap())).collect();
        assert_eq!(summary, [("a", "python a.py", "/home/sub"), ("b", "./b", "/home")]);
        let wrong = |name: &str| listed(&format!("[[job]]\nname = {name:?}\ncommand = \"x\"\n"), Path::new("/")).unwrap_err().to_string();
        assert_eq!(wrong("a;b"), "\"a;b\" is not a valid name: use letters, digits and -_.+");
        assert!(wrong("").contains("is not a valid name"));
    }
}
