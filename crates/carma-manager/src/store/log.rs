//! The manager's log of events: each is logged once, when it is on the disk.

use super::change::Change;
use crate::event::JobEvent;

/// Logs the events among changes that are committed.
pub(super) fn log_events(changes: &[Change]) {
    let events = changes.iter().filter_map(|change| match change {
        Change::EventLogged(event) => Some(event),
        _ => None,
    });
    for new in events {
        let attempt = match new.event {
            JobEvent::Launched { attempt, .. } | JobEvent::Signalled { attempt, .. } | JobEvent::Ended { attempt, .. } => Some(attempt),
            _ => None,
        };
        tracing::info!(job = new.job.map(|job| job.0), attempt, event = new.event.kind(), "{}", new.event.text());
    }
}
