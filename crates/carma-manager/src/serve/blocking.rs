//! Blocking work of requests (reads of the store and of logs, large texts), in turns by user: who asks for much waits behind who asks for little.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::available_parallelism;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;
use tokio::task::spawn_blocking;

use crate::api::{Problem, ProblemKind};
use crate::turns::{Limits, Turns};

/// The most threads: each user who has none at work gets one of these.
const MOST: usize = 8;

/// The turns of users.
#[derive(Debug, Clone)]
pub(super) struct BlockingWork(Arc<Mutex<Turns<oneshot::Sender<Turn>>>>);

/// A turn, until it is dropped. It costs its user the time that it takes.
#[derive(Debug)]
struct Turn {
    user: u32,
    /// When its work began.
    begin: Option<Instant>,
    work: BlockingWork,
}

impl BlockingWork {
    /// One user alone takes half of the cores, so that the engine and the store have the others.
    pub(super) fn new() -> Self {
        let half = available_parallelism().map_or(1, |cores| cores.get() / 2);
        Self::limited(Limits { shared: half.clamp(2, MOST / 2), most: MOST })
    }

    fn limited(limits: Limits) -> Self {
        Self(Arc::new(Mutex::new(Turns::new(limits))))
    }

    /// Does work of a user on another thread, when it is their turn. Started work is completed, even if the client is gone.
    pub(super) async fn run<T: Send + 'static>(&self, user: u32, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Problem> {
        let (grant, granted) = oneshot::channel();
        self.turns().add(user, grant);
        self.start_next();
        let mut turn = granted.await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
        let done = spawn_blocking(move || {
            turn.begin = Some(Instant::now());
            let done = work();
            drop(turn);
            done
        });
        Ok(done.await?)
    }

    fn start_next(&self) {
        loop {
            let Some((user, grant)) = self.turns().next() else { return };
            // A client that is gone takes no turn.
            if grant.is_closed() {
                self.turns().done(user, Duration::ZERO);
            } else {
                drop(grant.send(Turn { user, begin: None, work: self.clone() }));
            }
        }
    }

    fn turns(&self) -> MutexGuard<'_, Turns<oneshot::Sender<Turn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.work.turns().done(self.user, self.begin.map_or(Duration::ZERO, |begin| begin.elapsed()));
        self.work.start_next();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, channel};

    use tokio::task::yield_now;

    use super::*;

    /// Work of a user that lasts until it is stopped, and its answer.
    fn slow(work: &BlockingWork, user: u32) -> (tokio::task::JoinHandle<Result<u32, Problem>>, std::sync::mpsc::Sender<()>) {
        let ((end, ends), work) = (channel(), work.clone());
        let wait = move |ends: Receiver<()>| {
            let _ = ends.recv();
            user
        };
        (tokio::spawn(async move { work.run(user, move || wait(ends)).await }), end)
    }

    #[tokio::test]
    async fn the_reads_of_one_user_leave_room_for_another() {
        let work = BlockingWork::limited(Limits { shared: 2, most: 3 });
        let busy: Vec<_> = (0..100).map(|_| slow(&work, 1)).collect();
        yield_now().await;
        // On the current thread, all of them have asked before.
        assert_eq!(work.run(2, || 2).await.unwrap(), 2);
        let (answers, ends): (Vec<_>, Vec<_>) = busy.into_iter().unzip();
        drop(ends);
        for answer in answers {
            assert_eq!(answer.await.unwrap().unwrap(), 1);
        }
    }

    #[tokio::test]
    async fn disconnected_clients_release_their_turns() {
        let work = BlockingWork::limited(Limits::at_most(1));
        let (answer, end) = slow(&work, 1);
        yield_now().await;
        let gone: Vec<_> = (0..1000).map(|_| slow(&work, 1).0).collect();
        yield_now().await;
        gone.iter().for_each(tokio::task::JoinHandle::abort);
        yield_now().await;
        drop(end);
        assert_eq!(answer.await.unwrap().unwrap(), 1);
        assert_eq!(work.run(1, || 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn panicking_work_releases_its_turn() {
        let work = BlockingWork::limited(Limits::at_most(1));
        assert!(work.run(1, || panic!("on purpose")).await.is_err());
        assert_eq!(work.run(1, || 1).await.unwrap(), 1);
    }
}
