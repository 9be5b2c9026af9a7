//! Users and groups of the host, cached for a minute: a lookup may go over the network.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use nix::unistd::{Gid, Group, Uid, User, getgrouplist};
use tokio::task::spawn_blocking;

use super::caller::{Caller, Role};
use crate::api::{Problem, ProblemKind};

/// How long a lookup is cached.
const FRESH: Duration = Duration::from_secs(60);
/// Maximum number of cached users.
const MAX_REMEMBERED: usize = 1024;

/// The name of a user of this host.
pub(super) fn user_name(uid: u32) -> Option<String> {
    User::from_uid(Uid::from_raw(uid)).ok().flatten().map(|user| user.name)
}

/// The number of a user of this host.
pub(super) fn uid_of(name: &str) -> Option<u32> {
    User::from_name(name).ok().flatten().map(|user| user.uid.as_raw())
}

/// The name of a group of this host.
pub(super) fn group_name(gid: u32) -> Option<String> {
    Group::from_gid(Gid::from_raw(gid)).ok().flatten().map(|group| group.name)
}

/// The key of a lookup.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum UserKey {
    /// The user and group of a process. The group is used if the user is unknown.
    Numbered {
        /// The user.
        uid: u32,
        /// The group.
        gid: u32,
    },
    /// By name.
    Named(String),
}

/// Users and their rights.
#[derive(Debug)]
pub(super) struct Users {
    /// The group of operators.
    operators: String,
    /// The user of the manager.
    own: u32,
    remembered: Mutex<HashMap<UserKey, (Instant, Caller)>>,
}

impl Users {
    pub(super) fn new(operators: String, own: u32) -> Self {
        Self { operators, own, remembered: Mutex::default() }
    }

    /// The caller, or why they are refused.
    pub(super) async fn caller(self: &Arc<Self>, key: UserKey) -> Result<Caller, Problem> {
        if let Some(caller) = self.remembered(&key) {
            return Ok(caller);
        }
        let users = Arc::clone(self);
        let looked_up = spawn_blocking(move || users.look_up(key));
        looked_up.await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?
    }

    fn remembered(&self, key: &UserKey) -> Option<Caller> {
        let remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        remembered.get(key).filter(|(since, _)| since.elapsed() < FRESH).map(|(_, caller)| caller.clone())
    }

    fn look_up(&self, key: UserKey) -> Result<Caller, Problem> {
        let unavailable = |error: nix::Error| ProblemKind::Unavailable.because(format!("users cannot be looked up: {error}"));
        let caller = match &key {
            UserKey::Numbered { uid, gid } => {
                let user = User::from_uid(Uid::from_raw(*uid)).map_err(unavailable)?;
                user.map_or_else(|| self.caller_of(*uid, *gid, uid.to_string()), |user| self.known(user))
            }
            UserKey::Named(name) => {
                let user = User::from_name(name).map_err(unavailable)?;
                self.known(user.ok_or_else(|| ProblemKind::Unauthenticated.because("the user of the token is unknown on this host"))?)
            }
        };
        if self.own != 0 && caller.uid != self.own && caller.uid != 0 {
            return Err(ProblemKind::Forbidden.because("this is another user's own manager: start yours with `carma up`"));
        }
        let mut remembered = self.remembered.lock().unwrap_or_else(PoisonError::into_inner);
        if remembered.len() >= MAX_REMEMBERED {
            remembered.clear();
        }
        remembered.insert(key, (Instant::now(), caller.clone()));
        Ok(caller)
    }

    fn known(&self, user: User) -> Caller {
        self.caller_of(user.uid.as_raw(), user.gid.as_raw(), user.name)
    }

    fn caller_of(&self, uid: u32, gid: u32, name: String) -> Caller {
        let operates = uid == 0 || uid == self.own || self.is_in_operators(&name, gid);
        Caller { uid, gid, name, role: if operates { Role::Operator } else { Role::Owner } }
    }

    fn is_in_operators(&self, name: &str, gid: u32) -> bool {
        let Ok(Some(group)) = Group::from_name(&self.operators) else { return false };
        let groups = CString::new(name).ok().and_then(|name| getgrouplist(&name, Gid::from_raw(gid)).ok());
        groups.is_some_and(|groups| groups.contains(&group.gid))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(uid: u32) -> UserKey {
        UserKey::Numbered { uid, gid: 65_000 }
    }

    #[test]
    fn a_users_manager_serves_only_that_user_and_root() {
        let users = Users::new("no-such-group".to_owned(), 4_000_001);
        assert_eq!(users.look_up(numbered(4_000_001)).unwrap().role, Role::Operator);
        assert_eq!(users.look_up(numbered(0)).unwrap().role, Role::Operator);
        assert_eq!(users.look_up(numbered(4_000_002)).unwrap_err().kind, ProblemKind::Forbidden);
    }

    #[test]
    fn roots_manager_serves_everybody_and_operators_are_a_group() {
        let users = Users::new("no-such-group".to_owned(), 0);
        let stranger = users.look_up(numbered(4_000_002)).unwrap();
        assert_eq!(stranger, Caller { uid: 4_000_002, gid: 65_000, name: "4000002".to_owned(), role: Role::Owner });
        assert_eq!(users.remembered(&numbered(4_000_002)), Some(stranger));
        // A user is a member of their primary group.
        let Ok(Some(group)) = Group::from_gid(Gid::from_raw(1)) else { return };
        let users = Users::new(group.name, 0);
        assert!(users.is_in_operators("daemon", 1) && !users.is_in_operators("daemon", 4_000_000));
    }
}
