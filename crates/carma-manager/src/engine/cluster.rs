//! Answers about servers and pools.

use super::decide::Reply;
use super::pools::plan::Need;
use super::question::ClusterQuestion;
use super::state::EngineState;
use crate::api::{NewPool, PoolChange, PoolDetail, PoolTest, Problem, ProblemKind};
use crate::batch::BatchOrder;
use crate::cluster::{Pool, PoolName, PoolPause, PoolSettings};

impl EngineState {
    pub(super) fn answer_about_cluster(&mut self, question: ClusterQuestion) {
        match question {
            ClusterQuestion::Servers { reply } => drop(reply.send(Ok(self.view().server_details()))),
            ClusterQuestion::Pools { reply } => drop(reply.send(Ok(self.pool_details()))),
            ClusterQuestion::Add { new, by, reply } => match self.add_pool(*new, &by) {
                Ok(()) => self.decisions.answer(reply, ()),
                Err(problem) => drop(reply.send(Err(problem))),
            },
            ClusterQuestion::Change { pool, change, by, reply } => match self.change_pool(&pool, change, &by) {
                Ok(()) => self.decisions.answer(reply, ()),
                Err(problem) => drop(reply.send(Err(problem))),
            },
            ClusterQuestion::Test { pool, reply } => self.test_pool(&pool, reply),
        }
    }

    fn pool_details(&self) -> Vec<PoolDetail> {
        let waiting = self.waiting_jobs();
        let detail = |pool: &Pool| PoolDetail {
            pool: pool.clone(),
            pilots: self.pools.pilots_of(&pool.name).cloned().collect(),
            note: match self.needs_pilot(&pool.name, &waiting) {
                Need::Request => None,
                Need::No(reason) => Some(reason),
            },
        };
        self.pools.iter().map(detail).collect()
    }

    fn add_pool(&mut self, new: NewPool, by: &str) -> Result<(), Problem> {
        let NewPool { name, settings } = new;
        if self.pools.get(&name).is_some() {
            return Err(ProblemKind::Conflict.because(format!("pool {name} exists already: remove it first")));
        }
        check(&settings)?;
        self.decisions.announce(format!("pool {name} is added by {by}"));
        self.pools.add(&mut self.decisions, Pool::new(name, settings));
        self.serve_agents().map_err(|reason| ProblemKind::Unavailable.because(format!("agents cannot connect: {reason}")))
    }

    fn change_pool(&mut self, name: &PoolName, change: PoolChange, by: &str) -> Result<(), Problem> {
        if self.pools.get(name).is_none() {
            return Err(no_such_pool(name));
        }
        self.pools.change(&mut self.decisions, name, |pool| match change {
            PoolChange::Pause => pool.paused = Some(PoolPause::By(by.to_owned())),
            PoolChange::Resume => (pool.paused, pool.failures) = (None, 0),
            PoolChange::Remove => (pool.removed, pool.paused) = (true, Some(PoolPause::By(by.to_owned()))),
        });
        let done = match change {
            PoolChange::Pause => "paused",
            PoolChange::Resume => "resumed",
            PoolChange::Remove => "removed",
        };
        self.decisions.announce(format!("pool {name} is {done} by {by}"));
        Ok(())
    }

    fn test_pool(&mut self, name: &PoolName, reply: Reply<PoolTest>) {
        let Some(pool) = self.pools.get(name) else { return drop(reply.send(Err(no_such_pool(name)))) };
        let (answer, answered) = tokio::sync::oneshot::channel();
        let order = BatchOrder::Test { settings: Box::new(pool.settings.clone()), paths: self.pools.paths().clone(), answer };
        self.pools.order(order);
        // Slurm may take half a minute, and others must not wait for it.
        let wait = move || {
            let result = answered.blocking_recv();
            let answer = match result {
                Ok(Ok(text)) => Ok(PoolTest { accepted: true, text }),
                Ok(Err(text)) => Ok(PoolTest { accepted: false, text }),
                Err(_) => Err(ProblemKind::Unavailable.because("the manager is stopping")),
            };
            drop(reply.send(answer));
        };
        if let Err(error) = std::thread::Builder::new().name("pool test".to_owned()).spawn(wait) {
            tracing::error!("cannot start a thread: {error}");
        }
    }
}

fn no_such_pool(name: &PoolName) -> Problem {
    ProblemKind::NotFound.because(format!("unknown pool {name}"))
}

fn check(settings: &PoolSettings) -> Result<(), Problem> {
    let invalid = |text: &str| Err(ProblemKind::Invalid.because(text.to_owned()));
    if settings.gpus == 0 {
        return invalid("a pilot needs at least one GPU");
    }
    if settings.max == 0 || settings.backlog == 0 {
        return invalid("a pool needs at least one pilot: max and backlog must be 1 or more");
    }
    if settings.time.get() < 60.0 {
        return invalid("a pilot needs at least a minute");
    }
    // Names are ours, and a pilot that is requeued would be a second one under its name.
    let taken = ["--job-name", "-J", "--requeue", "--array", "-a", "--wrap"];
    let is_taken = |word: &&String| taken.iter().any(|name| word.as_str() == *name || word.starts_with(&format!("{name}=")));
    match settings.extra.iter().find(is_taken) {
        Some(word) => Err(ProblemKind::Invalid.because(format!("{word} cannot be an argument of a pilot: CARMA sets it"))),
        None => Ok(()),
    }
}
