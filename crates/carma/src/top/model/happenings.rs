//! Recent events, the latest first.

use std::collections::VecDeque;

use carma_core::{JobId, Outcome, RequeueReason, Verdict};
use carma_manager::event::JobEvent;
use carma_manager::store::{StoredEvent, UnixMillis};

use carma_format::printable;

/// How many are kept.
const KEPT: usize = 500;

/// Importance of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// Routine.
    Usual,
    /// A fault with a recovery: of a job, a lost GPU, a host short of memory.
    Recovery,
    /// A job failed for good.
    Failure,
}

/// Something that happened.
#[derive(Debug)]
pub(crate) struct Happening {
    pub(crate) at: UnixMillis,
    pub(crate) job: Option<JobId>,
    pub(crate) words: String,
    pub(crate) weight: Weight,
}

/// The last of them.
#[derive(Debug, Default)]
pub(crate) struct Happenings {
    all: VecDeque<Happening>,
    last: Option<u64>,
    /// Whether routine events are hidden.
    pub(crate) unusual_only: bool,
    /// The place in the list of the one that is selected.
    place: usize,
}

impl Happenings {
    /// Adds the next event.
    pub(super) fn take(&mut self, StoredEvent { sequence, event, text }: StoredEvent) {
        // After a lost connection some events may be repeated.
        if self.last.is_some_and(|last| sequence <= last) {
            return;
        }
        self.last = Some(sequence);
        let happening = Happening { at: event.at, job: event.job, words: printable(&text), weight: weight(&event.event) };
        // A selected earlier event stays selected; new events come at the top.
        self.place += usize::from(self.place > 0 && self.shows(&happening));
        self.all.push_front(happening);
        self.all.truncate(KEPT);
    }

    fn shows(&self, happening: &Happening) -> bool {
        !self.unusual_only || happening.weight != Weight::Usual
    }

    /// The listed events, the latest first.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Happening> {
        self.all.iter().filter(|happening| self.shows(happening))
    }

    /// Hides or shows routine events.
    pub(super) fn toggle(&mut self) {
        (self.unusual_only, self.place) = (!self.unusual_only, 0);
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
    pub(super) fn selected(&self) -> Option<&Happening> {
        self.listed().nth(self.place)
    }
}

const fn weight(event: &JobEvent) -> Weight {
    match event {
        // A failure of the job itself is shown when its job is over.
        JobEvent::Ended { verdict: Verdict::Succeeded | Verdict::Failed { .. }, .. }
        | JobEvent::Finished { outcome: Outcome::Succeeded | Outcome::Cancelled, .. } => Weight::Usual,
        JobEvent::OverLimit { .. } | JobEvent::Finished { .. } => Weight::Failure,
        // Time slices and moves to another GPU are not faults.
        JobEvent::Machine { .. } | JobEvent::Ended { .. } | JobEvent::Requeued { reason: RequeueReason::After(_), .. } => Weight::Recovery,
        _ => Weight::Usual,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::fixtures::event;
    use super::*;

    #[test]
    fn events_come_once_and_weigh_what_they_mean() {
        let mut happenings = Happenings::default();
        for (sequence, kind, body) in [
            (1, "submitted", json!({"user": "ada"})),
            (2, "ended", json!({"attempt": 1, "verdict": "out_of_memory", "because": "GPU memory\x1b[2J ran out"})),
            (3, "requeued", json!({"floor": 29_011, "reason": {"after": "out_of_memory"}, "whole_gpu": false})),
            (3, "requeued", json!({"floor": 29_011})),
            (4, "finished", json!({"outcome": Outcome::Failed { code: 1 }, "text": "failed with exit code 1"})),
            (5, "finished", json!({"outcome": Outcome::Cancelled, "text": "was cancelled"})),
            (6, "finished", serde_json::Value::Null),
            (7, "requeued", json!({"reason": RequeueReason::TimeSliceOver})),
            (8, "requeued", json!({"reason": RequeueReason::Moved})),
            (9, "requeued", json!({"reason": RequeueReason::Requested})),
        ] {
            happenings.take(event(sequence, kind, body));
        }
        let told: Vec<_> = happenings.listed().map(|happening| (happening.words.as_str(), happening.weight)).collect();
        assert_eq!(
            told,
            [
                ("requeued: requested", Weight::Usual),
                ("requeued: it moves to another GPU", Weight::Usual),
                ("requeued: its time slice is over, and other jobs wait", Weight::Usual),
                ("finished", Weight::Usual),
                ("finished: was cancelled", Weight::Usual),
                ("finished: failed with exit code 1", Weight::Failure),
                ("requeued, to have 28.3 GiB or more", Weight::Recovery),
                ("ended (attempt 1): GPU memory\u{fffd}[2J ran out", Weight::Recovery),
                ("submitted", Weight::Usual),
            ]
        );
        happenings.toggle();
        assert_eq!(happenings.listed().count(), 3);
    }

    #[test]
    fn who_looks_back_goes_on_looking_at_the_same() {
        let mut happenings = Happenings::default();
        let happen =
            |happenings: &mut Happenings, sequence| happenings.take(event(sequence, "machine", json!({"text": sequence.to_string()})));
        (1..4).for_each(|sequence| happen(&mut happenings, sequence));
        happenings.move_by(1);
        let words = |happenings: &Happenings| happenings.selected().unwrap().words.clone();
        assert_eq!(words(&happenings), "machine: 2");
        happen(&mut happenings, 4);
        assert_eq!(words(&happenings), "machine: 2");
        happenings.move_by(-9);
        happen(&mut happenings, 5);
        assert_eq!(words(&happenings), "machine: 5", "the latest is where new ones come");
    }
}
