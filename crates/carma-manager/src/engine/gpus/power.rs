//! Power limits of GPUs: stored, set as configured, and restored when no longer wanted. Driver and disk are slow, so a thread does it.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use carma_core::{DeviceId, Event, Watts};
use carma_gpu::{DeviceUuid, Driver, PowerLimitChange};

use super::Gpus;
use super::report::{GpuChange, Reports};
use crate::engine::decide::Decisions;
use crate::pool::Pool;
use crate::store::{Change, MachineChange, Store, Ticket};
use crate::turns::{Limits, OWN};

/// An order for the thread.
#[derive(Debug)]
pub(super) enum PowerOrder {
    /// Takes over the limits of an earlier manager.
    TakeOver(Vec<PowerLimitChange>),
    /// Sets or restores the power limit of a GPU.
    Limit { device: DeviceId, gpu: DeviceUuid, limit: Option<Watts> },
    /// Restores every limit, and drops this when it is done.
    RestoreAll(Sender<()>),
}

impl Gpus {
    /// Takes over the limits of earlier managers, and sets those that the rules want now.
    pub(super) fn begin_power_limits(&self, decisions: &Decisions, changes: Vec<MachineChange>) {
        let limits =
            changes.into_iter().filter_map(|change| if let MachineChange::PowerLimit(limit) = change { Some(limit) } else { None });
        self.power.add(OWN, PowerOrder::TakeOver(limits.collect()));
        let wanted = decisions.scheduler().config().power.cap;
        for device in self.devices.iter().map(|device| device.id).filter(|device| device.instance.is_none()) {
            self.limit_power(device, wanted);
        }
    }

    /// Sets or restores the power limit of a GPU.
    pub(crate) fn limit_power(&self, device: DeviceId, limit: Option<Watts>) {
        let gpu = self.devices.get(device).map(|known| known.uuid.clone());
        if let Some(gpu) = gpu.filter(|gpu| !self.setup.observes && !self.excluded.has(gpu)) {
            self.power.add(OWN, PowerOrder::Limit { device, gpu, limit });
        }
    }

    /// Restores every limit before the manager ends. The next manager restores limits that cannot be restored now.
    pub(crate) fn restore_power_limits(&self) {
        let (done, finished) = channel();
        self.power.add(OWN, PowerOrder::RestoreAll(done));
        let _ = finished.recv();
    }
}

/// The result of a change.
pub(super) fn limited(decisions: &mut Decisions, device: DeviceId, result: Result<Option<Watts>, String>) {
    match result {
        Ok(limit) => drop(decisions.tell(Event::PowerLimited { device, limit })),
        Err(reason) => decisions.announce(reason),
    }
}

/// Starts the thread.
pub(super) fn limits(driver: Option<&Arc<Driver>>, store: &Arc<Store>, reports: &Reports) -> io::Result<Pool<PowerOrder>> {
    Pool::start("power", Limits::at_most(1), || {
        let limiter = driver.cloned().map(|driver| Limiter { driver, store: Arc::clone(store), applied: BTreeMap::new() });
        let (mut limiter, reports) = (limiter, reports.clone());
        Ok(move |order| limiter.as_mut().is_some_and(|limiter| limiter.carry_out(order, &reports)))
    })
}

struct Limiter {
    driver: Arc<Driver>,
    store: Arc<Store>,
    /// The limits in force, with the earlier values.
    applied: BTreeMap<DeviceUuid, PowerLimitChange>,
}

impl Limiter {
    fn carry_out(&mut self, order: PowerOrder, reports: &Reports) -> bool {
        match order {
            PowerOrder::TakeOver(changes) => {
                for change in changes {
                    self.take_over(change);
                }
                true
            }
            PowerOrder::Limit { device, gpu, limit } => {
                let result = match (limit, self.applied.get(&gpu).cloned()) {
                    (None, None) => return true,
                    (None, Some(made)) => {
                        let restore = self.restore(made).map(|_| None);
                        restore.map_err(|error| format!("the power limit of {device} cannot be restored: {error}"))
                    }
                    (Some(limit), earlier) => {
                        let set = self.limit(&gpu, limit, earlier.as_ref()).map(Some);
                        set.map_err(|error| format!("the power limit {limit} cannot be set on {device}: {error}"))
                    }
                };
                reports.changed(GpuChange::PowerLimited(device, result))
            }
            PowerOrder::RestoreAll(_done) => {
                let tickets: Vec<Ticket> = self.applied.clone().into_values().filter_map(|made| self.restore(made).ok()).collect();
                for ticket in tickets {
                    let _ = ticket.wait();
                }
                false
            }
        }
    }

    /// A manager that ends between writing a limit down and setting it leaves two for one GPU: the one in force says what to put back.
    fn take_over(&mut self, change: PowerLimitChange) {
        let surplus = match self.applied.get(change.gpu()) {
            Some(known) if *known == change => return,
            Some(known) if known.is_in_force(&self.driver).unwrap_or(true) => change,
            Some(_) | None => match self.applied.insert(change.gpu().clone(), change) {
                Some(known) => known,
                None => return,
            },
        };
        drop(self.forget(surplus));
    }

    fn limit(&mut self, gpu: &DeviceUuid, limit: Watts, earlier: Option<&PowerLimitChange>) -> Result<Watts, String> {
        let change = PowerLimitChange::plan(&self.driver, gpu, limit, earlier).map_err(|error| error.to_string())?;
        // Written down first, so that the next manager knows what to put back.
        let written = vec![Change::MachineChanged(MachineChange::PowerLimit(change.clone()))];
        self.store.write(written).wait().map_err(|error| error.to_string())?;
        let made = change.make(&self.driver).map_err(|error| error.to_string());
        if made.is_err() && earlier != Some(&change) && change.is_in_force(&self.driver).is_ok_and(|is| !is) {
            drop(self.forget(change.clone()));
        }
        made?;
        let set = change.limit();
        if let Some(replaced) = self.applied.insert(gpu.clone(), change.clone()).filter(|replaced| *replaced != change) {
            drop(self.forget(replaced));
        }
        Ok(set)
    }

    fn restore(&mut self, change: PowerLimitChange) -> Result<Ticket, String> {
        change.restore(&self.driver).map_err(|error| error.to_string())?;
        self.applied.remove(change.gpu());
        Ok(self.forget(change))
    }

    fn forget(&self, change: PowerLimitChange) -> Ticket {
        self.store.write(vec![Change::MachineRestored(MachineChange::PowerLimit(change))])
    }
}
