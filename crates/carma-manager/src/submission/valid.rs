//! Validation of submissions.
//!
//! ```text
//!  Submission (as sent) ── validate ──► ValidSubmission ── into_jobs ──► ValidJobs (for the engine)
//! ```
//!
//! The client validates to report mistakes early, the server because it trusts no client. Both call the same function.

use std::collections::BTreeMap;
use std::slice;
use std::sync::Arc;

use super::array::check_indices;
use super::check::{InvalidRequest, check};
use super::error::Problem;
use super::sweep::{self, filled_in};
use super::template::Template;
use crate::request::{After, ArrayElement, JobCommand, JobRequest, Parameter, Submission};

/// The values of a sweep make no job longer by more than this.
const MAX_GROWTH: usize = 4 << 20;

/// A submission whose jobs all pass [`check`].
#[derive(Debug, Clone)]
pub struct ValidSubmission {
    submission: Submission,
    jobs: usize,
}

/// The jobs of a valid submission.
#[derive(Debug)]
pub struct ValidJobs(pub(crate) Jobs);

/// The requests of jobs.
#[derive(Debug)]
pub(crate) enum Jobs {
    /// Each its own.
    Each(Vec<JobRequest>),
    /// The jobs of an array or sweep, with their indices.
    Members { template: Arc<Template>, indices: Vec<u32> },
}

impl Submission {
    /// Checks everything that can be checked without looking at the machine.
    pub fn validate(self) -> Result<ValidSubmission, InvalidRequest> {
        let wrong = |key| move |problem| InvalidRequest { key, problem };
        let refused = |key, why: &str| Err(wrong(key)(Problem::Refused(why.to_owned())));
        let jobs = match (&self.array, self.parameters.as_slice()) {
            _ if self.job.array.is_some() => {
                return refused("job.array", "the manager sets the array of a job; give array or parameters next to the job");
            }
            (None, []) if self.job.schedule.at_most.is_some() => {
                return refused("at-most", "is for arrays and sweeps: give --array or --param");
            }
            (None, []) => 1,
            (Some(indices), []) => {
                check_indices(indices).map_err(wrong("array"))?;
                indices.len()
            }
            (None, parameters) => {
                let filled = self.job.filled();
                sweep::check(parameters).and_then(|()| sweep::check_placeholders(&filled, parameters)).map_err(wrong("param"))?;
                sweep::count(parameters).map_err(wrong("param"))?
            }
            (Some(_), _) => {
                return refused("array", "cannot be combined with --param: give the indices as a parameter, as in --param index=1..10");
            }
        };
        let valid = ValidSubmission { submission: self, jobs };
        if valid.growth() > MAX_GROWTH {
            return refused("param", "gives jobs of more than 4 MiB: use shorter values, or use them less often");
        }
        check(&valid.longest()).map(|()| valid)
    }
}

impl ValidSubmission {
    /// How many jobs it is; at least 1.
    pub const fn jobs(&self) -> usize {
        self.jobs
    }

    /// The submission as it is sent.
    pub const fn as_sent(&self) -> &Submission {
        &self.submission
    }

    /// The submission as it is sent.
    pub fn into_sent(self) -> Submission {
        self.submission
    }

    /// Replaces the jobs to wait for by the same jobs under other names.
    pub(crate) fn set_after(&mut self, after: Vec<After>) {
        self.submission.job.schedule.after = after;
    }

    /// How many bytes the values of a sweep add to a job, at most.
    pub(crate) fn growth(&self) -> usize {
        sweep::growth(&self.submission.job.filled(), &self.submission.parameters)
    }

    /// The requests, made one by one: a hundred thousand environments need not be in memory at once.
    pub fn requests(&self) -> impl ExactSizeIterator<Item = JobRequest> {
        (0..self.jobs).map(|place| self.request(self.element(place)))
    }

    /// The first jobs, up to a number.
    pub(crate) fn into_jobs(self, most: usize) -> ValidJobs {
        let Self { submission: Submission { job, array, parameters }, jobs } = self;
        let mut indices = match array {
            None if parameters.is_empty() => return ValidJobs(Jobs::Each(vec![job])),
            None => (0..jobs as u32).collect(),
            Some(indices) => indices,
        };
        indices.truncate(most);
        ValidJobs(Jobs::Members { template: Arc::new(Template { request: job, parameters }), indices })
    }

    fn element(&self, place: usize) -> Option<ArrayElement> {
        let Submission { array, parameters, .. } = &self.submission;
        match array {
            Some(indices) => Some(ArrayElement { index: indices[place], array: None, parameters: BTreeMap::new() }),
            None if parameters.is_empty() => None,
            None => Some(ArrayElement { index: place as u32, array: None, parameters: sweep::values_at(parameters, place) }),
        }
    }

    /// The job with the longest values of all parameters. Jobs differ in nothing else that is checked, so it stands for all of them.
    fn longest(&self) -> JobRequest {
        let longest = |Parameter { name, values }: &Parameter| Some((name.clone(), values.iter().max_by_key(|value| value.len())?.clone()));
        let parameters = self.submission.parameters.iter().filter_map(longest).collect();
        self.request(self.element(0).map(|first| ArrayElement { parameters, ..first }))
    }

    fn request(&self, element: Option<ArrayElement>) -> JobRequest {
        let job = &self.submission.job;
        element.map_or_else(|| job.clone(), |element| job.as_element(element))
    }
}

impl JobRequest {
    /// All texts into which the values of a sweep are filled.
    fn filled(&self) -> Vec<String> {
        let files = [&self.output, &self.error].into_iter().flatten().map(|path| path.to_string_lossy().into_owned());
        self.command.arguments().iter().cloned().chain(files).collect()
    }

    /// The request of one job of an array or sweep, from what they have in common.
    pub(super) fn as_element(&self, element: ArrayElement) -> Self {
        let mut request = self.clone();
        // A script is left alone: what a value says must not become part of a program. It finds them in its environment.
        let (JobCommand::Program(words) | JobCommand::Script { arguments: words, .. }) = &mut request.command;
        for word in words {
            *word = filled_in(word, &element.parameters);
        }
        // A value is one component of a path.
        let in_path = |(name, value): (&String, &String)| (name.clone(), value.replace('/', "_"));
        let in_paths = element.parameters.iter().map(in_path).collect();
        for path in [&mut request.output, &mut request.error].into_iter().flatten() {
            if let Some(text) = path.to_str() {
                *path = filled_in(text, &in_paths).into();
            }
        }
        request.environment.insert("CARMA_ARRAY_INDEX".to_owned(), element.index.to_string());
        request.environment.extend(element.parameters.iter().map(|(name, value)| (sweep::variable(name), value.clone())));
        request.array = Some(element);
        request
    }
}

impl ValidJobs {
    /// Validates jobs that do not come from one submission.
    pub fn new(requests: Vec<JobRequest>) -> Result<Self, InvalidRequest> {
        requests.iter().try_for_each(check).map(|()| Self(Jobs::Each(requests)))
    }

    /// How many jobs.
    pub(crate) fn count(&self) -> usize {
        match &self.0 {
            Jobs::Each(requests) => requests.len(),
            Jobs::Members { indices, .. } => indices.len(),
        }
    }

    /// The resources, limits and schedules of all jobs are those of these requests.
    pub(crate) fn kinds(&self) -> &[JobRequest] {
        match &self.0 {
            Jobs::Each(requests) => requests,
            Jobs::Members { template, .. } => slice::from_ref(&template.request),
        }
    }

    /// The requests.
    pub(crate) fn into_requests(self) -> Vec<JobRequest> {
        match self.0 {
            Jobs::Each(requests) => requests,
            Jobs::Members { template, indices } => {
                indices.iter().enumerate().map(|(place, index)| template.request(place, *index, None)).collect()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn sweep_of(words: &[&str], parameters: Vec<Parameter>) -> Submission {
        let command = JobCommand::Program(words.iter().map(|word| (*word).to_owned()).collect());
        Submission { parameters, ..JobRequest::new(command, "/").into() }
    }

    fn parameter(name: &str, values: &[&str]) -> Parameter {
        Parameter { name: name.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
    }

    #[test]
    fn reserved_and_colliding_values_are_refused() {
        let refused = |submission: Submission| submission.validate().unwrap_err().to_string();
        let mut placed = sweep_of(&["a"], Vec::new());
        placed.job.array = Some(ArrayElement { index: 1, array: None, parameters: BTreeMap::new() });
        assert!(refused(placed).starts_with("job.array: the manager sets the array of a job"));
        let alike = refused(sweep_of(&["a"], vec![parameter("lr", &["1"]), parameter("LR", &["2"])]));
        assert_eq!(alike, "param: LR and lr have the same variable CARMA_PARAM_LR: rename one");
        let long = "x".repeat(131_070);
        let sweep = |value: &str| sweep_of(&["{a}{b}"], vec![parameter("a", &["1", value]), parameter("b", &["1", "22"])]);
        assert!(refused(sweep(&long)).contains("more than 128 KiB"), "a combination in the middle is too long");
        assert!(sweep("short").validate().is_ok());
    }

    #[test]
    fn parameters_are_filled_into_the_names_of_files() {
        let mut sweep = sweep_of(&["a", "{lr}"], vec![parameter("lr", &["0.1", "../b"])]);
        sweep.job.output = Some("/logs/{lr}.txt".into());
        let outputs: Vec<_> = sweep.clone().validate().unwrap().requests().map(|job| job.output.unwrap().display().to_string()).collect();
        assert_eq!(outputs, ["/logs/0.1.txt", "/logs/.._b.txt"]);
        sweep.job.error = Some("/logs/{rl}".into());
        assert!(sweep.validate().unwrap_err().to_string().contains("{rl}"));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// One job is checked, and all jobs are valid.
        #[test]
        fn every_job_of_a_valid_submission_is_valid(
            words in prop::collection::vec("(a|\\{p0\\}|\\{p1\\}){0,3}", 1..4),
            lengths in prop::collection::vec(prop::collection::btree_set(1_usize..80_000, 1..4), 0..3),
        ) {
            let parameters = lengths.iter().enumerate().map(|(place, lengths)| Parameter {
                name: format!("p{place}"),
                values: lengths.iter().map(|length| "v".repeat(*length)).collect(),
            });
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            let submission = sweep_of(&words, parameters.collect());
            let any_wrong = |valid: &ValidSubmission| valid.requests().any(|request| check(&request).is_err());
            let unchecked = ValidSubmission { jobs: sweep::count(&submission.parameters).unwrap(), submission: submission.clone() };
            match submission.validate() {
                Ok(valid) => prop_assert!(!any_wrong(&valid)),
                Err(InvalidRequest { key: "param", .. }) => {}
                Err(_) => prop_assert!(any_wrong(&unchecked)),
            }
        }
    }
}
