//! The sources of jobs, and the formats in which they are written.

use super::draft::{Draft, ParsedSubmission};
use super::error::{Place, Problem, SubmissionError};
use super::key::OptionValue;
use super::{Caller, job_file, script, task_file};
use crate::request::JobCommand;

/// A format in which jobs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A program with a `#!` line; `#CARMA` and `#SBATCH` lines before its first command hold flags.
    Script,
    /// TOML with the flags' names as keys and a `command`. Several `[[job]]` share the keys above them.
    JobFile,
    /// A `.rad` file: one value per line.
    TaskFile,
}

impl Format {
    /// By the file's name, or else by how it begins.
    pub fn detect(name: &str, text: &str) -> Self {
        let named = |ending: &str| name.to_ascii_lowercase().ends_with(ending);
        let second = text.lines().nth(1).unwrap_or_default();
        match () {
            () if named(".toml") => Self::JobFile,
            () if named(".rad") => Self::TaskFile,
            () if text.starts_with("#!") || !matches!(name, "-") => Self::Script,
            () if second.trim_start().starts_with("conda activate ") => Self::TaskFile,
            () => Self::JobFile,
        }
    }
}

/// Where jobs come from.
#[derive(Debug, Clone)]
pub enum Source<'a> {
    /// A command, as words.
    Command(Vec<String>),
    /// A text in one of the formats.
    Text {
        /// The name of the file; `-` for standard input.
        name: &'a str,
        /// Its text.
        text: &'a str,
        /// The arguments of a script.
        arguments: Vec<String>,
    },
}

/// One job of a source: its command and its options. Later layers win.
#[derive(Debug, Default)]
pub(super) struct ParsedJob {
    pub(super) command: Option<JobCommand>,
    /// The place of the command, given or missing.
    pub(super) place: Place,
    pub(super) layers: Vec<Vec<OptionValue>>,
}

/// The jobs of a source.
#[derive(Debug, Default)]
pub(super) struct ParsedSource {
    pub(super) jobs: Vec<ParsedJob>,
    /// What was ignored, and why.
    pub(super) notes: Vec<String>,
}

impl Source<'_> {
    /// Reads the submissions of this source; flags win over it. The notes say what was left out of it.
    pub fn submissions(self, flags: &[OptionValue], caller: &Caller) -> Result<(Vec<ParsedSubmission>, Vec<String>), SubmissionError> {
        let ParsedSource { jobs, notes } = self.read()?;
        let submissions = jobs.into_iter().map(|ParsedJob { command, place, layers }| {
            let mut draft = Draft::new(caller, command, place);
            layers.iter().map(Vec::as_slice).chain([flags]).try_for_each(|layer| draft.apply(layer))?;
            draft.finish()
        });
        Ok((submissions.collect::<Result<_, _>>()?, notes))
    }

    fn read(self) -> Result<ParsedSource, SubmissionError> {
        match self {
            Self::Command(words) => {
                let command = (!words.is_empty()).then_some(JobCommand::Program(words));
                Ok(ParsedSource { jobs: vec![ParsedJob { command, ..ParsedJob::default() }], notes: Vec::new() })
            }
            Self::Text { name, text, arguments } => match Format::detect(name, text) {
                Format::Script => script::read(name, text, arguments),
                _ if !arguments.is_empty() => {
                    let why = "contains its command: words after -- are only for scripts";
                    Err(Problem::Refused(why.to_owned()).at(Place { file: Some(name.to_owned()), ..Place::default() }))
                }
                Format::JobFile => job_file::read(name, text),
                Format::TaskFile => task_file::read(name, text),
            },
        }
    }
}
