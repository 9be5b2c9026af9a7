//! Looking for the GPUs and instances there are, while some of them are switched.

use super::devices::{Devices, Numbers};
use super::outside::Outside;

/// What was found, and by which scan.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) number: u64,
    pub(super) devices: Devices,
    pub(super) outside: Outside,
    pub(super) numbers: Numbers,
    /// What people should know of it.
    pub(super) troubles: Vec<String>,
}

/// Scans in the order in which they began, and switches under way: a scan must not bring back what was before a switch or a later scan.
#[derive(Debug, Default)]
pub(super) struct Scans {
    begun: u64,
    /// Up to this one they come too late.
    outdated: u64,
    switches: u32,
}

impl Scans {
    /// The number of a scan that begins now; unset while it might see a switch half done.
    pub(super) fn begin(&mut self) -> Option<u64> {
        (self.switches == 0).then(|| {
            self.begun += 1;
            self.begun
        })
    }

    /// Whether what a scan has found still counts. If so, those before it do no more.
    pub(super) fn counts(&mut self, number: u64) -> bool {
        let counts = self.switches == 0 && number > self.outdated;
        if counts {
            self.outdated = number;
        }
        counts
    }

    pub(super) fn switch_begins(&mut self) {
        (self.switches, self.outdated) = (self.switches + 1, self.begun);
    }

    pub(super) fn switch_ends(&mut self) {
        self.switches = self.switches.saturating_sub(1);
    }

    pub(super) const fn is_switching(&self) -> bool {
        self.switches > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scan_counts_unless_a_switch_or_a_later_scan_came_between() {
        let mut scans = Scans::default();
        let [first, second, third] = [(); 3].map(|()| scans.begin().unwrap());
        assert_eq!([scans.counts(second), scans.counts(first)], [true, false], "the first comes late");
        scans.switch_begins();
        assert_eq!((scans.counts(third), scans.begin()), (false, None));
        scans.switch_ends();
        assert!(!scans.counts(third), "it may have seen what was before");
        let fourth = scans.begin().unwrap();
        assert!(scans.counts(fourth));
    }
}
