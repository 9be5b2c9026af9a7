//! The sender of a request, and their rights.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::api::{Problem, ProblemKind};
use crate::request::Owner;

/// The sender of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Caller {
    /// The user's number.
    pub(super) uid: u32,
    /// The user's first group.
    pub(super) gid: u32,
    /// The user's name.
    pub(super) name: String,
    /// Their rights.
    pub(super) role: Role,
}

/// The rights of a caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Role {
    /// May act on their own jobs.
    Owner,
    /// May act on the jobs of all users.
    Operator,
}

impl Caller {
    /// The owner of jobs that they submit.
    pub(super) fn owner(&self) -> Owner {
        Owner { uid: self.uid, gid: self.gid, name: self.name.clone() }
    }

    pub(super) fn is_operator(&self) -> bool {
        self.role == Role::Operator
    }

    /// Whether they may act on a job of this user.
    pub(super) fn may_touch(&self, uid: u32) -> bool {
        self.uid == uid || self.is_operator()
    }

    /// Refuses callers that are no operators.
    pub(super) fn must_be_operator(&self, what: &str) -> Result<(), Problem> {
        if self.is_operator() { Ok(()) } else { Err(ProblemKind::Forbidden.because(format!("only operators may {what}"))) }
    }

    /// Refuses callers whose jobs would run as another user: only root can run jobs as their owners.
    pub(super) fn must_run_as_itself(&self, shared_account: bool) -> Result<(), Problem> {
        let manager = rustix::process::geteuid();
        if manager.is_root() || self.uid == manager.as_raw() || shared_account {
            return Ok(());
        }
        let text = "this manager is not root and runs only jobs of its own user; `carma up --shared-account` accepts jobs of others and runs them as its own account";
        Err(ProblemKind::Forbidden.because(text))
    }

    /// Refuses callers other than the job's user and operators.
    pub(super) fn must_own(&self, uid: u32, what: &str) -> Result<(), Problem> {
        if self.may_touch(uid) {
            Ok(())
        } else {
            Err(ProblemKind::Forbidden.because(format!("only the job's own user and operators may {what}")))
        }
    }

    /// Refuses callers other than the job's user and root.
    pub(super) fn must_be(&self, uid: u32, what: &str) -> Result<(), Problem> {
        if self.uid == uid || self.uid == 0 {
            Ok(())
        } else {
            Err(ProblemKind::Forbidden.because(format!("only the job's own user and root may {what}")))
        }
    }
}

/// The caller is stored with the request.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        parts.extensions.get().cloned().ok_or_else(|| ProblemKind::Unauthenticated.because("the user is unknown"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_manage_all_jobs_under_their_own_name() {
        let caller = |uid, role| Caller { uid, gid: 1, name: String::new(), role };
        let (user, stranger, operator, root) =
            (caller(7, Role::Owner), caller(8, Role::Owner), caller(9, Role::Operator), caller(0, Role::Operator));
        let may = |allowed: fn(&Caller) -> Result<(), Problem>| [&user, &stranger, &operator, &root].map(|caller| allowed(caller).is_ok());
        assert_eq!(may(|caller| caller.must_own(7, "act")), [true, false, true, true]);
        assert_eq!(may(|caller| caller.must_be(7, "type")), [true, false, false, true]);
    }

    #[test]
    fn others_jobs_are_for_operators() {
        let caller = |uid, role| Caller { uid, gid: uid, name: String::new(), role };
        assert!(caller(1000, Role::Owner).must_own(1000, "cancel it").is_ok());
        assert_eq!(caller(1000, Role::Owner).must_own(1001, "cancel it").unwrap_err().kind, ProblemKind::Forbidden);
        assert!(caller(1000, Role::Operator).must_own(1001, "cancel it").is_ok());
        assert!(caller(1000, Role::Owner).must_be_operator("drain").is_err());
    }
}
