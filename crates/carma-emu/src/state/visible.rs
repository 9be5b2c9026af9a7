//! The GPUs visible to a program, by `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`, and those it may open.

use carma_gpu::{Named, NamedGpu, NamedInstance, VisibleDevices};

use super::{ContextKind, Place, State};

/// NVML's numbers of the compute modes that keep processes out.
const PROHIBITED: u32 = 2;
const EXCLUSIVE_PROCESS: u32 = 3;

/// The visible places of a program, in its own order. `visible` and `order` are the values of the variables. Unlike a manager, a program
/// can use at most one instance.
pub fn visible(state: &State<'_>, visible: Option<&str>, order: Option<&str>) -> Vec<Place> {
    let mut gpus: Vec<usize> = (0..state.gpus.len()).filter(|gpu| state.gpus[*gpu].lost == 0).collect();
    if order != Some("PCI_BUS_ID") {
        // CUDA's default order is fastest first, which is why numbers are easily confused.
        gpus.sort_by(|a, b| state.profile(*b).kind.bandwidth.total_cmp(&state.profile(*a).kind.bandwidth));
    }
    let places: Vec<Vec<Place>> = gpus.iter().map(|gpu| places_of(state, *gpu)).collect();
    let Some(value) = visible else { return places.iter().filter_map(|places| places.first().copied()).collect() };
    let names_of = |(gpu, places): (&usize, &Vec<Place>)| NamedGpu {
        uuid: state.gpus[*gpu].uuid.get().parse().ok(),
        instances: places.iter().map(|place| named(state, *place)).collect::<Option<_>>().unwrap_or_default(),
    };
    let named = VisibleDevices::parse(value).resolve(&gpus.iter().zip(&places).map(names_of).collect::<Vec<_>>());
    // A partitioned GPU means its first instance.
    let seen: Vec<Place> = named.iter().map_while(|Named { gpu, instance }| places[*gpu].get(instance.unwrap_or(0)).copied()).collect();
    match seen.iter().find(|place| place.instance.is_some()) {
        Some(instance) => vec![*instance],
        None => seen,
    }
}

/// The GPU if it is whole, else its instances.
fn places_of(state: &State<'_>, gpu: usize) -> Vec<Place> {
    state.places().into_iter().filter(|place| place.gpu == gpu).collect()
}

/// The names of an instance.
fn named(state: &State<'_>, place: Place) -> Option<NamedInstance> {
    let instance = &state.gpus[place.gpu].instances[place.instance?];
    // Each GPU instance has one compute instance.
    Some(NamedInstance { uuid: instance.uuid.get().parse().ok()?, gpu_instance: instance.id, compute_instance: 0 })
}

/// Whether the compute mode lets a process open a context here.
pub(crate) fn is_open_to(state: &State<'_>, place: Place, pid: u32) -> bool {
    let taken = || state.contexts_at(place).any(|other| other.pid != pid && other.kind() != ContextKind::Graphics);
    match state.gpus[place.gpu].compute_mode {
        PROHIBITED => false,
        EXCLUSIVE_PROCESS => !taken(),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use bytemuck::Zeroable;
    use carma_sim::GpuType;

    use super::*;
    use crate::profile::Profile;
    use crate::state::{GpuRecord, SharedState, Text};

    #[test]
    fn a_program_sees_what_cuda_would_let_it_see() {
        let folder = tempfile::tempdir().unwrap();
        let gpus = [("T4-16GB", "GPU-aa11"), ("A100-40GB", "GPU-aa22"), ("A100-40GB", "GPU-bb33")];
        let gpus = gpus.map(|(kind, uuid)| GpuRecord {
            uuid: Text::new(uuid),
            profile: Profile::place(GpuType::find(kind).unwrap()) as u32,
            ..GpuRecord::zeroed()
        });
        let machine = SharedState::create(&folder.path().join("state"), &gpus, 1.0).unwrap();
        let seen = |variable: Option<&str>, order: &str| {
            let places = machine.with(|state| visible(state, variable, Some(order))).unwrap();
            places.iter().map(|place| (place.gpu, place.instance)).collect::<Vec<_>>()
        };
        let whole = |gpus: &[usize]| gpus.iter().map(|gpu| (*gpu, None)).collect::<Vec<_>>();
        assert_eq!(seen(None, "PCI_BUS_ID"), whole(&[0, 1, 2]));
        assert_eq!(seen(None, "FASTEST_FIRST"), whole(&[1, 2, 0]));
        let cases: [(&str, &[usize]); 12] = [
            ("", &[]),
            ("-1", &[]),
            ("7", &[]),
            ("0,0", &[]),
            ("2, 0", &[2, 0]),
            ("1,-1,0", &[1]),
            ("GPU-bb", &[2]),
            ("GPU-bb33,GPU-aa11", &[2, 0]),
            ("GPU-aa", &[]),
            ("GPU-", &[]),
            ("GPU-cc", &[]),
            ("MIG-bb33", &[]),
        ];
        for (variable, gpus) in cases {
            assert_eq!(seen(Some(variable), "PCI_BUS_ID"), whole(gpus), "{variable:?}");
        }
        // A program has one instance at most; a partitioned GPU is its first.
        let cut = |state: &mut State<'_>| {
            state.gpus[1].mig = 1;
            for (place, uuid) in ["MIG-1", "MIG-2"].into_iter().enumerate() {
                let instance = &mut state.gpus[1].instances[place];
                (instance.used, instance.computes, instance.id, instance.uuid) = (1, 1, 5 + place as u32, Text::new(uuid));
            }
        };
        machine.with(cut).unwrap();
        assert_eq!(seen(Some("MIG-2"), "PCI_BUS_ID"), [(1, Some(1))]);
        assert_eq!(seen(Some("MIG-2,MIG-1"), "PCI_BUS_ID"), [(1, Some(1))]);
        assert_eq!(seen(Some("MIG-GPU-aa22/6/0"), "PCI_BUS_ID"), [(1, Some(1))]);
        assert_eq!(seen(Some("1"), "PCI_BUS_ID"), [(1, Some(0))]);
        assert_eq!(seen(Some("GPU-aa22"), "PCI_BUS_ID"), [(1, Some(0))]);
        machine.with(|state| state.gpus[2].lost = 1).unwrap();
        assert_eq!((seen(Some("GPU-bb33"), "PCI_BUS_ID"), seen(Some("2"), "PCI_BUS_ID")), (vec![], vec![]));
    }
}
