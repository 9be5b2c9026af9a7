//! Whether the driver can limit the memory of jobs on this host.

use std::fmt;

use crate::supervise::{Enforced, GroupVersion};

/// Why the driver cannot limit the memory of jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CannotLimit {
    /// The driver does not have the calls.
    OldDriver,
    /// Only root may set limits.
    NotRoot,
    /// Jobs have no control groups.
    NoGroups,
    /// The driver knows groups of version 2 only.
    OldGroups,
}

impl CannotLimit {
    /// What this host lacks, if anything. Emulated drivers take groups of version 1 too.
    pub fn on_host(root: bool, enforced: Enforced, emulated: bool) -> Option<Self> {
        match enforced.groups {
            _ if !root => Some(Self::NotRoot),
            None => Some(Self::NoGroups),
            Some(GroupVersion::One) if !emulated => Some(Self::OldGroups),
            Some(_) => None,
        }
    }
}

impl fmt::Display for CannotLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OldDriver => "needs driver 615 or later",
            Self::NotRoot => "needs a manager of root",
            Self::NoGroups => "needs control groups for jobs",
            Self::OldGroups => "needs control groups of version 2",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_emulated_driver_takes_groups_of_either_version() {
        let with = |groups| Enforced { groups, ..Enforced::default() };
        let [none, one, two] = [None, Some(GroupVersion::One), Some(GroupVersion::Two)].map(with);
        assert_eq!(CannotLimit::on_host(false, two, false), Some(CannotLimit::NotRoot));
        assert_eq!(
            [none, one, two].map(|groups| CannotLimit::on_host(true, groups, false)),
            [Some(CannotLimit::NoGroups), Some(CannotLimit::OldGroups), None]
        );
        assert_eq!(CannotLimit::on_host(true, one, true), None);
    }
}
