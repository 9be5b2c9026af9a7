//! What happened of late, the latest first.

use std::collections::VecDeque;

use carma_core::{JobId, Outcome, RequeueReason, Verdict};
use carma_manager::event::JobEvent;
use carma_manager::store::{StoredEvent, UnixMillis};

use crate::text::printable;

/// How many are kept.
const KEPT: usize = 500;

/// How much something matters to who watches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Weight {
    /// It goes its way.
    Usual,
    /// Something went wrong and is seen to: a recovery, a GPU that is lost, a host that is short.
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
    /// Whether what is usual is left out.
    pub(crate) unusual_only: bool,
    /// The place in the list of the one that is selected.
    place: usize,
}

impl Happenings {
    /// Takes the next.
    pub(super) fn take(&mut self, StoredEvent { sequence, event, text }: StoredEvent) {
        // After a lost connection some may come again.
        if self.last.is_some_and(|last| sequence <= last) {
            return;
        }
        self.last = Some(sequence);
        let happening = Happening { at: event.at, job: event.job, words: printable(&text), weight: weight(&event.event) };
        // Who looks at an earlier one goes on looking at it; the latest is where new ones come.
        self.place += usize::from(self.place > 0 && self.shows(&happening));
        self.all.push_front(happening);
        self.all.truncate(KEPT);
    }

    fn shows(&self, happening: &Happening) -> bool {
        !self.unusual_only || happening.weight != Weight::Usual
    }

    /// Those that are listed, the latest first.
    pub(crate) fn listed(&self) -> impl Iterator<Item = &Happening> {
        self.all.iter().filter(|happening| self.shows(happening))
    }

    /// Leaves out what is usual, or shows it again.
    pub(super) fn toggle(&mut self) {
        (self.unusual_only, self.place) = (!self.unusual_only, 0);
    }

    /// Selects another, so many further down.
    pub(super) fn move_by(&mut self, by: isize) {
        self.place = self.place.saturating_add_signed(by).min(self.listed().count().saturating_sub(1));
    }

    /// Selects the latest, and whichever comes after it.
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
        // How an attempt failed by itself is shown again when its job is over.
        JobEvent::Ended { verdict: Verdict::Succeeded | Verdict::Failed { .. }, .. }
        | JobEvent::Finished { outcome: Outcome::Succeeded | Outcome::Cancelled, .. } => Weight::Usual,
        JobEvent::OverLimit { .. } | JobEvent::Finished { .. } => Weight::Failure,
        // A job that takes turns or moves to another GPU met no trouble.
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
            (7, "requeued", json!({"reason": RequeueReason::SlotOver})),
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
