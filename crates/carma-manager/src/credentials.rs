//! The rights of a user, for a process that gives up its own.

use std::ffi::CString;
use std::io;

use nix::unistd::{Gid, Uid, getgrouplist, setgid, setgroups, setuid};

use crate::attempt::RunAs;

/// A user with all groups.
#[derive(Debug)]
pub(crate) struct Credentials {
    user: Uid,
    group: Gid,
    groups: Vec<Gid>,
}

impl Credentials {
    pub(crate) fn of(user: &RunAs) -> io::Result<Self> {
        let group = Gid::from_raw(user.gid);
        let groups = getgrouplist(&CString::new(user.name.as_str())?, group)?;
        Ok(Self { user: Uid::from_raw(user.uid), group, groups })
    }

    /// A user who may be deleted, without other groups.
    pub(crate) fn of_ids(uid: u32, gid: u32) -> Self {
        let group = Gid::from_raw(gid);
        Self { user: Uid::from_raw(uid), group, groups: vec![group] }
    }

    /// Makes this process permanently one of the user. It loses all capabilities, unless the user is root.
    pub(crate) fn assume(&self) -> io::Result<()> {
        setgroups(&self.groups)?;
        setgid(self.group)?;
        Ok(setuid(self.user)?)
    }
}
