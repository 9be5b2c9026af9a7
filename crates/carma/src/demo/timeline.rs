//! The lines of both runs, merged by time: a line is released once neither run can report an earlier one.

use std::collections::BTreeMap;

/// Milliseconds since a run began, on its own emulated clock.
pub(super) type Elapsed = u64;

/// Lines that wait for the other run.
#[derive(Debug, Default)]
pub(super) struct Timeline {
    /// By time, then in the order of arrival.
    held: BTreeMap<(Elapsed, u64), String>,
    arrived: u64,
    /// Time up to which each run has reported everything; unset: it has not started.
    complete: [Option<Elapsed>; 2],
}

impl Timeline {
    /// A run reports a line.
    pub(super) fn add(&mut self, at: Elapsed, line: String) {
        self.held.insert((at, self.arrived), line);
        self.arrived += 1;
    }

    /// A run has reported everything before this time.
    pub(super) fn complete_until(&mut self, run: usize, at: Elapsed) {
        self.complete[run] = self.complete[run].max(Some(at));
    }

    /// A run has ended.
    pub(super) fn ended(&mut self, run: usize) {
        self.complete[run] = Some(Elapsed::MAX);
    }

    /// The released lines, in order.
    pub(super) fn ready(&mut self) -> Vec<String> {
        let [Some(one), Some(other)] = self.complete else { return Vec::new() };
        let later = self.held.split_off(&(one.min(other), 0));
        std::mem::replace(&mut self.held, later).into_values().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_sorted_by_time() {
        let mut timeline = Timeline::default();
        timeline.add(5_000, "exclusive, 5 s".to_owned());
        timeline.add(9_000, "exclusive, 9 s".to_owned());
        timeline.complete_until(0, 9_500);
        assert_eq!(timeline.ready(), [""; 0], "the other run may still report something earlier");
        timeline.add(4_000, "sharing, 4 s".to_owned());
        timeline.complete_until(1, 6_000);
        assert_eq!(timeline.ready(), ["sharing, 4 s", "exclusive, 5 s"]);
        timeline.add(6_000, "sharing, 6 s".to_owned());
        timeline.ended(1);
        assert_eq!(timeline.ready(), ["sharing, 6 s", "exclusive, 9 s"]);
    }

    #[test]
    fn lines_of_the_same_time_keep_their_order_and_none_is_lost() {
        let mut timeline = Timeline::default();
        for line in ["first", "second", "third"] {
            timeline.add(1_000, line.to_owned());
        }
        timeline.ended(0);
        timeline.complete_until(1, 1_000);
        assert_eq!(timeline.ready(), [""; 0], "a line of just this time may still come");
        timeline.ended(1);
        assert_eq!(timeline.ready(), ["first", "second", "third"]);
    }
}
