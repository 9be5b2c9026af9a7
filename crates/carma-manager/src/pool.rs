//! A few threads that carry out orders of users, in turns.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Instant;

use crate::turns::{Limits, Turns};

/// The threads. Dropped, they end when all orders are done.
#[derive(Debug)]
pub(crate) struct Pool<T> {
    orders: Arc<Orders<T>>,
}

/// The orders that wait for a thread.
#[derive(Debug)]
struct Orders<T> {
    waiting: Mutex<Waiting<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct Waiting<T> {
    turns: Turns<T>,
    threads: usize,
    /// No order will follow.
    closed: bool,
}

impl<T: Send + 'static> Pool<T> {
    /// Starts the threads. Each has its own worker, which returns whether to continue.
    pub(crate) fn start<W, E>(name: &str, limits: Limits, mut new_worker: impl FnMut() -> Result<W, E>) -> Result<Self, E>
    where
        W: FnMut(T) -> bool + Send + 'static,
        E: From<io::Error>,
    {
        let orders = Arc::new(Orders {
            waiting: Mutex::new(Waiting { turns: Turns::new(limits), threads: 0, closed: false }),
            changed: Condvar::new(),
        });
        let pool = Self { orders };
        for _ in 0..limits.most {
            let (worker, orders) = (new_worker()?, Arc::clone(&pool.orders));
            pool.orders.waiting().threads += 1;
            thread::Builder::new().name(name.to_owned()).spawn(move || work(worker, &orders))?;
        }
        Ok(pool)
    }

    /// Adds an order of a user.
    pub(crate) fn add(&self, user: u32, order: T) {
        let mut waiting = self.orders.waiting();
        // All workers have ended: no thread would run it.
        if waiting.threads > 0 {
            waiting.turns.add(user, order);
        }
        self.orders.changed.notify_one();
    }

    /// Removes orders of a user that no thread has started.
    pub(crate) fn remove(&self, user: u32, is_meant: impl Fn(&T) -> bool) {
        self.orders.waiting().turns.remove(user, is_meant);
    }
}

impl<T> Drop for Pool<T> {
    fn drop(&mut self) {
        self.orders.waiting().closed = true;
        self.orders.changed.notify_all();
    }
}

impl<T> Orders<T> {
    fn waiting(&self) -> MutexGuard<'_, Waiting<T>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread ends by the word of its worker. The last one drops what waits.
    fn end_thread(&self) {
        let mut waiting = self.waiting();
        waiting.threads -= 1;
        let dropped = if waiting.threads == 0 { waiting.turns.drain() } else { Vec::new() };
        drop((waiting, dropped));
        self.changed.notify_all();
    }

    /// Waits for an order; none if no more will come.
    fn next(&self) -> Option<(u32, T)> {
        let mut waiting = self.waiting();
        loop {
            if let Some(next) = waiting.turns.next() {
                // Each thread wakes up the next one, and only for an order.
                if waiting.turns.can_start(|_| true) {
                    self.changed.notify_one();
                }
                return Some(next);
            }
            if waiting.closed && waiting.turns.is_empty() {
                self.changed.notify_all();
                return None;
            }
            waiting = self.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

fn work<T>(mut worker: impl FnMut(T) -> bool, orders: &Orders<T>) {
    while let Some((user, order)) = orders.next() {
        let begin = Instant::now();
        // An order that panics ends no thread.
        let goes_on = catch_unwind(AssertUnwindSafe(|| worker(order))).unwrap_or(true);
        orders.waiting().turns.done(user, begin.elapsed());
        if !goes_on {
            return orders.end_thread();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;
    use std::time::Duration;

    use super::*;

    const TIMEOUT: Duration = Duration::from_secs(60);

    #[test]
    fn a_panicking_order_does_not_stop_the_next() {
        let (done, results) = channel();
        let new_worker = || {
            let done = done.clone();
            Ok::<_, io::Error>(move |number: u32| {
                assert!(number != 1, "on purpose");
                done.send(number).is_ok()
            })
        };
        let pool = Pool::start("test", Limits::at_most(1), new_worker).unwrap();
        (1..=3).for_each(|number| pool.add(0, number));
        assert_eq!([results.recv_timeout(TIMEOUT), results.recv_timeout(TIMEOUT)], [Ok(2), Ok(3)]);
    }

    #[test]
    fn slow_orders_of_one_user_do_not_block_another() {
        let (done, results) = channel();
        let new_worker = || {
            let done = done.clone();
            Ok::<_, io::Error>(move |(user, slow): (u32, Option<std::sync::mpsc::Receiver<()>>)| {
                slow.inspect(|slow| _ = slow.recv());
                done.send(user).is_ok()
            })
        };
        let pool = Pool::start("test", Limits { shared: 2, most: 3 }, new_worker).unwrap();
        let ends: Vec<_> = (0..20)
            .map(|_| {
                let (end, slow) = channel();
                pool.add(1, (1, Some(slow)));
                end
            })
            .collect();
        (0..3).for_each(|_| pool.add(2, (2, None)));
        assert_eq!([results.recv_timeout(TIMEOUT), results.recv_timeout(TIMEOUT), results.recv_timeout(TIMEOUT)], [Ok(2); 3]);
        pool.remove(1, |_| true);
        drop((ends, pool));
        assert_eq!(results.iter().take(2).collect::<Vec<_>>(), [1, 1], "those that were begun");
    }
}
