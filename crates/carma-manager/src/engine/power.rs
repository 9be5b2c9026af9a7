//! Power limits of GPUs: written down, set where the rules want them and we may, and put back when they are no longer wanted. Driver and disk take
//! their time, so all of it is done by a thread of its own.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};

use carma_core::{DeviceId, Event, Watts};
use carma_gpu::{DeviceUuid, Driver, PowerLimitChange};

use super::input::Input;
use super::pool::Pool;
use super::run::Running;
use crate::store::{Change, MachineChange, Store, Ticket};

/// What the thread is to do.
#[derive(Debug)]
pub(super) enum PowerOrder {
    /// Limits were set by a manager before.
    TakeOver(Vec<PowerLimitChange>),
    /// Sets the most that a GPU may draw, or puts back what it was.
    Limit { device: DeviceId, gpu: DeviceUuid, limit: Option<Watts> },
    /// Puts back every limit, and lets go of this when it is done.
    PutBack(Sender<()>),
}

impl Running {
    /// Takes over the limits that were set before us, and sees to those that the rules want now.
    pub(super) fn begin_power_limits(&mut self, changes: Vec<MachineChange>) {
        let limits =
            changes.into_iter().filter_map(|change| if let MachineChange::PowerLimit(limit) = change { Some(limit) } else { None });
        self.power.give(PowerOrder::TakeOver(limits.collect()));
        let wanted = self.core.scheduler().config().power.cap;
        for device in self.devices.iter().map(|device| device.id).filter(|device| device.instance.is_none()) {
            self.limit_power(device, wanted);
        }
    }

    /// Has the most set that a GPU may draw, or what it was put back.
    pub(super) fn limit_power(&self, device: DeviceId, limit: Option<Watts>) {
        let gpu = self.devices.get(device).map(|known| known.uuid.clone());
        if let Some(gpu) = gpu.filter(|gpu| !self.setup.observes && !self.outside.has(gpu)) {
            self.power.give(PowerOrder::Limit { device, gpu, limit });
        }
    }

    pub(super) fn power_limited(&mut self, device: DeviceId, came_to: Result<Option<Watts>, String>) {
        match came_to {
            Ok(limit) => drop(self.try_tell(Event::PowerLimited { device, limit })),
            Err(reason) => self.announce(reason),
        }
    }

    /// Puts back every limit before we end. One that cannot be is put back by who comes after us.
    pub(super) fn restore_power_limits(&self) {
        let (done, told) = channel();
        self.power.give(PowerOrder::PutBack(done));
        let _ = told.recv();
    }
}

/// Starts the thread.
pub(super) fn limits(driver: Option<&Arc<Driver>>, store: &Arc<Store>, inputs: &Sender<Input>) -> io::Result<Pool<PowerOrder>> {
    Pool::start("power", 1, || {
        let limiter = driver.cloned().map(|driver| Limiter { driver, store: Arc::clone(store), made: BTreeMap::new() });
        let (mut limiter, inputs) = (limiter, inputs.clone());
        Ok(move |order| limiter.as_mut().is_some_and(|limiter| limiter.carry_out(order, &inputs)))
    })
}

struct Limiter {
    driver: Arc<Driver>,
    store: Arc<Store>,
    /// Limits that are set, and what they were before.
    made: BTreeMap<DeviceUuid, PowerLimitChange>,
}

impl Limiter {
    fn carry_out(&mut self, order: PowerOrder, inputs: &Sender<Input>) -> bool {
        match order {
            PowerOrder::TakeOver(changes) => {
                for change in changes {
                    self.take_over(change);
                }
                true
            }
            PowerOrder::Limit { device, gpu, limit } => {
                let came_to = match (limit, self.made.get(&gpu).cloned()) {
                    (None, None) => return true,
                    (None, Some(made)) => {
                        let put_back = self.put_back(made).map(|_| None);
                        put_back.map_err(|error| format!("the power limit of {device} cannot be put back: {error}"))
                    }
                    (Some(limit), earlier) => {
                        let set = self.limit(&gpu, limit, earlier.as_ref()).map(Some);
                        set.map_err(|error| format!("{device} cannot be limited to {limit}: {error}"))
                    }
                };
                inputs.send(Input::PowerLimited(device, came_to)).is_ok()
            }
            PowerOrder::PutBack(_done) => {
                let tickets: Vec<Ticket> = self.made.clone().into_values().filter_map(|made| self.put_back(made).ok()).collect();
                for ticket in tickets {
                    let _ = ticket.wait();
                }
                false
            }
        }
    }

    /// Whoever ends between writing a limit down and setting it leaves two of one GPU: the one that is in force says what to put back.
    fn take_over(&mut self, change: PowerLimitChange) {
        let surplus = match self.made.get(change.gpu()) {
            Some(known) if *known == change => return,
            Some(known) if known.is_in_force(&self.driver).unwrap_or(true) => change,
            Some(_) | None => match self.made.insert(change.gpu().clone(), change) {
                Some(known) => known,
                None => return,
            },
        };
        drop(self.forget(surplus));
    }

    fn limit(&mut self, gpu: &DeviceUuid, limit: Watts, earlier: Option<&PowerLimitChange>) -> Result<Watts, String> {
        let change = PowerLimitChange::plan(&self.driver, gpu, limit, earlier).map_err(|error| error.to_string())?;
        // Written down first: whoever comes after us knows what to put back.
        let written = vec![Change::MachineChanged(MachineChange::PowerLimit(change.clone()))];
        self.store.write(written).wait().map_err(|error| error.to_string())?;
        let made = change.make(&self.driver).map_err(|error| error.to_string());
        if made.is_err() && earlier != Some(&change) && change.is_in_force(&self.driver).is_ok_and(|is| !is) {
            drop(self.forget(change.clone()));
        }
        made?;
        let set = change.limit();
        if let Some(replaced) = self.made.insert(gpu.clone(), change.clone()).filter(|replaced| *replaced != change) {
            drop(self.forget(replaced));
        }
        Ok(set)
    }

    fn put_back(&mut self, made: PowerLimitChange) -> Result<Ticket, String> {
        made.restore(&self.driver).map_err(|error| error.to_string())?;
        self.made.remove(made.gpu());
        Ok(self.forget(made))
    }

    fn forget(&self, change: PowerLimitChange) -> Ticket {
        self.store.write(vec![Change::MachineRestored(MachineChange::PowerLimit(change))])
    }
}
