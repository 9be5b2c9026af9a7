//! What a user requests of Slurm: on the command line, in variables of sbatch and in the script. The first one with a value counts.

use std::fmt;

use super::options::OptionValue;

/// Where an option was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Origin {
    CommandLine,
    Variable(String),
    Script,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::CommandLine => f.write_str("on the command line"),
            Self::Variable(name) => write!(f, "in {name}"),
            Self::Script => f.write_str("in the script"),
        }
    }
}

/// Variables of sbatch that matter here, and their options.
const VARIABLES: [(&str, &str); 14] = [
    ("SBATCH_GRES", "gres"),
    ("SBATCH_GPUS", "gpus"),
    ("SBATCH_GPUS_PER_NODE", "gpus-per-node"),
    ("SBATCH_GPUS_PER_TASK", "gpus-per-task"),
    ("SBATCH_MEM_PER_NODE", "mem"),
    ("SBATCH_MEM_PER_CPU", "mem-per-cpu"),
    ("SBATCH_MEM_PER_GPU", "mem-per-gpu"),
    ("SBATCH_PARTITION", "partition"),
    ("SBATCH_REQUEUE", "requeue"),
    ("SBATCH_NO_REQUEUE", "no-requeue"),
    ("SBATCH_OPEN_MODE", "open-mode"),
    ("SBATCH_OUTPUT", "output"),
    ("SBATCH_EXCLUSIVE", "exclusive"),
    ("SBATCH_CLUSTERS", "clusters"),
];

/// All options of a submission.
#[derive(Debug, Default)]
pub(super) struct Request {
    /// The strongest first.
    options: Vec<(Origin, OptionValue)>,
}

/// An option that counts.
#[derive(Debug, Clone, Copy)]
pub(super) struct Explicit<'a> {
    pub(super) name: &'a str,
    pub(super) value: &'a str,
    pub(super) origin: &'a Origin,
}

impl fmt::Display for Explicit<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let equals = if self.value.is_empty() { "" } else { "=" };
        write!(f, "--{}{equals}{} {}", self.name, self.value, self.origin)
    }
}

impl Request {
    /// The options by where they were given.
    pub(super) fn new(line: &[OptionValue], variable: impl Fn(&str) -> Option<String>, script: &[OptionValue]) -> Self {
        // The last one of several from the same origin counts.
        let of = |origin: Origin, options: &[OptionValue]| {
            options.iter().rev().map(move |option| (origin.clone(), option.clone())).collect::<Vec<_>>()
        };
        let mut options = of(Origin::CommandLine, line);
        options.extend(VARIABLES.iter().filter_map(|(name, option)| {
            let option = OptionValue { name: (*option).to_owned(), value: variable(name), words: Vec::new() };
            option.value.is_some().then(|| (Origin::Variable((*name).to_owned()), option))
        }));
        options.extend(of(Origin::Script, script));
        Self { options }
    }

    /// The option that counts of these.
    pub(super) fn first(&self, names: &[&str]) -> Option<Explicit<'_>> {
        let found = self.options.iter().find(|(_, option)| names.contains(&option.name.as_str()));
        found.map(|(origin, option)| Explicit { name: &option.name, value: option.value.as_deref().unwrap_or_default(), origin })
    }

    /// The value of an option.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.first(&[name]).map(|explicit| explicit.value)
    }

    /// Whether a job may run on more than one node. `2-4` and `2` are more than one.
    pub(super) fn many_nodes(&self) -> bool {
        let nodes = self.value("nodes").and_then(|nodes| nodes.split(['-', ':', ',']).next_back()?.parse::<u32>().ok());
        nodes.is_some_and(|nodes| nodes > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::{Line, of_script};
    use super::*;

    #[test]
    fn the_command_line_wins_over_variables_and_these_over_the_script() {
        let words: Vec<String> = ["--gres=gpu:1", "--gres=gpu:2"].map(str::to_owned).to_vec();
        let line = Line::read(&words, |_| None).options;
        let script = of_script("#!/bin/sh\n#SBATCH --gres=gpu:3 --mem=1G -p slow -N 1-2\n");
        let variable = |name: &str| (name == "SBATCH_PARTITION").then(|| "fast".to_owned());
        let request = Request::new(&line, variable, &script);
        let text = |name| request.first(&[name]).map(|explicit| explicit.to_string());
        assert_eq!(text("gres").unwrap(), "--gres=gpu:2 on the command line");
        assert_eq!(text("partition").unwrap(), "--partition=fast in SBATCH_PARTITION");
        assert_eq!(text("mem").unwrap(), "--mem=1G in the script");
        assert_eq!(text("gpus"), None);
        assert!(request.many_nodes());
        assert!(!Request::new(&line, |_| None, &[]).many_nodes());
    }
}
