//! Where jobs come from, and in which form they are written.

use super::draft::{Draft, Submission};
use super::error::{Place, Problem, SubmissionError};
use super::key::Saying;
use super::{Caller, job_file, script, task_file};
use crate::request::JobCommand;

/// A form in which jobs are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// A program with a `#!` line; `#CARMA` and `#SBATCH` lines before its first command say what flags would.
    Script,
    /// TOML with flags' names for keys and a `command`; several `[[job]]` share what stands above them.
    JobFile,
    /// A `.rad` file: one fact a line.
    TaskFile,
}

impl Form {
    /// By the file's name, or else by how it begins.
    pub fn recognise(name: &str, text: &str) -> Self {
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
    /// A text in one of the forms.
    Text {
        /// The file's name; `-` for what was not a file.
        name: &'a str,
        /// What is in it.
        text: &'a str,
        /// What a script is called with.
        arguments: Vec<String>,
    },
}

/// What a source says of one job: what to run, and what it is to be, where later layers win.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) command: Option<JobCommand>,
    /// Where the command stands, or should.
    pub(super) place: Place,
    pub(super) layers: Vec<Vec<Saying>>,
}

/// What a source says.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) jobs: Vec<Asked>,
    /// What was left out, and why.
    pub(super) notes: Vec<String>,
}

impl Source<'_> {
    /// Works out what is asked for, where the flags win over what the source says. The notes say what was left out of it.
    pub fn submissions(self, flags: &[Saying], caller: &Caller) -> Result<(Vec<Submission>, Vec<String>), SubmissionError> {
        let Reading { jobs, notes } = self.read()?;
        let submissions = jobs.into_iter().map(|Asked { command, place, layers }| {
            let mut draft = Draft::new(caller, command, place);
            layers.iter().map(Vec::as_slice).chain([flags]).try_for_each(|layer| draft.hear(layer))?;
            draft.finish()
        });
        Ok((submissions.collect::<Result<_, _>>()?, notes))
    }

    fn read(self) -> Result<Reading, SubmissionError> {
        match self {
            Self::Command(words) => {
                let command = (!words.is_empty()).then_some(JobCommand::Program(words));
                Ok(Reading { jobs: vec![Asked { command, ..Asked::default() }], notes: Vec::new() })
            }
            Self::Text { name, text, arguments } => match Form::recognise(name, text) {
                Form::Script => script::read(name, text, arguments),
                _ if !arguments.is_empty() => {
                    let why = "says itself what to run: words after -- are for scripts";
                    Err(Problem::Refused(why.to_owned()).at(Place { file: Some(name.to_owned()), ..Place::default() }))
                }
                Form::JobFile => job_file::read(name, text),
                Form::TaskFile => task_file::read(name, text),
            },
        }
    }
}
