//! What keeps a job off a server because of its end, its host's cores and memory, or other users there.
//!
//! Claims of the first waiting jobs are kept free: that of the head of the queue on the servers whose GPUs are kept for it, and that of
//! the first job without GPUs on one server. What is free there never falls below such a claim again, so both start when enough
//! running jobs have ended. Jobs that claim nothing are not affected.

use super::time_checks::{lasts, may_last, time_objection};
use super::{Demand, JobQuestion};
use crate::fleet::{Fleet, Server};
use crate::job::HostClaim;
use crate::obstacle::Obstacle;
use crate::policy::Score;
use crate::{JobId, ServerId};

/// What is kept of a server's host for the first job without GPUs that waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HostReservation {
    /// The job it is kept for.
    pub(crate) head: JobId,
    /// The server.
    pub(crate) server: ServerId,
    /// What is kept there.
    pub(crate) claim: HostClaim,
}

/// Whether the server lasts long enough and its host has what the job claims. Costs little for jobs that claim nothing.
pub(crate) fn host_takes(question: &JobQuestion<'_>, server: &Server) -> bool {
    let claims_nothing = question.demand.host.is_nothing() && question.reserve.is_none();
    let in_time = time_objection(question.demand, server).is_none();
    in_time && (claims_nothing || host_obstacles(question, server).next().is_none())
}

/// Everything about the server's end and host that keeps the job away.
pub(crate) fn host_obstacles(question: &JobQuestion<'_>, server: &Server) -> impl Iterator<Item = Obstacle> + use<> {
    let HostClaim { cores, memory } = question.demand.host;
    let (free, all) = (server.host_unbooked(), server.host_total());
    let available = server.host.available().unwrap_or(HostClaim::UNLIMITED.memory);
    let short_of_cores = (cores > free.cores).then_some(Obstacle::HostCores { needed: cores, free: free.cores, all: all.cores });
    let short_of_memory = (memory > free.memory).then_some(Obstacle::HostMemory { needed: memory, free: free.memory, all: all.memory });
    let in_use = (memory > available).then_some(Obstacle::HostMemoryInUse { needed: memory, available });
    let room = HostClaim { cores: free.cores, memory: free.memory.min(available) };
    let crowded = question.reserve.filter(|_| question.demand.width() > 0).and_then(|reserve| reserve.host_objection(server));
    let ends = time_objection(question.demand, server);
    ends.into_iter().chain(short_of_cores).chain(short_of_memory).chain(in_use).chain(kept(question, server, room)).chain(crowded)
}

/// The job for which what is left of the host is kept, if this one would take of it.
fn kept(question: &JobQuestion<'_>, server: &Server, room: HostClaim) -> Option<Obstacle> {
    let (id, claim) = (server.spec.id, question.demand.host);
    let for_heads = question.kept_for_others().map(|kept| (kept.head, kept.kept_of_host(id, question.demand.ends)));
    let for_cpu_head = question.host_kept.filter(|kept| kept.server == id).map(|kept| (kept.head, kept.claim));
    let mut left = room.without(claim);
    for (head, kept) in for_heads.chain(for_cpu_head) {
        // A job may take all of what the other does not claim.
        let short = claim.cores > 0 && kept.cores > left.cores || claim.memory.0 > 0 && kept.memory > left.memory;
        if short {
            return Some(Obstacle::HostReservedForHead { head });
        }
        left = left.without(kept);
    }
    None
}

/// The server that lacks least of a claim, among those that could ever hold it: cores first, then memory. As no job takes
/// more of it, it stays the same until it lacks nothing or another lacks less.
pub(crate) fn least_lacking<'a>(fleet: &'a Fleet, demand: &Demand<'_>) -> Option<&'a Server> {
    let claim = demand.host;
    let lacking = |free: HostClaim| {
        let HostClaim { cores, memory } = claim.without(free);
        Score(u64::from(cores) << 32 | memory.0.min(u32::MAX.into()))
    };
    fleet.best(
        0..fleet.servers().len(),
        |summary| (claim.fits_in(summary.host_total) && may_last(demand, summary)).then(|| lacking(summary.host_unbooked)),
        |server| (claim.fits_in(server.host_total()) && lasts(demand, server)).then(|| (lacking(server.host_unbooked()), server)),
    )
}
