//! Recent events, the latest first.

use std::collections::VecDeque;

use carma_core::{JobLabel, Outcome, RequeueReason, Verdict};
use carma_manager::event::JobEvent;
use carma_manager::store::{StoredEvent, UnixMillis, label};

use carma_format::printable;

/// How many are kept.
const KEPT: usize = 500;

/// Importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// Routine.
    Routine,
    /// A fault with a recovery: of a job, a lost GPU, a host short of memory.
    Recovery,
    /// A job failed without a retry.
    Failure,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct EventRow {
    pub(crate) at: UnixMillis,
    pub(crate) job: Option<JobLabel>,
    pub(crate) text: String,
    pub(crate) severity: Severity,
}

/// The last of them.
#[derive(Debug, Default)]
pub(crate) struct EventList {
    all: VecDeque<EventRow>,
    last: Option<u64>,
    /// Whether routine events are hidden.
    pub(crate) hide_routine: bool,
    /// The place in the list of the one that is selected.
    place: usize,
}

impl EventList {
    /// Adds the next event.
    pub(super) fn take(&mut self, StoredEvent { sequence, event, text }: StoredEvent) {
        // After a lost connection some events may be repeated.
        if self.last.is_some_and(|last| sequence <= last) {
            return;
        }
        self.last = Some(sequence);
        let event = EventRow {
            at: event.at,
            job: event.job.map(|job| label(job, event.array)),
            text: printable(&text),
            severity: severity(&event.event),
        };
        // A selected earlier event stays selected; new events come at the top.
        self.place += usize::from(self.place > 0 && self.shows(&event));
        self.all.push_front(event);
        self.all.truncate(KEPT);
    }

    fn shows(&self, event: &EventRow) -> bool {
        !self.hide_routine || event.severity != Severity::Routine
    }

    /// The listed events, the latest first.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &EventRow> {
        self.all.iter().filter(|event| self.shows(event))
    }

    /// Hides or shows routine events.
    pub(super) fn toggle(&mut self) {
        (self.hide_routine, self.place) = (!self.hide_routine, 0);
    }

    /// Moves the selection down by this many rows.
    pub(super) fn move_by(&mut self, by: isize) {
        self.place = self.place.saturating_add_signed(by).min(self.listed().count().saturating_sub(1));
    }

    /// Selects the latest, and follows new ones.
    pub(super) const fn follow(&mut self) {
        self.place = 0;
    }

    /// The place of the one that is selected.
    pub(crate) const fn place(&self) -> usize {
        self.place
    }

    /// The one that is selected.
    pub(super) fn selected(&self) -> Option<&EventRow> {
        self.listed().nth(self.place)
    }
}

const fn severity(event: &JobEvent) -> Severity {
    match event {
        // A failure of the job itself is shown when its job is over.
        JobEvent::Ended { verdict: Verdict::Succeeded | Verdict::Failed { .. }, .. }
        | JobEvent::Finished { outcome: Outcome::Succeeded | Outcome::Cancelled, .. } => Severity::Routine,
        JobEvent::OverLimit { .. } | JobEvent::Finished { .. } => Severity::Failure,
        // Time slices and moves to another GPU are not faults.
        JobEvent::Machine { .. }
        | JobEvent::Ended { .. }
        | JobEvent::Stall { stall: Some(_), .. }
        | JobEvent::Requeued { reason: RequeueReason::After(_) | RequeueReason::Borrowed | RequeueReason::Hung, .. } => Severity::Recovery,
        _ => Severity::Routine,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fixtures::event;
    use super::*;

    #[test]
    fn events_appear_once_with_their_severity() {
        let mut events = EventList::default();
        for (sequence, kind, body) in [
            (1, "submitted", json!({"user": "ada"})),
            (2, "ended", json!({"attempt": 1, "verdict": "out_of_memory", "reason": "GPU memory\x1b[2J ran out"})),
            (3, "requeued", json!({"floor": 29_011, "reason": {"after": "out_of_memory"}, "whole_gpu": false})),
            (3, "requeued", json!({"floor": 29_011})),
            (4, "finished", json!({"outcome": Outcome::Failed { code: 1 }, "text": "failed with exit code 1"})),
            (5, "finished", json!({"outcome": Outcome::Cancelled, "text": "was cancelled"})),
            (6, "finished", serde_json::Value::Null),
            (7, "requeued", json!({"reason": RequeueReason::TimeSliceOver})),
            (8, "requeued", json!({"reason": RequeueReason::Moved})),
            (9, "requeued", json!({"reason": RequeueReason::Requested})),
        ] {
            events.take(event(sequence, kind, body));
        }
        let listed: Vec<_> = events.listed().map(|event| (event.text.as_str(), event.severity)).collect();
        assert_eq!(
            listed,
            [
                ("requeued: requested", Severity::Routine),
                ("requeued: it moves to another GPU", Severity::Routine),
                ("requeued: its time slice is over, and other jobs wait", Severity::Routine),
                ("finished", Severity::Routine),
                ("finished: was cancelled", Severity::Routine),
                ("finished: failed with exit code 1", Severity::Failure),
                ("requeued, to have 28.3 GiB or more", Severity::Recovery),
                ("ended (attempt 1): GPU memory\u{fffd}[2J ran out", Severity::Recovery),
                ("submitted", Severity::Routine),
            ]
        );
        events.toggle();
        assert_eq!(events.listed().count(), 3);
    }

    #[test]
    fn a_selected_earlier_event_stays_selected() {
        let mut events = EventList::default();
        let happen = |events: &mut EventList, sequence| events.take(event(sequence, "machine", json!({"text": sequence.to_string()})));
        (1..4).for_each(|sequence| happen(&mut events, sequence));
        events.move_by(1);
        let text = |events: &EventList| events.selected().unwrap().text.clone();
        assert_eq!(text(&events), "machine: 2");
        happen(&mut events, 4);
        assert_eq!(text(&events), "machine: 2");
        events.move_by(-9);
        happen(&mut events, 5);
        assert_eq!(text(&events), "machine: 5", "the latest is where new ones come");
    }
}
