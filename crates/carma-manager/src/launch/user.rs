//! The user that a job's processes run as.

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
    let user = nix::unistd::User::from_uid(owner.uid.into()).map_err(NotLaunched::by_host)?;
    let user = user.ok_or_else(|| NotLaunched::Job(format!("user {} ({}) is no longer known here", owner.name, owner.uid)))?;
    Ok(Some(RunAs { uid: owner.uid, gid: user.gid.as_raw(), name: user.name, home: user.dir }))
}
