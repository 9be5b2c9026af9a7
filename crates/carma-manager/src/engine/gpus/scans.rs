//! Scans for GPUs and instances, while some of them are being switched.

use crate::host_gpus::{Devices, ExcludedGpus, Numbers};

/// The result of a scan.
#[derive(Debug)]
pub(crate) struct Scan {
    pub(crate) number: u64,
    pub(crate) devices: Devices,
    pub(crate) excluded: ExcludedGpus,
    pub(crate) numbers: Numbers,
    /// What operators should know.
    pub(crate) problems: Vec<String>,
}

/// Scans by number, and running switches: a scan must not bring back what was before a switch or a later scan.
#[derive(Debug, Default)]
pub(crate) struct Scans {
    begun: u64,
    /// Scans up to this one are outdated.
    outdated: u64,
    switches: u32,
}

impl Scans {
    /// The number of a scan that begins now; unset during a switch, which it might see half done.
    pub(crate) fn begin(&mut self) -> Option<u64> {
        (self.switches == 0).then(|| {
            self.begun += 1;
            self.begun
        })
    }

    /// Whether the result of a scan still counts. If so, earlier scans no longer do.
    pub(crate) fn counts(&mut self, number: u64) -> bool {
        let counts = self.switches == 0 && number > self.outdated;
        if counts {
            self.outdated = number;
        }
        counts
    }

    pub(crate) fn begin_switch(&mut self) {
        (self.switches, self.outdated) = (self.switches + 1, self.begun);
    }

    pub(crate) fn end_switch(&mut self) {
        self.switches = self.switches.saturating_sub(1);
    }

    pub(crate) const fn is_switching(&self) -> bool {
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
        scans.begin_switch();
        assert_eq!((scans.counts(third), scans.begin()), (false, None));
        scans.end_switch();
        assert!(!scans.counts(third), "it may have seen what was before");
        let fourth = scans.begin().unwrap();
        assert!(scans.counts(fourth));
    }
}
