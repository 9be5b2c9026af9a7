//! Pools and their pilots: requests to the batch system, and their results.

pub(crate) mod plan;

use std::collections::BTreeMap;

use carma_core::{Seconds, ServerId};

use super::decide::{Decisions, Effect};
use super::servers::RemoteServer;
use crate::agents::AgentListener;
use crate::batch::{BatchOrder, BatchSystem, ListedPilot, PilotOutcome, PilotPaths};
use crate::cluster::{Pilot, PilotState, Pool, PoolName, PoolPause};
use crate::store::{Change, Loaded};
use crate::units::UnixMillis;

/// This many failures in a row pause a pool.
const MAX_FAILURES: u32 = 3;
/// A pilot that is missing in this many lists does not exist. In a single list it may be missing because the batch system is about to accept it.
const MISSING: u32 = 2;
/// A request without a clear answer may still be taken for this long, in milliseconds.
const UNCLEAR_TIMEOUT: u64 = 10_000;

/// All pools.
#[expect(clippy::struct_field_names, reason = "they are the pools")]
pub(crate) struct Pools {
    pools: BTreeMap<PoolName, Pool>,
    pilots: BTreeMap<String, Pilot>,
    /// In how many lists a pilot was missing.
    missing: BTreeMap<String, u32>,
    /// Started with the first pool.
    batch: Option<BatchSystem>,
    pub(crate) listener: Option<AgentListener>,
    paths: PilotPaths,
    watches: bool,
    /// Why the batch system does not answer.
    pub(crate) problem: Option<String>,
}

impl Pools {
    pub(crate) fn new(paths: PilotPaths) -> Self {
        Self {
            pools: BTreeMap::new(),
            pilots: BTreeMap::new(),
            missing: BTreeMap::new(),
            batch: None,
            listener: None,
            paths,
            watches: false,
            problem: None,
        }
    }

    /// Restarts from the store.
    pub(crate) fn begin(&mut self, loaded: &Loaded) {
        self.pools = loaded.pools.iter().map(|pool| (pool.name.clone(), pool.clone())).collect();
        self.pilots = loaded.pilots.iter().map(|pilot| (pilot.name.clone(), pilot.clone())).collect();
        self.missing.clear();
        self.watch();
    }

    pub(crate) fn start(&mut self, batch: BatchSystem) {
        self.batch = Some(batch);
        self.watches = false;
        self.watch();
    }

    pub(crate) fn has_batch_system(&self) -> bool {
        self.batch.is_some()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.pools.is_empty() && self.pilots.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Pool> {
        self.pools.values()
    }

    pub(crate) fn get(&self, name: &PoolName) -> Option<&Pool> {
        self.pools.get(name)
    }

    pub(crate) fn pilot(&self, name: &str) -> Option<&Pilot> {
        self.pilots.get(name)
    }

    pub(crate) fn pilots_of(&self, pool: &PoolName) -> impl Iterator<Item = &Pilot> {
        let name = pool.clone();
        self.pilots.values().filter(move |pilot| pilot.pool == name.as_str())
    }

    pub(crate) fn paths(&self) -> &PilotPaths {
        &self.paths
    }

    /// Asks the batch system for something that is in the store.
    pub(crate) fn order(&mut self, order: BatchOrder) {
        if let Some(batch) = &self.batch {
            batch.order(order);
        }
        self.watch();
    }

    /// Lists pilots while there are any.
    fn watch(&mut self) {
        let wanted = !self.pilots.is_empty();
        if let Some(batch) = self.batch.as_ref().filter(|_| wanted != self.watches) {
            batch.order(BatchOrder::Watch(wanted));
            self.watches = wanted;
        }
    }

    /// Changes a pool, in the store too.
    pub(crate) fn change(&mut self, decisions: &mut Decisions, name: &PoolName, change: impl FnOnce(&mut Pool)) {
        if let Some(pool) = self.pools.get_mut(name) {
            change(pool);
            decisions.batch.changes.push(Change::PoolChanged(Box::new(pool.clone())));
        }
    }

    pub(crate) fn add(&mut self, decisions: &mut Decisions, pool: Pool) {
        decisions.batch.changes.push(Change::PoolChanged(Box::new(pool.clone())));
        self.pools.insert(pool.name.clone(), pool);
    }

    fn change_pilot(&mut self, decisions: &mut Decisions, name: &str, change: impl FnOnce(&mut Pilot)) {
        let Some(pilot) = self.pilots.get_mut(name) else { return };
        let before = pilot.clone();
        change(pilot);
        if *pilot != before {
            decisions.batch.changes.push(Change::PilotChanged(pilot.clone()));
        }
    }

    /// Requests a pilot: its name is in the store first.
    pub(crate) fn request(&mut self, decisions: &mut Decisions, pool: &PoolName, name: String) {
        let Some(settings) = self.pools.get(pool).map(|pool| Box::new(pool.settings.clone())) else { return };
        let pilot = Pilot {
            name: name.clone(),
            pool: pool.to_string(),
            state: PilotState::Requesting,
            requested: decisions.wall(),
            batch_job: None,
            batch_state: None,
            server: None,
            returned: false,
        };
        decisions.announce(format!("pool {pool} requests the pilot {name}"));
        decisions.batch.changes.push(Change::PilotChanged(pilot.clone()));
        decisions.batch.effects.push(Effect::Batch(BatchOrder::Submit { pilot: name.clone(), settings, paths: self.paths.clone() }));
        self.pilots.insert(name, pilot);
    }

    /// The answer to a request.
    pub(crate) fn submitted(&mut self, decisions: &mut Decisions, name: &str, result: Result<String, String>) {
        self.change_pilot(decisions, name, |pilot| match result {
            Ok(job) => {
                pilot.batch_job = Some(job);
                if pilot.state == PilotState::Requesting {
                    pilot.state = PilotState::Pending;
                }
            }
            // Whether the batch system has it is seen in its list.
            Err(reason) => pilot.batch_state = Some(reason),
        });
    }

    /// The list of the batch system.
    pub(crate) fn listed(&mut self, decisions: &mut Decisions, listed: &[ListedPilot]) {
        self.problem = None;
        let now = decisions.wall();
        let names: Vec<String> = self.pilots.keys().cloned().collect();
        for name in names {
            // A pilot may have been started twice under one name: the last line that is not over counts.
            let lines = || listed.iter().filter(|line| line.name == name);
            match lines().find(|line| line.fate != PilotOutcome::Over).or_else(|| lines().next_back()) {
                Some(line) => self.found(decisions, &name, line),
                None => self.not_found(decisions, &name, now),
            }
        }
    }

    fn found(&mut self, decisions: &mut Decisions, name: &str, line: &ListedPilot) {
        self.missing.remove(name);
        let text = if line.reason.is_empty() { line.state.clone() } else { format!("{} ({})", line.state, line.reason) };
        self.change_pilot(decisions, name, |pilot| {
            pilot.batch_job = Some(line.batch_job.clone());
            pilot.batch_state = Some(text.clone());
            if pilot.state == PilotState::Requesting {
                pilot.state = PilotState::Pending;
            }
        });
        // The lease of one that has connected decides when its jobs are put back.
        if line.fate == PilotOutcome::Over && self.pilot(name).is_some_and(|pilot| pilot.state != PilotState::Connected) {
            let last = self.paths.last_lines(name);
            let reason = if last.is_empty() { text } else { format!("{text}: {last}") };
            self.failed(decisions, name, &format!("a pilot ended before its agent connected: {reason}"));
        }
    }

    fn not_found(&mut self, decisions: &mut Decisions, name: &str, now: UnixMillis) {
        let Some(pilot) = self.pilots.get(name) else { return };
        if pilot.state == PilotState::Connected {
            return;
        }
        let times = self.missing.entry(name.to_owned()).or_default();
        *times += 1;
        if *times < MISSING || now.0 < pilot.requested.0 + UNCLEAR_TIMEOUT {
            return;
        }
        let reason = match (&pilot.state, &pilot.batch_state) {
            (PilotState::Requesting, Some(reason)) => reason.clone(),
            _ => "the batch system has lost a pilot that it had accepted".to_owned(),
        };
        self.failed(decisions, name, &reason);
    }

    /// A pilot is over and was of no use.
    pub(crate) fn failed(&mut self, decisions: &mut Decisions, name: &str, reason: &str) {
        let Some(pilot) = self.pilots.get(name) else { return };
        let (pool, returned) = (pilot.pool.parse::<PoolName>(), pilot.returned && pilot.state != PilotState::Connected);
        self.forget(decisions, name, false);
        let Ok(pool) = pool else { return };
        if returned {
            return;
        }
        let reason = reason.to_owned();
        let mut announcement = format!("pool {pool}: {reason}");
        self.change(decisions, &pool, |pool| {
            pool.failures += 1;
            pool.last_failure = Some(reason.clone());
            if pool.failures >= MAX_FAILURES && pool.paused.is_none() {
                pool.paused = Some(PoolPause::Failures(reason));
                announcement = format!("{announcement}; it is paused after {MAX_FAILURES} failures");
            }
        });
        decisions.announce(announcement);
    }

    fn forget(&mut self, decisions: &mut Decisions, name: &str, with_log: bool) {
        self.pilots.remove(name);
        self.missing.remove(name);
        self.paths.remove(name, with_log);
        decisions.batch.changes.push(Change::PilotGone(name.to_owned()));
        // One that the batch system still has, or will have, is of no use.
        decisions.batch.effects.push(Effect::Batch(BatchOrder::Cancel { pilot: name.to_owned() }));
    }

    /// The agent of a pilot has connected.
    pub(crate) fn connected(&mut self, decisions: &mut Decisions, id: ServerId, server: Option<&RemoteServer>, now: UnixMillis) {
        let Some((server, name)) = server.and_then(|server| Some((server, server.stored.pilot.clone()?))) else { return };
        let Some(pilot) = self.pilots.get(&name) else { return };
        let wait = Seconds::new(now.0.saturating_sub(pilot.requested.0) as f64 / 1000.0).unwrap_or_default();
        let pool = pilot.pool.parse::<PoolName>();
        self.change_pilot(decisions, &name, |pilot| (pilot.state, pilot.server) = (PilotState::Connected, Some(id)));
        if let Ok(pool) = pool {
            self.change(decisions, &pool, |pool| {
                pool.queue_wait = Some(wait);
                pool.seen_memory = server.gpu_memory().or(pool.seen_memory);
            });
        }
    }

    /// The server of a pilot is gone.
    pub(crate) fn server_gone(&mut self, decisions: &mut Decisions, pilot: &str) {
        if self.pilots.contains_key(pilot) {
            self.forget(decisions, pilot, true);
        }
    }

    /// A pilot runs its first job.
    pub(crate) fn used(&mut self, decisions: &mut Decisions, pilot: &str) {
        let pool = self.pilots.get(pilot).and_then(|pilot| pilot.pool.parse::<PoolName>().ok());
        if let Some(pool) = pool.filter(|pool| self.pools.get(pool).is_some_and(|pool| pool.failures > 0)) {
            self.change(decisions, &pool, |pool| (pool.failures, pool.last_failure) = (0, None));
        }
    }

    /// A pilot is no longer wanted.
    pub(crate) fn returned(&mut self, decisions: &mut Decisions, name: &str) {
        self.change_pilot(decisions, name, |pilot| pilot.returned = true);
        if self.pilot(name).is_some_and(|pilot| pilot.state != PilotState::Connected) {
            decisions.batch.effects.push(Effect::Batch(BatchOrder::Cancel { pilot: name.to_owned() }));
        }
    }

    /// Forgets removed pools without pilots.
    pub(crate) fn forget_removed(&mut self, decisions: &mut Decisions) {
        let gone = |pool: &&Pool| pool.removed && self.pilots_of(&pool.name).next().is_none();
        for name in self.pools.values().filter(gone).map(|pool| pool.name.clone()).collect::<Vec<_>>() {
            self.pools.remove(&name);
            decisions.batch.changes.push(Change::PoolGone(name));
        }
    }
}
