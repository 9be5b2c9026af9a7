//! `queue.shares`: the shares of users and groups under fair share.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::account;
use crate::keys::{Checker, KeyInfo, Kind, Setting};
use crate::{GroupId, UserId};

/// The share of a user within its group, or of a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ShareSettings {
    /// The user's number. A file may have the name as `user`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "account::optional_number")]
    pub uid: Option<u32>,
    /// The group's number. A file may have the name as `group`.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "account::optional_number")]
    pub gid: Option<u32>,
    /// The share; others have 1.
    pub share: f64,
}

/// The shares that are not 1.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Shares {
    /// Shares of users, each within its group.
    pub users: BTreeMap<UserId, f64>,
    /// Shares of groups.
    pub groups: BTreeMap<GroupId, f64>,
}

impl Shares {
    /// A user's share within its group.
    pub fn of_user(&self, user: UserId) -> f64 {
        self.users.get(&user).copied().unwrap_or(1.0)
    }

    /// A group's share.
    pub fn of_group(&self, group: GroupId) -> f64 {
        self.groups.get(&group).copied().unwrap_or(1.0)
    }
}

impl Setting for Shares {
    type Written = Vec<ShareSettings>;
    type Value = Self;
    const KIND: Kind = Kind::Other("a list of { user = \"ada\", share = 2 } or { group = \"vision\", share = 2 }");

    fn read(written: &Vec<ShareSettings>, _: Option<&Self>, _: &KeyInfo, check: &mut Checker) -> Option<Self> {
        let mut shares = Self::default();
        for (index, ShareSettings { uid, gid, share }) in written.iter().enumerate() {
            if !(0.01..=1000.0).contains(share) {
                check.refuse_item(index, "share", share, "a number from 0.01 to 1000");
            }
            match (uid, gid) {
                (Some(user), None) => drop(shares.users.insert(UserId(*user), *share)),
                (None, Some(group)) => drop(shares.groups.insert(GroupId(*group), *share)),
                (Some(uid), Some(gid)) => check.refuse_item(index, "uid", format!("{uid} with gid {gid}"), "one of them"),
                (None, None) => check.refuse_item(index, "uid", "nothing", "a user or a group"),
            }
        }
        Some(shares)
    }

    fn write(value: &Self) -> Option<Vec<ShareSettings>> {
        let user = |(user, share): (&UserId, &f64)| ShareSettings { uid: Some(user.0), gid: None, share: *share };
        let group = |(group, share): (&GroupId, &f64)| ShareSettings { uid: None, gid: Some(group.0), share: *share };
        Some(value.users.iter().map(user).chain(value.groups.iter().map(group)).collect())
    }
}
