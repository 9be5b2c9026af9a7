//! Turns at what is costly: so many at once of all, and of one user, so that nobody takes all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::api::{Problem, ProblemKind};

/// Nobody waits longer for a turn.
const PATIENCE: Duration = Duration::from_secs(30);

/// Turns of one kind. What costs more takes several.
#[derive(Debug)]
pub(super) struct Turns {
    most_of_one: usize,
    all: Arc<Semaphore>,
    of_users: Mutex<HashMap<u32, Arc<Semaphore>>>,
    patience: Duration,
}

/// A turn, until it is dropped.
#[derive(Debug)]
pub(super) struct Turn {
    _of_user: OwnedSemaphorePermit,
    _of_all: OwnedSemaphorePermit,
}

impl Turns {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self { most_of_one, all: Arc::new(Semaphore::new(most)), of_users: Mutex::default(), patience: PATIENCE }
    }

    /// Waits for one turn of a user.
    pub(super) async fn take(&self, uid: u32) -> Result<Turn, Problem> {
        self.take_several(uid, 1).await
    }

    /// Waits for so many turns of a user at once; there must be so many.
    pub(super) async fn take_several(&self, uid: u32, turns: usize) -> Result<Turn, Problem> {
        let turns = u32::try_from(turns).unwrap_or(u32::MAX);
        let of_user = self.of_user(uid);
        let taken = async {
            // A user's own first: whoever waits for those takes none from others.
            let of_user = of_user.acquire_many_owned(turns).await.ok()?;
            Some(Turn { _of_user: of_user, _of_all: Arc::clone(&self.all).acquire_many_owned(turns).await.ok()? })
        };
        let turn = timeout(self.patience, taken).await.ok().flatten();
        turn.ok_or_else(|| ProblemKind::Unavailable.because("too much of this is under way: ask again later, or less at once"))
    }

    fn of_user(&self, uid: u32) -> Arc<Semaphore> {
        let mut of_users = self.of_users.lock().unwrap_or_else(PoisonError::into_inner);
        of_users.retain(|_, turns| Arc::strong_count(turns) > 1);
        Arc::clone(of_users.entry(uid).or_insert_with(|| Arc::new(Semaphore::new(self.most_of_one))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn nobody_takes_all_turns_and_nobody_waits_for_ever() {
        let turns = Turns { patience: Duration::from_millis(20), ..Turns::new(3, 2) };
        let (alice, bob, carol) = (1, 2, 3);
        let first = turns.take(alice).await.unwrap();
        let _second = turns.take(alice).await.unwrap();
        assert_eq!(turns.take(alice).await.unwrap_err().kind, ProblemKind::Unavailable);
        let _third = turns.take(bob).await.unwrap();
        assert!(turns.take(carol).await.is_err(), "all three are taken");
        drop(first);
        assert!(turns.take_several(carol, 2).await.is_err(), "one is free");
        drop(turns.take(carol).await.unwrap());
        assert!(turns.take(alice).await.is_ok());
        drop(turns.of_user(bob));
        assert_eq!(turns.of_users.lock().unwrap().len(), 2, "those who hold none are forgotten");
    }
}
