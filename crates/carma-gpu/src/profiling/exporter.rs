//! dcgm-exporter's page, fetched once a second while it is needed.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use std::{io, thread};

use super::counters::{Counters, Unit};
use super::exposition::read_counters;
use super::latest::{Backoff, Latest, Status};
use super::problem::Problem;

/// Ample for a page on this machine.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The stream of counters from an exporter's page.
#[derive(Debug)]
pub struct Exporter {
    latest: Arc<Latest>,
    /// Closed when this is dropped, which ends the thread.
    _alive: Sender<()>,
}

impl Exporter {
    /// Starts to fetch the page every `interval` while it is needed.
    pub fn start(url: String, interval: Duration, needed: impl Fn() -> bool + Send + 'static) -> io::Result<Self> {
        let latest = Arc::new(Latest::new());
        let (sender, alive) = channel::<()>();
        let kept = Arc::clone(&latest);
        thread::Builder::new().name("exporter".to_owned()).spawn(move || {
            let (agent, mut pauses) = (agent(), Backoff::new());
            loop {
                let pause = if !needed() {
                    kept.fail(Problem::NotAsked);
                    interval
                } else if let Err(problem) = fetch(&agent, &url, &kept) {
                    kept.fail(problem);
                    pauses.next()
                } else {
                    pauses = Backoff::new();
                    interval
                };
                if alive.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                    return;
                }
            }
        })?;
        Ok(Self { latest, _alive: sender })
    }

    /// The latest counters of a device, unless they are too old.
    pub fn counters(&self, unit: &Unit) -> Option<Counters> {
        self.latest.counters(unit)
    }

    /// Its state.
    pub fn status(&self) -> Status {
        self.latest.status()
    }
}

fn agent() -> ureq::Agent {
    // A proxy in the environment is not for this machine.
    ureq::Agent::config_builder().timeout_global(Some(TIMEOUT)).proxy(None).build().into()
}

fn fetch(agent: &ureq::Agent, url: &str, latest: &Latest) -> Result<(), Problem> {
    let unreachable = |error: ureq::Error| Problem::Unreachable { url: url.to_owned(), reason: error.to_string() };
    let page = agent.get(url).call().map_err(unreachable)?.body_mut().read_to_string().map_err(unreachable)?;
    let counters = read_counters(&page, Instant::now());
    if counters.values().all(Counters::is_empty) {
        return Err(Problem::NotExported(url.to_owned()));
    }
    latest.begin();
    for (unit, counters) in counters {
        latest.put(unit, counters);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    #[test]
    fn proxies_in_the_environment_are_ignored() {
        let variable = "http_proxy";
        if std::env::var_os(variable).is_some() {
            return assert!(super::agent().config().proxy().is_none());
        }
        // The same again with a proxy, in its own process.
        let mut again = Command::new(std::env::current_exe().unwrap());
        again.args(["--exact", "profiling::exporter::tests::proxies_in_the_environment_are_ignored"]);
        let output = again.env(variable, "http://127.0.0.1:1").output().unwrap();
        assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    }
}
