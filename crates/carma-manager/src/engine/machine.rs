//! The GPUs that come and go, what happens to them, and the host.

use std::collections::HashMap;
use std::thread;
use std::time::Duration;

use carma_core::{DeviceId, Event, Placement, Seconds, Topology};
use carma_gpu::mps::MpsControl;
use carma_gpu::profiling::Options;
use carma_gpu::{DriverError, GpuEvent, Incident, topology};

use super::batch::Effect;
use super::devices::{Devices, SERVER};
use super::input::Input;
use super::looks::{Looking, Looks};
use super::run::Running;
use super::scans::Scan;
use crate::api::Update;
use crate::event::JobEvent;
use crate::host::{HostChange, HostReading};
use crate::judge::XidSeen;

/// Errors of a GPU that are remembered.
const MOST_XIDS: usize = 64;
/// The shortest that any source of counters is asked again after.
const SHORTEST: Duration = Duration::from_millis(100);

impl Running {
    /// The devices there are. Why others are not used is said.
    pub(super) fn find_devices(&mut self) -> Result<Devices, DriverError> {
        let Some(driver) = self.setup.driver.clone() else { return Ok(Devices::default()) };
        let (devices, outside) = Devices::find(&driver, &self.setup.configuration.manager.gpus, &mut self.numbers)?;
        outside.words.iter().for_each(|words| eprintln!("carma: {words}"));
        self.outside = outside;
        Ok(devices)
    }

    pub(super) fn topology(&self, devices: &Devices) -> Option<Topology> {
        topology(self.setup.driver.as_ref()?, &devices.gpus()).ok()
    }

    /// Starts to look at the devices, or goes on with those there are now.
    pub(super) fn start_looking(&mut self) -> std::io::Result<()> {
        let Some(driver) = self.setup.driver.clone() else { return Ok(()) };
        let period = self.real(Seconds::new(self.setup.configuration.manager.gpus.period).unwrap_or(Seconds::from_secs(1)));
        let interval = period.max(SHORTEST);
        let controls: HashMap<DeviceId, MpsControl> =
            self.devices.iter().filter_map(|device| Some((device.id, self.mps_control(device.id)?))).collect();
        let profiling = Options { interval, ..self.setup.world.profiling.clone() };
        let looking = Looking { driver, clock: self.clock, period, profiling, controls };
        let looks = Looks::start(looking, self.devices.clone(), self.inputs.clone())?;
        looks.ask_activity(self.activity_period());
        self.looks = Some(looks);
        Ok(())
    }

    pub(super) fn gpu_event(&mut self, event: &GpuEvent) {
        let device = event.device.as_ref().and_then(|uuid| self.devices.by_uuid(uuid)).map(|device| device.id);
        let what = device.map_or_else(|| "a GPU".to_owned(), |device| device.to_string());
        self.announce(format!("{what}: {}", event.incident));
        let lost = match (event.incident, device) {
            (Incident::Lost, Some(device)) => Some(device),
            (Incident::Xid(xid), Some(device)) => {
                let seen = self.xids.entry(device).or_default();
                seen.push(XidSeen { xid, at: self.clock.now(), pid: None });
                let surplus = seen.len().saturating_sub(MOST_XIDS);
                seen.drain(..surplus);
                (xid.blame() == carma_gpu::Blame::Lost).then_some(device)
            }
            (Incident::Back, Some(device)) => {
                let _ = self.try_tell(Event::GpuBack { device });
                None
            }
            (Incident::InstancesChanged, _) => {
                self.look_for_devices();
                None
            }
            _ => None,
        };
        if let Some(device) = lost {
            // Told twice, by the driver and by a look, it is lost once.
            let _ = self.try_tell(Event::GpuLost { device });
        }
    }

    /// Asks for the devices anew, where nobody waits.
    pub(super) fn look_for_devices(&mut self) {
        // After a switch they are looked for in any case.
        let (Some(driver), Some(number)) = (self.setup.driver.clone(), self.scans.begin()) else { return };
        let (settings, mut numbers, inputs) = (self.setup.configuration.manager.gpus.clone(), self.numbers.clone(), self.inputs.clone());
        let (daemons, known) = (Some(self.mps_daemons()).filter(|_| !self.setup.observes), self.devices.clone());
        let run = move || {
            if let Ok((mut devices, outside)) = Devices::find(&driver, &settings, &mut numbers) {
                let troubles = daemons.map(|daemons| daemons.start_for_new(&mut devices, &known)).unwrap_or_default();
                let _ = inputs.send(Input::Found(Scan { number, devices, outside, numbers, troubles }));
            }
        };
        let _ = thread::Builder::new().name("devices".to_owned()).spawn(run);
    }

    pub(super) fn scanned(&mut self, Scan { number, mut devices, outside, numbers, troubles }: Scan) {
        if self.scans.counts(number) {
            for trouble in troubles {
                self.announce(trouble);
            }
            devices.keep_modes(&self.devices);
            (self.numbers, self.outside) = (numbers, outside);
            self.found(&devices);
        }
    }

    /// Instances and GPUs that came are used; those that went and had nobody on them are forgotten, others are lost.
    pub(super) fn found(&mut self, now: &Devices) {
        if *now == self.devices {
            return;
        }
        let before = std::mem::replace(&mut self.devices, now.clone());
        for gone in before.iter().filter(|device| now.get(device.id).is_none_or(|new| new.uuid != device.uuid)) {
            if self.try_tell(Event::GpuDetached { device: gone.id }).is_err() {
                let _ = self.try_tell(Event::GpuLost { device: gone.id });
            }
            self.latest.remove(&gone.id);
        }
        for new in now.iter().filter(|device| before.get(device.id).is_none_or(|old| old.uuid != device.uuid)) {
            if self.try_tell(Event::GpuAttached(new.spec())).is_err() {
                // It was lost while attempts were on it, and is known as such.
                let _ = self.try_tell(Event::GpuDetached { device: new.id });
                let _ = self.try_tell(Event::GpuAttached(new.spec()));
            }
            let whole = DeviceId { instance: None, ..new.id };
            if self.drained.contains(&new.id) || self.drained.contains(&whole) {
                let _ = self.try_tell(Event::GpuDrained { device: new.id });
            }
            self.announce(format!("{} came: {}", new.id, new.name));
        }
        let _ = self.numbers.write(&self.setup.places.state.join("gpus.json"));
        if let Err(error) = self.start_looking() {
            self.announce(format!("the GPUs cannot be looked at: {error}"));
        }
    }

    /// Instances that went while attempts were on them are forgotten with the last of those, so that their GPU is no longer cut.
    pub(super) fn forget_gone_instances(&mut self, placement: &Placement) {
        let devices = placement.devices.iter().map(|granted| granted.device);
        let gone: Vec<_> = devices.filter(|device| device.instance.is_some() && self.devices.get(*device).is_none()).collect();
        for device in gone {
            // Others may still be on it.
            let _ = self.try_tell(Event::GpuDetached { device });
        }
    }

    pub(super) fn host_looked(&mut self, reading: HostReading) {
        let change = self.host.take(&reading, &self.setup.configuration.manager.host);
        let _ = self.try_tell(Event::HostMemory { server: SERVER, available: reading.memory_available });
        self.host_reading = Some(reading);
        if self.setup.observes || self.draining {
            return;
        }
        match change {
            None => {}
            Some(HostChange::Short(shortage)) => {
                self.announce(format!("the host is short, and nothing new is started: {shortage}"));
                let _ = self.try_tell(Event::HostShort { server: SERVER });
            }
            Some(HostChange::Fine) => {
                self.announce("the host is fine again".to_owned());
                let _ = self.try_tell(Event::HostFine { server: SERVER });
            }
        }
    }

    /// Something of the machine that people should know: told, written down, and said.
    pub(super) fn announce(&mut self, text: String) {
        eprintln!("carma: {text}");
        self.batch.log(self.clock.wall(), None, JobEvent::Machine { text: text.clone() });
        self.batch.effects.push(Effect::Tell(Update::Machine { text }));
    }
}
