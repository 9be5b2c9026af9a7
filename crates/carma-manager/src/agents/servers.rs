//! The executor over all servers: attempts go to this host or to the agent of their server.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use carma_core::{AttemptId, JobId, ServerId, Signal};

use super::executor::AgentExecutor;
use crate::executor::{Adopted, CheckpointTimes, Executor, LocalExecutor, StartOrder};
use crate::host_gpus::LOCAL_SERVER;
use crate::supervise::FolderError;
use crate::watch::OutputMark;

/// This host, and the servers of agents.
#[derive(Debug)]
pub(crate) struct Servers {
    local: LocalExecutor,
    agents: Arc<AgentExecutor>,
}

impl Servers {
    pub(crate) fn new(local: LocalExecutor, agents: Arc<AgentExecutor>) -> Self {
        Self { local, agents }
    }
}

impl Executor for Servers {
    fn start(&self, order: Box<StartOrder>) {
        if order.placement.server == LOCAL_SERVER { self.local.start(order) } else { self.agents.order(*order) }
    }

    fn signal(&self, attempt: AttemptId, signal: Signal) {
        if self.agents.knows(attempt) { self.agents.signal(attempt, signal) } else { self.local.signal(attempt, signal) }
    }

    fn adopt(&self, attempts: &[(AttemptId, ServerId)]) -> Vec<Adopted> {
        let here = |server: ServerId| server == LOCAL_SERVER;
        let local: Vec<(AttemptId, ServerId)> = attempts.iter().filter(|(_, server)| here(*server)).copied().collect();
        self.agents.retain(|attempt| attempts.iter().any(|(other, server)| *other == attempt && !here(*server)));
        let mut adopted = self.local.adopt(&local).into_iter();
        let adopt = |(attempt, server): &(AttemptId, ServerId)| {
            if here(*server) {
                return adopted.next().unwrap_or(Adopted::Starting);
            }
            self.agents.adopt(*attempt, *server);
            // It is ordered again, which changes nothing where it runs.
            Adopted::NeverStarted
        };
        attempts.iter().map(adopt).collect()
    }

    fn acknowledge(&self, attempt: AttemptId) {
        if self.agents.knows(attempt) { self.agents.acknowledge(attempt) } else { self.local.acknowledge(attempt) }
    }

    fn progress(&self, attempt: AttemptId) -> Option<f64> {
        if self.agents.knows(attempt) { self.agents.progress(attempt) } else { self.local.progress(attempt) }
    }

    fn checkpoint(&self, attempt: AttemptId) -> Option<CheckpointTimes> {
        if self.agents.knows(attempt) { self.agents.checkpoint(attempt) } else { self.local.checkpoint(attempt) }
    }

    fn owners(&self, pids: &[u32]) -> HashMap<u32, AttemptId> {
        self.local.owners(pids)
    }

    fn group(&self, attempt: AttemptId) -> Option<PathBuf> {
        self.local.group(attempt)
    }

    fn output(&self, attempt: AttemptId) -> OutputMark {
        self.local.output(attempt)
    }

    // Logs of all servers are copied to this host, and orders with secrets stay on theirs.

    fn highest_job(&self) -> Option<JobId> {
        self.local.highest_job()
    }

    fn hide_secrets(&self, job: JobId) -> Result<(), FolderError> {
        self.local.hide_secrets(job)
    }

    fn remove_logs(&self, attempt: AttemptId) {
        self.local.remove_logs(attempt);
    }

    fn remove_unknown(&self, is_known: &dyn Fn(JobId) -> bool) {
        self.local.remove_unknown(is_known);
    }
}
