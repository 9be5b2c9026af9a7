//! The account that a job is charged to.

use crate::job::Job;
use crate::{GroupId, UserId};

/// The account that a job is charged to: a user as a member of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Account {
    pub(crate) group: GroupId,
    pub(crate) user: UserId,
}

impl Account {
    /// The one account of all users without fair share.
    pub(crate) const ALL_USERS: Self = Self { group: GroupId(0), user: UserId(0) };

    pub(crate) fn of(job: &Job) -> Self {
        Self { group: job.spec.group, user: job.spec.user }
    }
}
