//! MIG: creates and destroys instances of a GPU.

use bytemuck::Zeroable;
use thiserror::Error;

use super::records::{EventRecord, InstanceRecord, NONE, Text};
use super::{Place, State, uuid};
use crate::profile::MigProfile;

/// NVML's bit for the event that a GPU's partition changed.
const CONFIGURATION_CHANGED: u64 = 0x100;

/// Why a GPU cannot be partitioned as requested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum MigError {
    /// This kind of GPU does not support MIG.
    #[error("this GPU cannot be partitioned into instances")]
    Unsupported,
    /// The GPU is whole.
    #[error("MIG is off")]
    Off,
    /// Processes run there, or an instance still has its compute instance.
    #[error("it is in use")]
    InUse,
    /// No room for one more, or not at that place.
    #[error("there is no room for the instance")]
    NoRoom,
    /// This kind of GPU has no such instances.
    #[error("the instance profile is unknown, or cannot start there")]
    NoSuchProfile,
    /// There is no such instance.
    #[error("no such instance")]
    NoSuchInstance,
}

impl MigProfile {
    const fn overlaps(&self, start: u32, other: &Self, other_start: u32) -> bool {
        start < other_start + other.span && other_start < start + self.span
    }

    /// How many fit at these starts, with this many compute slices.
    pub(crate) fn most(&self, starts: &[u32], slices: u32) -> u32 {
        let next = |(count, free), start: &u32| if *start >= free { (count + 1, start + self.span) } else { (count, free) };
        let (count, _) = starts.iter().fold((0, 0), next);
        slices.checked_div(self.slices).unwrap_or_default().min(count)
    }
}

impl State<'_> {
    /// Switches MIG on or off; either takes a reset, which ends all processes and instances.
    pub fn set_mig(&mut self, gpu: usize, on: bool) -> Result<(), MigError> {
        if self.profile(gpu).mig.is_empty() {
            return Err(MigError::Unsupported);
        }
        if (self.gpus[gpu].mig != 0) == on {
            return Ok(());
        }
        if self.contexts_at(Place::gpu(gpu)).next().is_some() {
            return Err(MigError::InUse);
        }
        let record = &mut self.gpus[gpu];
        (record.mig, record.instances) = (u32::from(on), Zeroable::zeroed());
        self.mig_changed(gpu);
        Ok(())
    }

    /// The instances of a GPU in the order of their numbers, with their places.
    pub fn instances(&self, gpu: usize) -> Vec<(usize, &InstanceRecord)> {
        let mut all: Vec<_> = self.gpus[gpu].instances.iter().enumerate().filter(|(_, instance)| instance.used != 0).collect();
        all.sort_by_key(|(_, instance)| instance.id);
        all
    }

    /// The free starts for an instance of a profile.
    pub fn open_starts(&self, gpu: usize, profile: &MigProfile) -> Vec<u32> {
        let there = self.gpus[gpu].instances.iter().enumerate().filter(|(_, instance)| instance.used != 0);
        let there: Vec<(u32, &MigProfile)> = there.map(|(place, instance)| (instance.start, self.instance_profile(gpu, place))).collect();
        let slices: u32 = there.iter().map(|(_, other)| other.slices).sum();
        if slices + profile.slices > self.profile(gpu).slices() {
            return Vec::new();
        }
        let open = |start: &u32| !there.iter().any(|(other_start, other)| profile.overlaps(*start, other, *other_start));
        profile.starts.iter().copied().filter(open).collect()
    }

    /// How many more instances of a profile fit.
    pub fn remaining_instances(&self, gpu: usize, profile: &MigProfile) -> u32 {
        let used: u32 = self.instances(gpu).iter().map(|(place, _)| self.instance_profile(gpu, *place).slices).sum();
        profile.most(&self.open_starts(gpu, profile), self.profile(gpu).slices() - used)
    }

    /// Creates a GPU instance, at a given memory slice or at the driver's choice, and returns its place.
    pub fn create_instance(&mut self, gpu: usize, profile: &MigProfile, start: Option<u32>) -> Result<usize, MigError> {
        let profiles = &self.profile(gpu).mig;
        if self.gpus[gpu].mig == 0 {
            return Err(MigError::Off);
        }
        let kind = profiles.iter().position(|other| other == profile).ok_or(MigError::NoSuchProfile)?;
        if start.is_some_and(|start| !profile.starts.contains(&start)) {
            return Err(MigError::NoSuchProfile);
        }
        let open = self.open_starts(gpu, profile);
        // By default the driver blocks as few placements of other instances as possible.
        let spoils = |start: u32| {
            let spoilt = |other: &MigProfile| self.open_starts(gpu, other).iter().filter(|at| other.overlaps(**at, profile, start)).count();
            profiles.iter().map(spoilt).sum::<usize>()
        };
        let start = match start {
            Some(start) => open.contains(&start).then_some(start),
            None => open.into_iter().min_by_key(|start| (spoils(*start), *start)),
        };
        let start = start.ok_or(MigError::NoRoom)?;
        // The driver's numbering: the GPU is 0, its halves 1 and 2, its quarters 3 to 6, and so on.
        let whole = profiles.iter().map(|other| other.span).max().unwrap_or(profile.span);
        let id = whole / profile.span - 1 + start / profile.span;
        let place = self.gpus[gpu].instances.iter().position(|instance| instance.used == 0).ok_or(MigError::NoRoom)?;
        self.gpus[gpu].instances[place] = InstanceRecord { used: 1, id, profile: kind as u32, start, ..InstanceRecord::zeroed() };
        self.mig_changed(gpu);
        Ok(place)
    }

    /// Creates the compute instance of a GPU instance, which makes it a device with its own UUID.
    pub fn create_compute_instance(&mut self, gpu: usize, instance: usize) -> Result<(), MigError> {
        if self.instance(gpu, instance)?.computes != 0 {
            return Err(MigError::NoRoom);
        }
        let serial = self.next_serial();
        let name = format!("MIG-{}", uuid(&format!("{}/{serial}", self.gpus[gpu].uuid.get())));
        let record = &mut self.gpus[gpu].instances[instance];
        (record.computes, record.uuid) = (1, Text::new(&name));
        self.mig_changed(gpu);
        Ok(())
    }

    /// Destroys the compute instance of a GPU instance.
    pub fn destroy_compute_instance(&mut self, gpu: usize, instance: usize) -> Result<(), MigError> {
        if self.instance(gpu, instance)?.computes == 0 {
            return Err(MigError::NoSuchInstance);
        }
        if self.contexts_at(Place { gpu, instance: Some(instance) }).next().is_some() {
            return Err(MigError::InUse);
        }
        let record = &mut self.gpus[gpu].instances[instance];
        (record.computes, record.uuid) = (0, Text::new(""));
        self.mig_changed(gpu);
        Ok(())
    }

    /// Destroys a GPU instance, which must not have a compute instance.
    pub fn destroy_instance(&mut self, gpu: usize, instance: usize) -> Result<(), MigError> {
        if self.instance(gpu, instance)?.computes != 0 {
            return Err(MigError::InUse);
        }
        self.gpus[gpu].instances[instance] = InstanceRecord::zeroed();
        self.mig_changed(gpu);
        Ok(())
    }

    fn instance(&self, gpu: usize, instance: usize) -> Result<&InstanceRecord, MigError> {
        self.gpus[gpu].instances.get(instance).filter(|instance| instance.used != 0).ok_or(MigError::NoSuchInstance)
    }

    fn mig_changed(&mut self, gpu: usize) {
        self.report(EventRecord { gpu: gpu as u32, instance: NONE, kind: CONFIGURATION_CHANGED, data: 0 });
        self.touch();
    }
}

#[cfg(test)]
mod tests {
    use super::super::records::GpuRecord;
    use super::super::{ContextKind, ContextRecord, SharedState, started};
    use super::*;
    use crate::profile::Profile;

    /// Runs a closure on a GPU of a kind in MIG mode.
    fn cut<R>(kind: &str, act: impl FnOnce(&mut State<'_>, &'static [MigProfile]) -> R) -> R {
        let folder = tempfile::tempdir().unwrap();
        let place = Profile::all().iter().position(|profile| profile.kind.name == kind).unwrap();
        let gpu = GpuRecord { uuid: Text::new("GPU-0"), profile: place as u32, ..GpuRecord::zeroed() };
        let state = SharedState::create(&folder.path().join("state"), &[gpu], 1.0).unwrap();
        state
            .with(|state| {
                state.set_mig(0, true).unwrap();
                act(state, &Profile::all()[place].mig)
            })
            .unwrap()
    }

    fn named<'a>(profiles: &'a [MigProfile], name: &str) -> &'a MigProfile {
        profiles.iter().find(|profile| profile.name == name).unwrap()
    }

    /// The result of `nvidia-smi mig -cgi 19,14,5` on an A100, by NVIDIA's user guide.
    #[test]
    fn the_driver_leaves_room_for_larger_instances_and_numbers_them_by_where_they_are() {
        let made = cut("A100-40GB", |state, profiles| {
            let make = |name| {
                let place = state.create_instance(0, named(profiles, name), None).unwrap();
                let instance = &state.gpus[0].instances[place];
                (instance.id, instance.start)
            };
            ["1g.5gb", "2g.10gb", "4g.20gb"].map(make)
        });
        assert_eq!(made, [(13, 6), (5, 4), (1, 0)]);
        let numbers = cut("A30-24GB", |state, profiles| {
            for start in 0..4 {
                state.create_instance(0, named(profiles, "1g.6gb"), Some(start)).unwrap();
            }
            state.instances(0).iter().map(|(_, instance)| instance.id).collect::<Vec<_>>()
        });
        assert_eq!(numbers, [3, 4, 5, 6]);
    }

    #[test]
    fn room_is_counted_in_memory_slices_and_compute_slices() {
        cut("A100-40GB", |state, profiles| {
            let counts = |state: &State<'_>| profiles.iter().map(|profile| state.remaining_instances(0, profile)).collect::<Vec<_>>();
            assert_eq!(counts(state), [7, 4, 3, 2, 1, 1]);
            state.create_instance(0, named(profiles, "3g.20gb"), Some(4)).unwrap();
            assert_eq!(counts(state), [4, 2, 2, 1, 1, 0]);
            assert_eq!(state.create_instance(0, named(profiles, "2g.10gb"), Some(4)), Err(MigError::NoRoom));
            assert_eq!(state.create_instance(0, named(profiles, "2g.10gb"), Some(1)), Err(MigError::NoSuchProfile));
            state.create_instance(0, named(profiles, "4g.20gb"), None).unwrap();
            assert_eq!(counts(state), [0; 6]);
        });
    }

    #[test]
    fn instances_in_use_are_not_destroyed() {
        cut("H100-80GB", |state, profiles| {
            let instance = state.create_instance(0, named(profiles, "1g.10gb"), None).unwrap();
            state.create_compute_instance(0, instance).unwrap();
            assert_eq!(state.create_compute_instance(0, instance), Err(MigError::NoRoom));
            assert_eq!(state.destroy_instance(0, instance), Err(MigError::InUse));
            let pid = std::process::id();
            let context = ContextRecord { pid, instance: instance as u32, ..ContextRecord::new(ContextKind::Compute) };
            state.attach(context, started(pid).unwrap()).unwrap();
            assert_eq!(state.destroy_compute_instance(0, instance), Err(MigError::InUse));
            assert_eq!(state.set_mig(0, false), Err(MigError::InUse));
            state.detach(|_| true);
            assert!(state.gpus[0].instances[instance].uuid.get().starts_with("MIG-"));
            assert_eq!(state.places(), [Place { gpu: 0, instance: Some(instance) }]);
            state.destroy_compute_instance(0, instance).unwrap();
            assert_eq!(state.places(), []);
            state.destroy_instance(0, instance).unwrap();
            assert_eq!(state.destroy_instance(0, instance), Err(MigError::NoSuchInstance));
            let kinds: Vec<u64> = (0..state.header.events).map(|number| state.event_from(number).unwrap().1.kind).collect();
            assert_eq!(kinds, [CONFIGURATION_CHANGED; 5], "MIG on, two made, two destroyed");
        });
        cut("A100-40GB", |state, _| {
            state.set_mig(0, false).unwrap();
            assert_eq!(state.create_instance(0, &Profile::all()[0].mig[0], None), Err(MigError::Off));
        });
    }
}
