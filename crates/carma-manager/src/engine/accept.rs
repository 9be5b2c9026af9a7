//! Acceptance of submissions, all jobs or none.

use std::rc::Rc;

use carma_core::{ArrayId, ArrayMember, Event, JobId, JobLabel, JobSpec};

use super::decide::Reply;
use super::decide::batch::{AcceptedArray, AcceptedJob};
use super::estimates::{Estimated, Groups, Method, Purpose};
use super::predictions::WAITING;
use super::refusal::refused;
use super::request_source::RequestSource;
use super::state::EngineState;
use crate::api::{Problem, ProblemKind, Submitted};
use crate::event::JobEvent;
use crate::request::{JobRequest, Owner};
use crate::store::{JobMeta, UnixMillis};
use crate::submission::{Jobs, ValidJobs};
use crate::submission_key::SubmissionKey;
use crate::tally::Tally;

/// The most lines of notes in an answer: a sweep may have as many different ones as jobs.
const MAX_NOTES: usize = 10;

/// Data of a checked job that the core does not need. Jobs of an array share it.
struct CheckedJob {
    /// The job in terms of earlier runs.
    groups: Groups,
    /// The estimate from earlier runs.
    recalled: Option<Estimated>,
    /// How it is estimated otherwise.
    method: Option<Method>,
    /// A note for its user.
    note: Option<String>,
}

/// Jobs to accept, in the order of their numbers.
struct NewJobs {
    specs: Vec<JobSpec>,
    sources: Vec<RequestSource>,
    checked: Vec<Rc<CheckedJob>>,
}

impl EngineState {
    /// Accepts jobs, all or none. Answered after the commit.
    pub(crate) fn submit(&mut self, owner: &Owner, jobs: ValidJobs, key: Option<SubmissionKey>, reply: Reply<Submitted>) {
        match self.accept_once(owner, jobs, key) {
            Ok(accepted) => self.decisions.answer(reply, accepted),
            Err(problem) => drop(reply.send(Err(problem))),
        }
    }

    /// Accepts jobs, unless this user has submitted them before under the same key.
    fn accept_once(&mut self, owner: &Owner, jobs: ValidJobs, key: Option<SubmissionKey>) -> Result<Submitted, Problem> {
        let Some(key) = key else { return self.accept(owner, jobs) };
        if let Some(earlier) = self.keyed.earlier(&self.reader, owner.uid, &key)? {
            return Ok(earlier);
        }
        let accepted = self.accept(owner, jobs)?;
        self.keyed.keep(&mut self.decisions, owner.uid, key, &accepted);
        Ok(accepted)
    }

    fn accept(&mut self, owner: &Owner, jobs: ValidJobs) -> Result<Submitted, Problem> {
        if self.draining {
            return Err(ProblemKind::Unavailable.because("the manager is draining and accepts no jobs"));
        }
        self.check_limits(owner, jobs.count(), jobs.kinds())?;
        let first = self.writer.store().next_jobs(jobs.count() as u64);
        let NewJobs { specs, sources, checked } = self.check_all(first, jobs, owner)?;
        let labels: Vec<JobLabel> = specs.iter().map(JobSpec::label).collect();
        let accepted = Submitted { jobs: labels.iter().map(|label| label.job).collect(), notes: notes(&labels, &checked) };
        // The core checks all of them before it accepts the first: a job of a refused array must not have run.
        self.decisions.tell(Event::JobsSubmitted { jobs: specs }).map_err(|error| refused(&error))?;
        let submitted = self.decisions.wall();
        if let Some(RequestSource::Member { template, array, .. }) = sources.first() {
            let (template, indices) = (template.clone(), sources.iter().filter_map(RequestSource::index).collect());
            self.decisions.batch.arrays.push(AcceptedArray { array: *array, indices, template, owner: owner.clone(), submitted });
        }
        for (place, ((label, source), checked)) in labels.into_iter().zip(sources).zip(checked).enumerate() {
            // Those of the others are looked up when they come to the front of the queue.
            if place < WAITING {
                self.estimates.lengths.add(label.job, checked.groups);
            }
            self.record(label, source, &checked, owner, submitted);
        }
        Ok(accepted)
    }

    /// Checks all jobs of a submission. Those of an array differ in nothing that is checked, so one of them stands for all.
    fn check_all(&self, first: JobId, jobs: ValidJobs, owner: &Owner) -> Result<NewJobs, Problem> {
        let (array, ids) = (ArrayId(first.0), (first.0..).map(JobId));
        let count = jobs.count();
        let mut all = NewJobs { specs: Vec::with_capacity(count), sources: Vec::with_capacity(count), checked: Vec::with_capacity(count) };
        match jobs.0 {
            Jobs::Each(requests) => {
                for (id, mut request) in ids.zip(requests) {
                    request.array.iter_mut().for_each(|element| element.array = Some(array));
                    let (spec, checked) = self.check(id, first, &request, owner)?;
                    all.add(spec, request.into(), Rc::new(checked));
                }
            }
            Jobs::Members { template, indices } => {
                let lean = template.without_environment();
                let mut before: Option<(JobSpec, Rc<CheckedJob>)> = None;
                for ((place, index), id) in indices.into_iter().enumerate().zip(ids) {
                    let (spec, checked) = match &before {
                        Some((spec, checked)) if lean.parameters.is_empty() => {
                            let member = spec.array.map(|member| ArrayMember { index, ..member });
                            (JobSpec { id, array: member, ..spec.clone() }, Rc::clone(checked))
                        }
                        _ => {
                            let (spec, checked) = self.check(id, first, &lean.request(place, index, Some(array)), owner)?;
                            (spec, Rc::new(checked))
                        }
                    };
                    if before.is_none() {
                        before = Some((spec.clone(), Rc::clone(&checked)));
                    }
                    all.add(spec, RequestSource::Member { template: template.clone(), array, place, index }, checked);
                }
            }
        }
        Ok(all)
    }

    /// Checks a request, and adds what earlier runs show.
    fn check(&self, id: JobId, first: JobId, request: &JobRequest, owner: &Owner) -> Result<(JobSpec, CheckedJob), Problem> {
        let mut spec = self.spec(id, first, request, owner)?;
        let recalled = self.estimates.recall(request, spec.user);
        let groups = self.estimates.lengths.groups(request, spec.user);
        let note = self.estimates.add_to(&mut spec, request, &groups, recalled.as_ref());
        spec.validate().map_err(|error| ProblemKind::Invalid.because(error.to_string()))?;
        if let Some(problem) = recalled.as_ref().and_then(|recalled| self.over_limit(recalled)) {
            return Err(problem);
        }
        let method = if recalled.is_some() { None } else { self.estimates.method(request) };
        spec.awaits_estimate = method.is_some();
        Ok((spec, CheckedJob { groups, recalled, method, note }))
    }

    /// Records an accepted job, and starts its estimate if it needs one.
    fn record(&mut self, label: JobLabel, source: RequestSource, checked: &CheckedJob, owner: &Owner, submitted: UnixMillis) {
        let id = label.job;
        self.predictions.submitted(&self.decisions, &self.estimates.lengths, id);
        self.jobs.add(id, JobMeta { name: source.name().map(str::to_owned), owner: owner.clone(), submitted });
        if let Some(method) = checked.method {
            self.order_estimate(Purpose::Job(id), source.clone(), owner.clone(), method);
        }
        self.decisions.batch.tallies.count(Tally::Submitted);
        if let RequestSource::Own(request) = source {
            self.decisions.batch.accepted.push(AcceptedJob { job: id, request: *request, owner: owner.clone(), submitted });
            self.decisions.log(id, JobEvent::Submitted { user: owner.name.clone() });
        }
        self.decisions.publish(id, format!("{label} is submitted"));
        if checked.method.is_some() {
            self.decisions.batch.log(submitted, label, JobEvent::Estimating {});
        }
        if checked.recalled.is_some() || checked.note.is_some() {
            let mut estimated = checked.recalled.clone().unwrap_or_default();
            estimated.notes.extend(checked.note.clone());
            self.decisions.batch.log(submitted, label, JobEvent::Estimated(Box::new(estimated)));
        }
    }
}

impl NewJobs {
    fn add(&mut self, spec: JobSpec, source: RequestSource, checked: Rc<CheckedJob>) {
        self.specs.push(spec);
        self.sources.push(source);
        self.checked.push(checked);
    }
}

/// The notes of a submission: jobs with the same note share a line.
fn notes(labels: &[JobLabel], checked: &[Rc<CheckedJob>]) -> Vec<String> {
    let mut lines: Vec<(JobLabel, usize, &str)> = Vec::new();
    for (label, note) in labels.iter().zip(checked).filter_map(|(label, job)| Some((label, job.note.as_ref()?))) {
        match lines.iter().position(|(_, _, text)| text == note) {
            Some(line) => lines[line].1 += 1,
            None if lines.len() < MAX_NOTES => lines.push((*label, 0, note)),
            None => {}
        }
    }
    let line = |(first, more, note): (JobLabel, usize, &str)| match more {
        0 => format!("{first}: {note}"),
        more => format!("{first} and {more} more: {note}"),
    };
    lines.into_iter().map(line).collect()
}
