//! A line about pools that are paused, or whose pilots wait in the queue of the batch system.

use carma_format::{count, printable};
use carma_manager::api::PoolDetail;
use carma_manager::cluster::Pilot;

/// The line, if there is such a pool.
pub(in crate::top) fn text(pools: &[PoolDetail]) -> Option<String> {
    let parts: Vec<String> = pools.iter().filter_map(about).collect();
    (!parts.is_empty()).then(|| parts.join("; "))
}

fn about(detail: &PoolDetail) -> Option<String> {
    let pending = detail.pilots.iter().filter(|pilot| pilot.is_pending()).collect::<Vec<&Pilot>>();
    let paused = detail.pool.paused.as_ref().map(ToString::to_string);
    let first = pending.iter().find_map(|pilot| pilot.batch_state.as_deref());
    let waits = (!pending.is_empty()).then(|| {
        let reason = first.map(|state| format!(": {state}")).unwrap_or_default();
        format!("{} pending{reason}", count(pending.len(), "pilot"))
    });
    let parts: Vec<String> = paused.into_iter().chain(waits).collect();
    (!parts.is_empty()).then(|| printable(&format!("pool {}: {}", detail.pool.name, parts.join(", "))))
}
