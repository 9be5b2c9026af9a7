//! The manager's log of events: each is logged once, when it is on the disk.

use super::change::Change;
use crate::event::{JobEvent, NewEvent};

/// Logs the events among changes that are committed.
pub(super) fn log_events(changes: &[Change]) {
    for change in changes {
        match change {
            Change::EventLogged(event) => log_event(event),
            Change::ArrayAccepted(array) => {
                tracing::info!(job = array.array.0, event = "submitted", jobs = array.indices.len(), "submitted");
            }
            _ => {}
        }
    }
}

fn log_event(new: &NewEvent) {
    let attempt = match new.event {
        JobEvent::Launched { attempt, .. } | JobEvent::Signalled { attempt, .. } | JobEvent::Ended { attempt, .. } => Some(attempt),
        _ => None,
    };
    let (event, text) = (new.event.kind(), new.event.text());
    if matches!(new.event, JobEvent::Machine { warning: true, .. }) {
        tracing::warn!(event, "{text}");
    } else if let Some(place) = new.array {
        tracing::info!(job = %place, attempt, event, "{text}");
    } else {
        tracing::info!(job = new.job.map(|job| job.0), attempt, event, "{text}");
    }
}
