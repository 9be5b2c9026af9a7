//! A few threads that do what they are given, in the order in which it comes.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The threads. Dropped, they end when all that they were given is done.
#[derive(Debug)]
pub(super) struct Pool<T> {
    orders: Sender<T>,
    /// What was given and is not done.
    under_way: Arc<AtomicUsize>,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts so many threads, each with a worker of its own, who says whether there is any use in going on.
    pub(super) fn start<W, E>(name: &str, threads: usize, mut hire: impl FnMut() -> Result<W, E>) -> Result<Self, E>
    where
        W: FnMut(T) -> bool + Send + 'static,
        E: From<io::Error>,
    {
        let (orders, waiting) = channel();
        let (waiting, under_way) = (Arc::new(Mutex::new(waiting)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..threads {
            let (worker, waiting, under_way) = (hire()?, Arc::clone(&waiting), Arc::clone(&under_way));
            thread::Builder::new().name(name.to_owned()).spawn(move || work(worker, &waiting, &under_way))?;
        }
        Ok(Self { orders, under_way })
    }

    /// Has something done when those before it are.
    pub(super) fn give(&self, order: T) {
        // The threads live as long as this does, or nobody wants to know any more.
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _ = self.orders.send(order);
    }

    /// Whether something is still to be done.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way.load(Ordering::Acquire) > 0
    }
}

fn work<T>(mut worker: impl FnMut(T) -> bool, waiting: &Mutex<Receiver<T>>, under_way: &AtomicUsize) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(order) = next else { return };
        // One order that goes wrong takes no thread from the others, and is not waited for.
        let goes_on = catch_unwind(AssertUnwindSafe(|| worker(order))).unwrap_or(true);
        under_way.fetch_sub(1, Ordering::Release);
        if !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn an_order_that_goes_wrong_is_done_with_and_others_follow() {
        let (done, told) = channel();
        let hire = || {
            let done = done.clone();
            Ok::<_, io::Error>(move |number: u32| {
                assert!(number != 1, "on purpose");
                done.send(number).is_ok()
            })
        };
        let pool = Pool::start("test", 1, hire).unwrap();
        (1..=3).for_each(|number| pool.give(number));
        let patience = Duration::from_secs(60);
        assert_eq!([told.recv_timeout(patience), told.recv_timeout(patience)], [Ok(2), Ok(3)]);
        let until = Instant::now() + patience;
        while pool.is_busy() {
            assert!(Instant::now() < until, "waited in vain");
            thread::yield_now();
        }
    }
}
