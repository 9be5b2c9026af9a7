//! A job while it is asked for, and the jobs that it becomes.

use std::collections::{BTreeMap, BTreeSet};

use super::Caller;
use super::array::{Array, check_indices};
use super::check::{InvalidRequest, check, check_files};
use super::error::{Place, Problem, SubmissionError};
use super::key::Saying;
use super::sweep::{self, Parameter, filled_in};
use crate::request::{ArrayLabel, ContainerEngine, JobCommand, JobRequest};

/// A job of which things are being said.
#[derive(Debug)]
pub(super) struct Draft<'a> {
    pub(super) caller: &'a Caller,
    pub(super) request: JobRequest,
    pub(super) engine: Option<ContainerEngine>,
    indices: Option<Vec<u32>>,
    parameters: Vec<Parameter>,
    /// Where each key was said last.
    places: BTreeMap<&'static str, Place>,
}

impl<'a> Draft<'a> {
    /// A job of which nothing is known but the caller's folder and environment, and perhaps what to run.
    pub(super) fn new(caller: &'a Caller, command: Option<JobCommand>, place: Place) -> Self {
        let command = command.unwrap_or(JobCommand::Program(Vec::new()));
        let request = JobRequest { environment: caller.environment.clone(), ..JobRequest::new(command, caller.directory.clone()) };
        Self { caller, request, engine: None, indices: None, parameters: Vec::new(), places: BTreeMap::from([("command", place)]) }
    }

    /// Takes what one source says. It wins over what was said before, but must not contradict itself.
    pub(super) fn hear(&mut self, source: &[Saying]) -> Result<(), SubmissionError> {
        let mut said = BTreeSet::new();
        for Saying { key, value, place } in source {
            let (subject, part) = key.subject(value);
            if !said.insert((subject, part)) {
                let what = [subject, part].join(" ");
                let problem = Problem::Refused(format!("{} is given twice: give it once", what.trim_end()));
                return Err(problem.at(Place { key: None, ..place.clone() }));
            }
            (key.say)(self, value).map_err(|problem| problem.at(place.clone()))?;
            self.places.insert(key.name, place.clone());
        }
        Ok(())
    }

    /// Makes it an array, and limits it where the indices do.
    pub(super) fn spread(&mut self, Array { indices, at_most }: Array) {
        self.indices = Some(indices);
        self.request.schedule.at_most = at_most.or(self.request.schedule.at_most);
    }

    /// Adds a parameter, or gives it other values.
    pub(super) fn sweep(&mut self, parameter: Parameter) -> Result<(), Problem> {
        if let Some(known) = self.parameters.iter_mut().find(|known| known.name == parameter.name) {
            *known = parameter;
        } else if let Some(alike) = self.parameters.iter().find(|known| known.name.eq_ignore_ascii_case(&parameter.name)) {
            let (alike, name) = (&alike.name, &parameter.name);
            return Err(Problem::Refused(format!("{name} and {alike} would be one variable, {}: rename one", Parameter::variable(name))));
        } else {
            self.parameters.push(parameter);
        }
        Ok(())
    }

    /// Everything was said.
    pub(super) fn finish(mut self) -> Result<Submission, SubmissionError> {
        let places = std::mem::take(&mut self.places);
        let submission = self.settle().map_err(|invalid| located(invalid, &places))?;
        Ok(Submission { places, ..submission })
    }

    fn settle(self) -> Result<Submission, InvalidRequest> {
        let wrong = |key, problem| InvalidRequest { key, problem };
        let mut template = self.request;
        match (&mut template.image, self.engine) {
            (Some(image), engine) => image.engine = engine,
            (None, Some(_)) => return Err(wrong("engine", Problem::Refused("runs containers: give --image as well".to_owned()))),
            (None, None) => {}
        }
        if template.interactive && template.command == JobCommand::Program(Vec::new()) {
            let shell = template.environment.get("SHELL").map_or("/bin/sh", String::as_str);
            template.command = JobCommand::Program(vec![shell.to_owned()]);
        }
        for path in [&mut template.output, &mut template.error].into_iter().flatten() {
            *path = template.directory.join(&path);
        }
        Submission::new(template, self.indices, self.parameters)
    }
}

/// A sweep's values lengthen no job by more than this.
const LARGEST_GROWTH: usize = 4 << 20;

/// What was asked for at once: one job, or the jobs of one array or sweep.
#[derive(Debug, Clone)]
pub struct Submission {
    template: JobRequest,
    members: Members,
    places: BTreeMap<&'static str, Place>,
}

/// What is wrong with a request, where it was asked for.
fn located(InvalidRequest { key, problem }: InvalidRequest, places: &BTreeMap<&'static str, Place>) -> SubmissionError {
    let unsaid = || Place { key: Some(format!("--{key}")), ..Place::default() };
    problem.at(places.get(key).cloned().unwrap_or_else(unsaid))
}

#[derive(Debug, Clone)]
enum Members {
    One,
    Array(Vec<u32>),
    Sweep(Vec<Parameter>, usize),
}

impl Submission {
    /// One job, or those that differ from it by an array's index or by the parameters of a sweep.
    pub fn new(template: JobRequest, indices: Option<Vec<u32>>, parameters: Vec<Parameter>) -> Result<Self, InvalidRequest> {
        let wrong = |key| move |problem| InvalidRequest { key, problem };
        let refused = |key, why: &str| wrong(key)(Problem::Refused(why.to_owned()));
        let members = match (indices, parameters.is_empty()) {
            (None, true) => Members::One,
            (Some(indices), true) => {
                check_indices(&indices).map_err(wrong("array"))?;
                Members::Array(indices)
            }
            (None, false) => {
                parameters.iter().try_for_each(Parameter::check).map_err(wrong("param"))?;
                let jobs = sweep::count(&parameters).map_err(wrong("param"))?;
                Members::Sweep(parameters, jobs)
            }
            (Some(_), false) => {
                return Err(refused("array", "does not go with --param: give the indices as a parameter, as in --param index=1..10"));
            }
        };
        if template.schedule.at_most.is_some() && matches!(members, Members::One) {
            return Err(refused("at-most", "is for arrays and sweeps: give --array or --param"));
        }
        let submission = Self { template, members, places: BTreeMap::new() };
        if submission.growth() > LARGEST_GROWTH {
            return Err(refused("param", "makes jobs of more than 4 MiB: use shorter values, or name them less often"));
        }
        // Jobs differ in what a sweep fills in alone, so that two stand for all; whoever takes the requests looks at each.
        let (first, last) = (submission.request(0), submission.request(submission.jobs() - 1));
        check(&first).and_then(|()| check(&last)).map(|()| submission)
    }

    /// What makes it anew elsewhere.
    pub fn into_parts(self) -> (JobRequest, Option<Vec<u32>>, Vec<Parameter>) {
        match self.members {
            Members::One => (self.template, None, Vec::new()),
            Members::Array(indices) => (self.template, Some(indices), Vec::new()),
            Members::Sweep(parameters, _) => (self.template, None, parameters),
        }
    }

    /// How many jobs it is; at least 1.
    pub fn jobs(&self) -> usize {
        match &self.members {
            Members::One => 1,
            Members::Array(indices) => indices.len(),
            Members::Sweep(_, jobs) => *jobs,
        }
    }

    /// How much longer than as it was asked for a job may be.
    pub(crate) fn growth(&self) -> usize {
        match &self.members {
            Members::Sweep(parameters, _) => sweep::growth(self.template.command.words(), parameters),
            Members::One | Members::Array(_) => 0,
        }
    }

    /// Looks whether the files are there that it names.
    pub fn check_files(&self) -> Result<(), SubmissionError> {
        check_files(&self.template).map_err(|invalid| located(invalid, &self.places))
    }

    /// The requests, made one by one: a hundred thousand environments need not be in memory at once.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = JobRequest> {
        (0..self.jobs()).map(|place| self.request(place))
    }

    fn request(&self, place: usize) -> JobRequest {
        let mut request = self.template.clone();
        let label = match &self.members {
            Members::One => return request,
            Members::Array(indices) => ArrayLabel { index: indices[place], parameters: BTreeMap::new() },
            Members::Sweep(parameters, _) => ArrayLabel { index: place as u32, parameters: sweep::values_at(parameters, place) },
        };
        // A script is left alone: what a value says must not become part of a program. It finds them in its environment.
        let (JobCommand::Program(words) | JobCommand::Script { arguments: words, .. }) = &mut request.command;
        for word in words {
            *word = filled_in(word, &label.parameters);
        }
        request.environment.insert("CARMA_ARRAY_INDEX".to_owned(), label.index.to_string());
        let variables = label.parameters.iter().map(|(name, value)| (Parameter::variable(name), value.clone()));
        request.environment.extend(variables);
        request.array = Some(label);
        request
    }
}
