//! The watchdog: it sees when a part of the manager no longer responds. The process must end then, so that the service restarts it. Jobs continue
//! meanwhile, and the next manager finds them by their folders.

use std::io;
use std::thread;
use std::time::{Duration, Instant};

use crate::heartbeat::{Heartbeats, LONGEST_SLEEP, Stuck};

/// The shortest limit: idle parts sleep for up to [`LONGEST_SLEEP`], and a loaded machine delays them.
pub(crate) const SHORTEST_LIMIT: Duration = LONGEST_SLEEP.saturating_mul(5);
/// The silence that counts as stuck.
const TOLERATED: Duration = Duration::from_secs(10);

/// Watches the parts of a manager from its own thread, until the manager is gone. `healthy` is called every second while no part is stuck; `end` once,
/// when one is stuck for longer than the limit. Without a limit, stuck parts are only reported.
pub fn watch(
    heartbeats: &Heartbeats,
    limit: Option<Duration>,
    mut healthy: impl FnMut() + Send + 'static,
    end: impl FnOnce(Stuck) + Send + 'static,
) -> io::Result<()> {
    let mut observer = heartbeats.observe();
    let tolerated = limit.map_or(TOLERATED, |limit| TOLERATED.min(limit / 2));
    let run = move || {
        let mut reported = false;
        let mut last = Instant::now();
        loop {
            thread::sleep(LONGEST_SLEEP);
            let now = Instant::now();
            // A stopped process or a sleeping machine stops this thread too: a long step says nothing about the others.
            let step = now.duration_since(last).min(LONGEST_SLEEP * 2);
            last = now;
            let Some(stuck) = observer.step(step, tolerated) else { return };
            let Some(longest) = stuck.into_iter().max_by_key(|stuck| stuck.silent) else {
                reported = false;
                healthy();
                continue;
            };
            if limit.is_some_and(|limit| longest.silent >= limit) {
                return end(longest);
            }
            if !reported {
                reported = true;
                report(longest);
            }
        }
    };
    thread::Builder::new().name("watchdog".to_owned()).spawn(run)?;
    Ok(())
}

/// Logs from another thread: what the part waits for may be the log itself.
fn report(stuck: Stuck) {
    let _ = thread::Builder::new().name("watchdog-log".to_owned()).spawn(move || tracing::warn!("{stuck}"));
}
