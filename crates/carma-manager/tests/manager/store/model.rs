//! The store against a model of it: whatever was written, in whatever order, with restarts in between, reads back.

use std::collections::BTreeMap;
use std::thread;

use carma_core::*;
use carma_manager::store::*;
use proptest::prelude::*;
use proptest::sample::Index;

use super::lab::*;

#[derive(Debug, Clone)]
enum Step {
    Submit,
    Finish(Index),
    Forget(Index),
    Log(u8),
    /// Something that fits, together with something that does not.
    Misfit,
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => Just(Step::Submit),
        3 => any::<Index>().prop_map(Step::Finish),
        1 => any::<Index>().prop_map(Step::Forget),
        3 => any::<u8>().prop_map(Step::Log),
        1 => Just(Step::Misfit),
        1 => Just(Step::Reopen),
    ];
    proptest::collection::vec(step, 1..60)
}

/// What the store should hold.
#[derive(Debug, Default, PartialEq)]
struct Model {
    jobs: BTreeMap<u64, Phase>,
    events: Vec<String>,
    /// The latest number that was ever given.
    latest: u64,
}

impl Model {
    fn read(store: &Store, latest: u64) -> Self {
        let reader = store.reader().unwrap();
        let jobs = reader.history(&JobFilter::default(), None, u32::MAX).unwrap().into_iter().map(|job| (job.id.0, job.phase)).collect();
        let events = reader.events_after(0, u32::MAX).unwrap().into_iter().map(|event| event.event.event.kind()).collect();
        Self { jobs, events, latest }
    }

    /// The change for a step, made here at once.
    fn change(&mut self, step: &Step, store: &Store) -> Vec<Change> {
        match step {
            Step::Submit => {
                let id = store.next_jobs(1);
                assert!(id.0 > self.latest, "{id} was given before");
                self.latest = id.0;
                self.jobs.insert(id.0, Phase::Queued);
                self.events.push(id.to_string());
                vec![accepted(id), event(None, &id.to_string(), NOW)]
            }
            Step::Finish(which) => self.pick(*which).map_or(Vec::new(), |id| {
                self.jobs.insert(id.0, Phase::Done);
                vec![finished(id, Outcome::Cancelled, NOW)]
            }),
            Step::Forget(which) => self.pick(*which).map_or(Vec::new(), |id| {
                self.jobs.retain(|other, phase| *other != id.0 || *phase != Phase::Done);
                vec![Change::JobsDeleted(vec![id])]
            }),
            Step::Log(kind) => {
                self.events.push(kind.to_string());
                vec![event(None, &kind.to_string(), NOW)]
            }
            Step::Misfit => vec![event(None, "never", NOW), finished(JobId(u32::MAX.into()), Outcome::Cancelled, NOW)],
            Step::Reopen => Vec::new(),
        }
    }

    fn pick(&self, which: Index) -> Option<JobId> {
        let jobs: Vec<JobId> = self.jobs.keys().copied().map(JobId).collect();
        (!jobs.is_empty()).then(|| *which.get(&jobs))
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 32, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn acknowledged_changes_are_there_in_order_and_once(steps in steps()) {
        let lab = Lab::new();
        let mut store = lab.open();
        let mut model = Model::default();
        let mut tickets = Vec::new();
        for step in &steps {
            tickets.push((matches!(step, Step::Misfit), store.write(model.change(step, &store))));
            if matches!(step, Step::Reopen) {
                drop(store);
                store = lab.open();
            }
        }
        for (misfit, ticket) in tickets {
            prop_assert_eq!(ticket.wait().is_err(), misfit);
        }
        prop_assert_eq!(Model::read(&store, model.latest), model);
    }
}

#[test]
fn many_write_at_once_and_each_in_its_order() {
    let lab = Lab::new();
    let store = lab.open();
    thread::scope(|scope| {
        for writer in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..40 {
                    let id = store.next_jobs(1);
                    let ticket = store.write([accepted(id), event(None, &format!("{writer}/{number:02}"), NOW)]);
                    if number % 2 == 0 {
                        ticket.wait().unwrap();
                    }
                }
            });
        }
    });
    drop(store);
    let store = lab.open();
    assert_eq!(all_jobs(&store), (1..=320).map(JobId).collect::<Vec<_>>());
    let mut kinds: Vec<String> =
        store.reader().unwrap().events_after(0, 1_000).unwrap().into_iter().map(|event| event.event.event.kind()).collect();
    // A stable sort by writer alone: the numbers of each must be in order already.
    kinds.sort_by_key(|kind| kind.split('/').next().unwrap().to_owned());
    assert!(kinds.len() == 320 && kinds.is_sorted(), "{kinds:?}");
}
