//! A job while options are applied to it, one source after the other.

use std::collections::{BTreeMap, BTreeSet};

use super::Caller;
use super::array::Array;
use super::check::{InvalidRequest, check_files, check_parameters};
use super::error::{Place, Problem, SubmissionError};
use super::key::OptionValue;
use super::valid::ValidSubmission;
use crate::request::{ContainerEngine, JobCommand, JobRequest, Parameter, Submission};

/// A job whose options are being read.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) caller: &'a Caller,
    pub(super) request: JobRequest,
    pub(super) engine: Option<ContainerEngine>,
    indices: Option<Vec<u32>>,
    parameters: Vec<Parameter>,
    /// Where each option was given last.
    places: BTreeMap<&'static str, Place>,
}

impl<'a> Draft<'a> {
    /// A job with the caller's folder and environment, and perhaps a command.
    pub(super) fn new(caller: &'a Caller, command: Option<JobCommand>, place: Place) -> Self {
        let command = command.unwrap_or(JobCommand::Program(Vec::new()));
        let mut request = JobRequest::new(command, caller.directory.clone());
        (request.environment, request.umask) = (caller.environment.clone(), caller.umask);
        Self { caller, request, engine: None, indices: None, parameters: Vec::new(), places: BTreeMap::from([("command", place)]) }
    }

    /// Applies the options of one source. They win over earlier sources; within one source each may be given once.
    pub(super) fn apply(&mut self, source: &[OptionValue]) -> Result<(), SubmissionError> {
        let mut given = BTreeSet::new();
        for OptionValue { key, value, place } in source {
            let (subject, part) = key.subject(value);
            if !given.insert((subject, part)) {
                let what = [subject, part].join(" ");
                let problem = Problem::Refused(format!("{} is given twice: give it once", what.trim_end()));
                return Err(problem.at(Place { key: None, ..place.clone() }));
            }
            (key.apply)(self, value).map_err(|problem| problem.at(place.clone()))?;
            self.places.insert(key.name, place.clone());
        }
        Ok(())
    }

    /// Makes it an array. A limit given with the indices wins over an earlier one.
    pub(super) fn set_array(&mut self, Array { indices, at_most }: Array) {
        self.indices = Some(indices);
        self.request.schedule.at_most = at_most.or(self.request.schedule.at_most);
    }

    /// Adds a parameter, or replaces its values.
    pub(super) fn set_parameter(&mut self, parameter: Parameter) {
        match self.parameters.iter_mut().find(|known| known.name == parameter.name) {
            Some(known) => *known = parameter,
            None => self.parameters.push(parameter),
        }
    }

    /// Validates the job with all its options.
    pub(super) fn finish(mut self) -> Result<ParsedSubmission, SubmissionError> {
        let places = std::mem::take(&mut self.places);
        let submission = self.submission().and_then(Submission::validate).map_err(|invalid| located(invalid, &places))?;
        Ok(ParsedSubmission { submission, places })
    }

    fn submission(self) -> Result<Submission, InvalidRequest> {
        let mut job = self.request;
        match (&mut job.image, self.engine) {
            (Some(image), engine) => image.engine = engine,
            (None, Some(_)) => {
                let problem = Problem::Refused("runs containers: give --image as well".to_owned());
                return Err(InvalidRequest { key: "engine", problem });
            }
            (None, None) => {}
        }
        if job.interactive && job.command == JobCommand::Program(Vec::new()) {
            let shell = job.environment.get("SHELL").map_or("/bin/sh", String::as_str);
            job.command = JobCommand::Program(vec![shell.to_owned()]);
        }
        for path in [&mut job.output, &mut job.error].into_iter().flatten() {
            *path = job.directory.join(&path);
        }
        Ok(Submission { job, array: self.indices, parameters: self.parameters })
    }
}

/// A submission that was read from text, with the places of its options for error messages.
#[derive(Debug)]
pub struct ParsedSubmission {
    submission: ValidSubmission,
    places: BTreeMap<&'static str, Place>,
}

impl ParsedSubmission {
    /// Checks that the files exist that it names, and that its command uses its parameters.
    pub fn check_files(&self) -> Result<(), SubmissionError> {
        let sent = self.submission.as_sent();
        check_files(&sent.job).and_then(|()| check_parameters(sent)).map_err(|invalid| located(invalid, &self.places))
    }

    /// The submission.
    pub fn into_valid(self) -> ValidSubmission {
        self.submission
    }
}

/// An invalid request, with the place of the option that is wrong.
fn located(InvalidRequest { key, problem }: InvalidRequest, places: &BTreeMap<&'static str, Place>) -> SubmissionError {
    let not_given = || Place { key: Some(format!("--{key}")), ..Place::default() };
    problem.at(places.get(key).cloned().unwrap_or_else(not_given))
}
