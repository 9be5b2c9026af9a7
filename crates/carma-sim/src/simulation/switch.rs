//! Mode switches of GPUs: each GPU has its own mode, and instances are created and removed.

use std::ops::Range;

use carma_core::{CollocationMode, DeviceId, DeviceSpec, Event, Fraction, GpuMode, MigLayout, Part, SharingMode};

use super::agenda::Item;
use super::driver::{Decider, SimulationError};
use super::gpu::Gpu;
use super::telemetry::Levels;
use super::world::World;
use crate::hardware::Sharing;

/// A GPU that is out of use until its switch is done.
#[derive(Debug, Clone, Copy)]
pub(super) struct Switch {
    gpu: usize,
    to: GpuMode,
}

impl<D: Decider> World<'_, D> {
    /// Starts to switch the mode of a GPU; it is done after the switching time.
    pub(super) fn switch(&mut self, device: DeviceId, to: GpuMode) {
        let gpu = self.gpu_place(device);
        let from = match self.gpus[gpu].mode {
            _ if !self.instances(gpu).is_empty() => SharingMode::Mig,
            CollocationMode::Mps { .. } => SharingMode::Mps,
            _ => SharingMode::Streams,
        };
        self.switches.push(Switch { gpu, to });
        self.agenda.plan(self.now + GpuMode::cost(from, to.sharing()), Item::Switched { place: self.switches.len() - 1 });
    }

    /// The instances of a GPU.
    pub(super) fn instances(&self, gpu: usize) -> Range<usize> {
        self.gpus[gpu].instances.clone().unwrap_or(0..0)
    }

    pub(super) fn switched(&mut self, place: usize) -> Result<(), SimulationError> {
        let Switch { gpu, to } = self.switches[place];
        let Gpu { id: device, kind, .. } = self.gpus[gpu];
        let objection = match to {
            GpuMode::Mig(_) if !kind.has_seven_slices() => Some("this GPU does not support MIG"),
            _ if self.gpus[gpu].is_lost() => Some("the GPU is lost"),
            _ if !self.gpus[gpu].residents.is_empty() => Some("the GPU is in use"),
            _ => None,
        };
        if let Some(reason) = objection {
            return self.send(Event::ModeRefused { device, reason: reason.to_owned() });
        }
        for instance in self.instances(gpu) {
            let id = self.gpus[instance].id;
            self.places.remove(&id);
            self.gpus[instance].removed = true;
            self.servers[device.server().0 as usize].devices.retain(|place| *place != instance);
            self.send(Event::GpuDetached { device: id })?;
        }
        self.gpus[gpu].instances = None;
        let sharing = match to {
            GpuMode::Mig(layout) => {
                self.cut(gpu, layout)?;
                Sharing::Streams
            }
            GpuMode::Mps => Sharing::Mps,
            GpuMode::Streams => Sharing::Streams,
        };
        self.gpus[gpu].mode = sharing.mode();
        self.touch(gpu);
        self.send(Event::GpuModeChanged { device, mode: sharing.mode() })
    }

    fn cut(&mut self, gpu: usize, layout: MigLayout) -> Result<(), SimulationError> {
        let Gpu { id: device, kind, .. } = self.gpus[gpu];
        let parts: Vec<Part> = layout.parts(kind.memory);
        let first = self.gpus.len();
        for (instance, part) in (0..).zip(&parts) {
            let spec = DeviceSpec::new(device.instance(instance), part.memory);
            self.attach(&spec, kind, Fraction::clamped(part.share()), 1.0 / parts.len() as f64, Some(gpu))?;
        }
        self.gpus[gpu].instances = Some(first..self.gpus.len());
        self.measure_instances(gpu);
        Ok(())
    }

    /// A GPU's counters are those of its instances, weighted by their shares.
    pub(super) fn measure_instances(&mut self, gpu: usize) {
        let parts = &self.gpus[self.instances(gpu)];
        let reading = self.setup.physics.reading;
        let level = |counter: usize| parts.iter().map(|part| part.levels(reading).0[counter] * part.slices.get()).sum();
        let levels = Levels(std::array::from_fn(level));
        let (used, watts) = (parts.iter().map(|part| part.used).sum(), parts.iter().map(Gpu::watts).sum());
        let residents = parts.iter().map(|part| part.residents.len()).sum();
        self.gpus[gpu].meter.change(self.now, levels, used, watts, residents);
    }
}
