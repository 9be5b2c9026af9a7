//! Switches of GPUs' modes: which GPU is switched, and to which mode.

use carma_core::*;
use proptest::sample::Index;

use super::world::World;

impl World {
    /// Only empty GPUs are switched, to allowed modes, not too often; no job is placed on them meanwhile.
    pub(super) fn check_switches(&mut self, before: &Scheduler, actions: &[Action]) {
        let scheduler = self.log.scheduler();
        let (modes, now) = (&scheduler.config().modes, scheduler.now());
        for action in actions {
            match action {
                Action::SwitchMode { device, to, .. } => {
                    assert!(modes.allows(to.sharing()), "{device} may not be switched to {to}");
                    let rested = before.fleet().device(*device).and_then(|device| device.switches.changed_at);
                    assert!(rested.is_none_or(|changed| now - changed >= modes.every), "{device} was switched at {rested:?}");
                    for part in scheduler.fleet().devices().filter(|part| part.id().gpu == device.gpu) {
                        assert!(part.tenants.is_empty() && part.foreign.is_empty(), "{} is switched with processes on it", part.id());
                        assert_eq!(part.switches.to, Some(*to));
                    }
                    self.switches.push((*device, *to));
                }
                Action::Launch { attempt, placement, .. } => {
                    for granted in &placement.devices {
                        let device = scheduler.fleet().device(granted.device).unwrap();
                        assert_eq!(device.switches.to, None, "{attempt} was placed on {}, which is being switched", granted.device);
                    }
                }
                _ => {}
            }
        }
    }

    /// One of the switches is done as requested, or refused.
    pub(super) fn answer_switch(&mut self, index: Index, done: bool) {
        if !self.switches.is_empty() {
            let (gpu, to) = self.switches.swap_remove(index.index(self.switches.len()));
            self.answer(gpu, to, done);
        }
    }

    /// All requested switches are done.
    pub(super) fn answer_switches(&mut self) {
        while let Some((gpu, to)) = self.switches.pop() {
            self.answer(gpu, to, true);
        }
    }

    /// Answers may also arrive for abandoned and replaced switches.
    fn answer(&mut self, gpu: DeviceId, to: GpuMode, done: bool) {
        let under_way = self.scheduler().fleet().device(gpu).is_some_and(|device| device.switches.to == Some(to));
        if !under_way || !done {
            let refused = self.event(Event::ModeRefused { device: gpu, reason: "not now".to_owned() });
            return assert!(refused || !under_way);
        }
        let parts: Vec<DeviceSpec> = self.scheduler().fleet().devices().map(|device| device.spec.clone()).collect();
        let whole = parts.iter().find(|spec| spec.id == gpu).unwrap();
        for part in parts.iter().filter(|part| part.id.gpu == gpu.gpu && part.id != gpu) {
            self.accepted(Event::GpuDetached { device: part.id });
        }
        if let GpuMode::Mig(layout) = to {
            for (instance, part) in (10..).zip(layout.parts(whole.memory)) {
                self.accepted(Event::GpuAttached(DeviceSpec::new(gpu.instance(instance), part.memory)));
            }
        }
        let mode = if to == GpuMode::Mps { CollocationMode::Mps { exclusive_process: false } } else { CollocationMode::Streams };
        self.accepted(Event::GpuModeChanged { device: gpu, mode });
    }
}
