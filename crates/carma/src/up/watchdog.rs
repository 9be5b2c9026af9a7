//! Ends a manager that no longer responds, and tells systemd that a healthy one does.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use carma_manager::configuration::ManagerConfig;
use carma_manager::engine::Handle;
use carma_manager::heartbeat::Stuck;
use carma_manager::watchdog::watch;
use sd_notify::NotifyState;

/// How long the last message and the exit may each take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Watches the manager's threads until it ends.
pub(super) fn start(handle: &Handle, settings: &ManagerConfig) -> Result<()> {
    let limit = settings.watchdog_seconds.map(|limit| Duration::from_secs_f64(limit.get()));
    let asked = sd_notify::watchdog_enabled().is_some();
    let healthy = move || {
        if asked {
            let _ = sd_notify::notify(&[NotifyState::Watchdog]);
        }
    };
    watch(handle.heartbeats(), limit, healthy, end)?;
    Ok(())
}

/// Ends the process with an error: a service restarts it, and finds the jobs.
fn end(stuck: Stuck) {
    end_now(&format!("{stuck}: the manager ends and must be started again; jobs continue, and nothing is lost"));
}

/// Ends the process with an error, whatever its threads do.
pub(super) fn end_now(reason: &str) {
    // Both may wait for what the stuck part waits for: the log for a full pipe, the exit for the driver.
    let reason = reason.to_owned();
    let report = move || tracing::error!("{reason}");
    in_time("watchdog-log", report);
    in_time("watchdog-exit", || std::process::exit(1));
    std::process::abort();
}

/// Runs this in a thread, and returns when it is done or takes too long.
fn in_time(name: &str, act: impl FnOnce() + Send + 'static) {
    let (sender, done) = std::sync::mpsc::channel();
    let run = move || {
        act();
        let _ = sender.send(());
    };
    if thread::Builder::new().name(name.to_owned()).spawn(run).is_ok() {
        let _ = done.recv_timeout(TIMEOUT);
    }
}
