//! Searches in the history find what a look at every job would find, in pages.

use std::sync::Arc;

use carma_core::*;
use carma_manager::api::OutcomeFilter;
use carma_manager::store::*;
use carma_manager::submission::Template;

use super::lab::*;

const NAMES: [&str; 6] = ["Bert-large", "vit", "resnet \"50\"", "übung-größe", "a%b_c", "bert"];

/// Jobs of two users with few names, and arrays among them, some of them over in each way. Between some of them, the clock is set back.
fn history(store: &Store) {
    let outcomes = [None, Some(Outcome::Succeeded), Some(Outcome::Cancelled), Some(Outcome::Failed { code: 2 }), Some(Outcome::GpuLost)];
    for place in 0..60_u64 {
        let owner = if place % 3 == 0 { bob() } else { alice() };
        let name = NAMES[(place % 7 % 6) as usize];
        let submitted = UnixMillis(NOW.0 + (if place < 40 { place } else { place - 30 }) * 1_800_000);
        let jobs = if place % 10 == 4 { 4 } else { 1 };
        let first = store.next_jobs(jobs);
        let one = StoredJob { submitted, ..stored(first, owner.clone(), (place % 8 > 0).then_some(name)) };
        if jobs == 1 {
            store.write([Change::JobAccepted(Box::new(one))]).wait().unwrap();
        } else {
            let array = ArrayId(first.0);
            let member = ArrayMember { array, index: 3, at_most: None };
            let state = core_job(JobId(first.0 + 3), |spec| spec.array = Some(member));
            let template = Arc::new(Template { request: one.request, parameters: Vec::new() });
            let stored = StoredArray { array, indices: vec![0, 1, 2, 3], template, owner, state, submitted, ended: None };
            store.write([Change::ArrayAccepted(Box::new(stored))]).wait().unwrap();
        }
        for job in first.0..first.0 + jobs {
            if let Some(outcome) = &outcomes[(job % 5) as usize] {
                store.write([finished(JobId(job), outcome.clone(), UnixMillis(submitted.0 + 5))]).wait().unwrap();
            }
        }
    }
    store.write([Change::JobsDeleted(vec![JobId(6), JobId(9), JobId(21)])]).wait().unwrap();
}

/// Whether a job meets a filter.
fn meets(filter: &JobFilter, job: &JobSummary) -> bool {
    let lower = |text: &str| text.to_ascii_lowercase();
    let has = |text: &str, part: &str| lower(text).contains(&lower(part));
    let name = job.name.as_deref();
    filter.user.is_none_or(|user| job.user == user)
        && filter.phase.is_none_or(|phase| job.phase == phase)
        && filter.name.as_ref().is_none_or(|part| name.is_some_and(|name| has(name, part)))
        && filter
            .text
            .as_ref()
            .is_none_or(|part| name.is_some_and(|name| has(name, part)) || has(&job.user_name, part) || *part == job.id.0.to_string())
        && filter.array.is_none_or(|array| job.array.is_some_and(|place| place.array == array))
        && filter.submitted.since.is_none_or(|since| job.submitted >= since)
        && filter.submitted.until.is_none_or(|until| job.submitted < until)
        && filter.outcome.is_none_or(|wanted| match (wanted, &job.outcome) {
            (OutcomeFilter::Failed, Some(outcome)) => !matches!(outcome, Outcome::Succeeded | Outcome::Cancelled),
            (OutcomeFilter::Succeeded, Some(Outcome::Succeeded))
            | (OutcomeFilter::Cancelled, Some(Outcome::Cancelled))
            | (OutcomeFilter::Lost, Some(Outcome::GpuLost)) => true,
            _ => false,
        })
}

#[test]
fn every_filter_finds_what_a_look_at_every_job_finds() {
    let lab = Lab::new();
    let store = lab.open();
    history(&store);
    let reader = store.reader().unwrap();
    let all = reader.history(&JobFilter::default(), None, 1_000).unwrap();
    let texts = ["bert", "BERT-l", "\"50\"", "größe", "%b_", "alice", "ob", "17", "no such", "t \"", "\\"];
    let users = [None, Some(UserId(1001)), Some(UserId(7))];
    let outcomes = [None, Some(OutcomeFilter::Failed), Some(OutcomeFilter::Lost), Some(OutcomeFilter::Cancelled), Some(OutcomeFilter::Oom)];
    let at = |half_hours: u64| Some(UnixMillis(NOW.0 + half_hours * 1_800_000));
    let spans = [(None, None), (at(13), None), (None, at(12)), (at(15), at(35)), (at(900), None)];
    let arrays = [None, Some(ArrayId(5)), Some(ArrayId(6))];
    let mut filters = Vec::new();
    for user in users {
        for (since, until) in spans {
            let plain = JobFilter { user, submitted: Span { since, until }, ..JobFilter::default() };
            filters.extend(texts.iter().map(|text| JobFilter { text: Some((*text).to_owned()), ..plain.clone() }));
            filters.extend(texts.iter().map(|name| JobFilter { name: Some((*name).to_owned()), ..plain.clone() }));
            filters.extend(outcomes.iter().map(|outcome| JobFilter { outcome: *outcome, ..plain.clone() }));
            filters.extend(outcomes.iter().map(|outcome| JobFilter { outcome: *outcome, name: Some("bert".to_owned()), ..plain.clone() }));
            filters.extend([Phase::Queued, Phase::Running, Phase::Done].map(|phase| JobFilter { phase: Some(phase), ..plain.clone() }));
            filters.extend(arrays.iter().map(|array| JobFilter { array: *array, ..plain.clone() }));
        }
    }
    for filter in filters {
        let expected: Vec<&JobSummary> = all.iter().filter(|job| meets(&filter, job)).collect();
        let (mut found, mut before) = (Vec::new(), None);
        loop {
            let page = reader.history(&filter, before, 7).unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.id);
            found.extend(page);
        }
        assert_eq!(found.iter().collect::<Vec<_>>(), expected, "{filter:?}");
    }
}
