//! Independent work on all cores.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Applies `work` to each item, on as many threads as there are cores. Results are in the order of the items, so they do not depend on the
/// number of threads.
///
/// ```
/// assert_eq!(carma_learn::on_all_cores(&[1, 2, 3], |number| number * number), [1, 4, 9]);
/// ```
pub fn on_all_cores<T: Sync, R: Send>(items: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let results = Mutex::new(Vec::with_capacity(items.len()));
    let worker = || {
        while let Some((place, item)) = Some(next.fetch_add(1, Ordering::Relaxed)).and_then(|place| Some((place, items.get(place)?))) {
            let result = work(item);
            results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((place, result));
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(items.len());
    thread::scope(|scope| {
        (0..threads).for_each(|_| {
            scope.spawn(worker);
        });
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_unstable_by_key(|(place, _)| *place);
    results.into_iter().map(|(_, result)| result).collect()
}
