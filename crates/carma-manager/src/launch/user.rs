//! The user that a job's processes run as.

use nix::unistd::User;

use crate::attempt::RunAs;
use crate::request::Owner;

/// Why an attempt was not launched. It did not run.
#[derive(Debug)]
pub(crate) enum NotLaunched {
    /// The request cannot be launched.
    Job(String),
    /// The host cannot launch it now: a full disk, no more processes, a user database that does not answer.
    Host(String),
}

impl NotLaunched {
    /// The reason as text.
    pub(crate) fn reason(self) -> String {
        let (Self::Job(reason) | Self::Host(reason)) = self;
        reason
    }

    #[expect(clippy::needless_pass_by_value, reason = "errors are handed over as they are")]
    pub(crate) fn by_host(error: impl ToString) -> Self {
        Self::Host(error.to_string())
    }
}

/// The user to run a job as: root runs it as its owner, other users as themselves.
pub(crate) fn run_as(owner: &Owner) -> Result<Option<RunAs>, NotLaunched> {
    if !rustix::process::geteuid().is_root() || owner.uid == 0 {
        return Ok(None);
    }
    let user = User::from_uid(owner.uid.into()).map_err(NotLaunched::by_host)?;
    same_user(owner, user).map(Some).map_err(NotLaunched::Job)
}

/// The user who has the owner's uid now, if it is still the owner: uids of deleted users are given to new ones.
fn same_user(owner: &Owner, now: Option<User>) -> Result<RunAs, String> {
    let Owner { uid, name, .. } = owner;
    match now {
        None => Err(format!("user {name} ({uid}) is no longer known here")),
        Some(user) if user.name != *name => {
            Err(format!("{name} submitted it, but uid {uid} belongs to {} now: submit it again to run it as {}", user.name, user.name))
        }
        Some(user) => Ok(RunAs { uid: *uid, gid: user.gid.as_raw(), name: user.name, home: user.dir }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_of_a_deleted_user_does_not_run_as_the_next_owner_of_the_uid() {
        let root = || User::from_uid(0.into()).unwrap();
        let owner = |name: &str| Owner { uid: 0, gid: 0, name: name.to_owned() };
        assert_eq!(same_user(&owner("root"), root()).unwrap().name, "root");
        let reason = "ada submitted it, but uid 0 belongs to root now: submit it again to run it as root";
        assert_eq!(same_user(&owner("ada"), root()).unwrap_err(), reason);
        assert_eq!(same_user(&owner("ada"), None).unwrap_err(), "user ada (0) is no longer known here");
    }
}
