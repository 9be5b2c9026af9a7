//! The servers of agents.

use super::View;
use crate::api::ServerDetail;
use crate::engine::servers::RemoteServer;

impl View<'_> {
    pub(crate) fn server_details(self) -> Vec<ServerDetail> {
        self.servers.iter().map(|server| self.server_detail(server)).collect()
    }

    fn server_detail(self, server: &RemoteServer) -> ServerDetail {
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        let stored = &server.stored;
        let pilot = stored.pilot.as_ref().and_then(|name| self.pools.pilot(name));
        ServerDetail {
            id: stored.id,
            node: stored.node.clone(),
            connected: server.is_connected(),
            gpus: count(self.gpus.remote(stored.id).iter().count()),
            jobs: count(self.attempts.on(stored.id).len()),
            pilot: stored.pilot.clone(),
            pool: pilot.map(|pilot| pilot.pool.clone()),
            batch_job: stored.batch_job.clone(),
            joined: stored.joined,
            ends: stored.ends,
            draining: server.draining.clone(),
        }
    }
}
