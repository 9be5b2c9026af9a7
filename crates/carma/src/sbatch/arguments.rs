//! The options of `carma sbatch` itself, which may stand between those of sbatch.

use std::path::PathBuf;

use anyhow::Result;
use carma_core::MiB;
use clap::{Args, Command, FromArgMatches};

use super::options::{Line, OptionValue};
use crate::units::bytes;

/// Our own options.
#[derive(Debug, Default, Args)]
pub(super) struct Options {
    /// GPU memory of the job: 12GiB, or a bare number of MiB. (--mem of sbatch is host memory.)
    #[arg(long, value_name = "SIZE")]
    pub(super) gpu_mem: Option<String>,
    /// A description of the model, for the estimate.
    #[arg(long, value_name = "FILE")]
    pub(super) model: Option<PathBuf>,
    /// Batch size, for the estimate.
    #[arg(long, value_name = "N")]
    pub(super) batch_size: Option<u32>,
    /// dry-run: run the Python command of the script without a GPU first, and measure its allocations.
    #[arg(long, value_name = "HOW")]
    pub(super) estimate: Option<String>,
    /// Memory of a GPU of this site, if Slurm does not tell.
    #[arg(long, value_name = "SIZE", value_parser = memory)]
    pub(super) gpu_memory: Option<MiB>,
    /// Number of restarts with more shards after an out-of-memory error [default: 3].
    #[arg(long, value_name = "N")]
    pub(super) oom_retries: Option<u32>,
    /// Print the sbatch command and the reasons, and submit nothing.
    #[arg(long)]
    pub(super) dry_run: bool,
}

impl Options {
    /// These options, where they are not given here.
    pub(super) fn or(self, other: Self) -> Self {
        Self {
            gpu_mem: self.gpu_mem.or(other.gpu_mem),
            model: self.model.or(other.model),
            batch_size: self.batch_size.or(other.batch_size),
            estimate: self.estimate.or(other.estimate),
            gpu_memory: self.gpu_memory.or(other.gpu_memory),
            oom_retries: self.oom_retries.or(other.oom_retries),
            dry_run: self.dry_run || other.dry_run,
        }
    }

    /// Takes our options out of a line for sbatch.
    pub(super) fn take_from(line: &mut Line) -> Result<Self> {
        let ours = |name: &str| takes_value(name).is_some();
        let (own, others): (Vec<OptionValue>, Vec<OptionValue>) =
            std::mem::take(&mut line.options).into_iter().partition(|option| ours(&option.name));
        line.options = others;
        let words = own.into_iter().flat_map(|option| option.words);
        let command = Self::augment_args(Command::new("carma sbatch").no_binary_name(true));
        Ok(Self::from_arg_matches(&command.try_get_matches_from(words)?)?)
    }
}

/// Whether an option of ours has a value.
pub(super) fn takes_value(name: &str) -> Option<bool> {
    let command = Options::augment_args(Command::new(""));
    let found = command.get_arguments().find(|argument| argument.get_long() == Some(name));
    found.map(|argument| argument.get_action().takes_values())
}

/// A size of at least 1 MiB.
pub(super) fn memory(text: &str) -> Result<MiB, String> {
    match bytes(text)? >> 20 {
        0 => Err(format!("`{text}` is less than 1 MiB")),
        size => Ok(MiB(size)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_options_are_found_among_those_of_sbatch() {
        let words: Vec<String> = "-p gpu --gpu-mem 12GiB --mem=4G --dry-run a.sh --dry-run".split(' ').map(str::to_owned).collect();
        let mut line = Line::read(&words, takes_value);
        let options = Options::take_from(&mut line).unwrap().or(Options { oom_retries: Some(1), ..Options::default() });
        assert_eq!((options.gpu_mem.as_deref(), options.dry_run, options.oom_retries), (Some("12GiB"), true, Some(1)));
        let left: Vec<&str> = line.options.iter().flat_map(|option| &option.words).map(String::as_str).collect();
        assert_eq!((left, line.rest), (vec!["-p", "gpu", "--mem=4G"], vec!["a.sh".to_owned(), "--dry-run".to_owned()]));
    }

    #[test]
    fn memory_is_a_size() {
        assert_eq!(memory("40GiB"), Ok(MiB(40_960)));
        assert!(memory("0").is_err() && memory("x").is_err());
    }
}
