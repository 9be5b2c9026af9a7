//! A few threads that carry out orders, first come, first served.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// The threads. Dropped, they end when all orders are done.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    orders: Sender<T>,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts this many threads. Each has its own worker, which answers whether to go on.
    pub(crate) fn start<W, E>(name: &str, threads: usize, mut new_worker: impl FnMut() -> Result<W, E>) -> Result<Self, E>
    where
        W: FnMut(T) -> bool + Send + 'static,
        E: From<io::Error>,
    {
        let (orders, waiting) = channel();
        let waiting = Arc::new(Mutex::new(waiting));
        for _ in 0..threads {
            let (worker, waiting) = (new_worker()?, Arc::clone(&waiting));
            thread::Builder::new().name(name.to_owned()).spawn(move || work(worker, &waiting))?;
        }
        Ok(Self { orders })
    }

    /// Adds an order to the queue.
    pub(crate) fn add(&self, order: T) {
        // The threads live as long as this, unless a worker has ended them.
        let _ = self.orders.send(order);
    }
}

fn work<T>(mut worker: impl FnMut(T) -> bool, waiting: &Mutex<Receiver<T>>) {
    loop {
        let next = waiting.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(order) = next else { return };
        // An order that panics ends no thread.
        let goes_on = catch_unwind(AssertUnwindSafe(|| worker(order))).unwrap_or(true);
        if !goes_on {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn an_order_that_panics_does_not_stop_the_next() {
        let (done, results) = channel();
        let new_worker = || {
            let done = done.clone();
            Ok::<_, io::Error>(move |number: u32| {
                assert!(number != 1, "on purpose");
                done.send(number).is_ok()
            })
        };
        let pool = Pool::start("test", 1, new_worker).unwrap();
        (1..=3).for_each(|number| pool.add(number));
        let timeout = Duration::from_secs(60);
        assert_eq!([results.recv_timeout(timeout), results.recv_timeout(timeout)], [Ok(2), Ok(3)]);
    }
}
