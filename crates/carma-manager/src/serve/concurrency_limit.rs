//! Limits costly work that runs at the same time: in total, and per user, so that one user cannot take everything.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::{Problem, ProblemKind};

/// The longest wait for a permit.
const TIMEOUT: Duration = Duration::from_secs(30);

/// The permits for one kind of work. Larger work takes several.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    most_of_one: usize,
    all: Arc<Semaphore>,
    of_users: Mutex<HashMap<u32, Arc<Semaphore>>>,
    timeout: Duration,
}

/// A permit, until it is dropped.
#[derive(Debug)]
pub(super) struct Permit {
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl ConcurrencyLimit {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most_of_one, all: Arc::new(Semaphore::new(most)), of_users: Mutex::default(), timeout: TIMEOUT }
    }

    /// Waits for one permit of a user.
    pub(super) async fn take(&self, uid: u32) -> Result<Permit, Problem> {
        self.acquire_many(uid, 1).await
    }

    /// Waits for several permits of a user at once. There must be that many.
    pub(super) async fn acquire_many(&self, uid: u32, permits: usize) -> Result<Permit, Problem> {
        let permits = u32::try_from(permits).unwrap_or(u32::MAX);
        let of_user = self.of_user(uid);
        let taken = async {
            // The user's permits first: a user who waits for those takes none from others.
            let of_user = of_user.acquire_many_owned(permits).await.ok()?;
            Some(Permit { _of_user: of_user, _of_all: Arc::clone(&self.all).acquire_many_owned(permits).await.ok()? })
        };
        let permit = timeout(self.timeout, taken).await.ok().flatten();
        permit.ok_or_else(|| {
            ProblemKind::Unavailable.because("too many requests of this kind are running: try again later, or request less at once")
        })
    }

    fn of_user(&self, uid: u32) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        of_users.retain(|_, permits| Arc::strong_count(permits) > 1);
        Arc::clone(of_users.entry(uid).or_insert_with(|| Arc::new(Semaphore::new(self.most_of_one))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn no_user_takes_all_turns_and_no_user_starves() {
        let permits = ConcurrencyLimit { timeout: Duration::from_millis(20), ..ConcurrencyLimit::new(3, 2) };
        let (alice, bob, carol) = (1, 2, 3);
        let first = permits.take(alice).await.unwrap();
        let _second = permits.take(alice).await.unwrap();
        assert_eq!(permits.take(alice).await.unwrap_err().kind, ProblemKind::Unavailable);
        let _third = permits.take(bob).await.unwrap();
        assert!(permits.take(carol).await.is_err(), "all three are taken");
        drop(first);
        assert!(permits.acquire_many(carol, 2).await.is_err(), "one is free");
        drop(permits.take(carol).await.unwrap());
        assert!(permits.take(alice).await.is_ok());
        drop(permits.of_user(bob));
        assert_eq!(permits.of_users.lock().unwrap().len(), 2, "those who hold none are forgotten");
    }
}
