//! Opens the manager's state, and keeps managers of several hosts apart.

use std::env;
use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use carma_manager::places::Places;
use carma_manager::store::{HostIdentity, LeaseTiming, OpenMode, Store, StoreError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::watchdog::end_now;

/// What the log says while a manager waits. A detaching parent looks for it.
pub(super) const WAITING: &str = "waiting until its lease has run out";
/// The longest such wait.
pub(super) const LONGEST_WAIT: Duration = LeaseTiming::DEFAULT.expiry;
/// For tests on one machine: the host, as `name/boot`.
const HOST_VARIABLE: &str = "CARMA_TEST_HOST";
/// For tests: after how many seconds a lease has run out.
const LEASE_VARIABLE: &str = "CARMA_TEST_LEASE";

/// Opens the store. Waits while another host's lease may be valid; TERM and INT end the wait.
pub(super) fn open(places: &Places, signals: &mut Signals) -> Result<Store> {
    let mut opening = OpenMode::new(places.database())?;
    if let Ok(text) = env::var(HOST_VARIABLE) {
        let (host, boot) = text.split_once('/').context("the host of a test is name/boot")?;
        opening.host = HostIdentity { host: host.to_owned(), boot: boot.to_owned() };
    }
    if let Ok(text) = env::var(LEASE_VARIABLE) {
        opening.timing = LeaseTiming::expiring_after(Duration::try_from_secs_f64(text.parse()?)?);
    }
    let mut said = false;
    let opened = opening.open(|holder| {
        if !std::mem::replace(&mut said, true) {
            tracing::warn!("another manager on {} had this state (process {}); {WAITING}", holder.host, holder.pid);
        }
        !signals.pending().any(|signal| [SIGINT, SIGTERM].contains(&signal))
    });
    let store = match opened {
        Err(StoreError::Interrupted { .. }) => {
            return Err(io::Error::from(io::ErrorKind::Interrupted)).context("stopped while it waited for the state");
        }
        opened => opened?,
    };
    // No thread may decide or launch anything more, so the process ends from the thread that finds out.
    store.when_lost(|error| end_now(&format!("{error}: this manager ends at once; jobs continue, and nothing is lost")));
    Ok(store)
}
