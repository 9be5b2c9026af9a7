//! Which GPUs a program sees, by `CUDA_VISIBLE_DEVICES` and `CUDA_DEVICE_ORDER`.

use crate::state::{Place, State};

/// The places a program sees, in its own order. `visible` and `order` are the values of the variables. Like CUDA, it stops at the first name that
/// is none, and lets a program use one instance at most.
pub fn visible(state: &State<'_>, visible: Option<&str>, order: Option<&str>) -> Vec<Place> {
    let mut gpus: Vec<usize> = (0..state.gpus.len()).filter(|gpu| state.gpus[*gpu].lost == 0).collect();
    if order != Some("PCI_BUS_ID") {
        // CUDA puts the fastest first unless told otherwise, which is why numbers are confused so easily.
        gpus.sort_by(|a, b| state.profile(*b).kind.bandwidth.total_cmp(&state.profile(*a).kind.bandwidth));
    }
    // By number a partitioned GPU stands for its first instance.
    let first = |gpu: usize| state.places().into_iter().find(|place| place.gpu == gpu);
    let Some(names) = visible else { return gpus.into_iter().filter_map(first).collect() };
    let find = |name: &str| {
        let name = name.trim();
        if let Ok(number) = name.parse::<usize>() {
            return first(*gpus.get(number)?);
        }
        let is_it = |place: &Place| {
            let gpu = &state.gpus[place.gpu];
            gpu.lost == 0
                && match place.instance {
                    Some(instance) => gpu.instances[instance].uuid.get() == name,
                    None => name.len() > 4 && gpu.uuid.get().starts_with(name),
                }
        };
        // The beginning of a UUID is enough, if it is that of one alone.
        let mut found = state.places().into_iter().filter(is_it);
        found.next().filter(|_| found.next().is_none())
    };
    let mut seen: Vec<Place> = Vec::new();
    for place in names.split(',').map_while(find) {
        // The same GPU twice is an error to CUDA: nothing is visible then.
        if seen.contains(&place) {
            return Vec::new();
        }
        seen.push(place);
    }
    match seen.iter().find(|place| place.instance.is_some()) {
        Some(instance) => vec![*instance],
        None => seen,
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
        // A program has one instance at most; by number, a partitioned GPU is its first.
        let cut = |state: &mut State<'_>| {
            state.gpus[1].mig = 1;
            for (place, uuid) in ["MIG-1", "MIG-2"].into_iter().enumerate() {
                let instance = &mut state.gpus[1].instances[place];
                (instance.used, instance.computes, instance.uuid) = (1, 1, Text::new(uuid));
            }
        };
        machine.with(cut).unwrap();
        assert_eq!(seen(Some("MIG-2"), "PCI_BUS_ID"), [(1, Some(1))]);
        assert_eq!(seen(Some("MIG-2,MIG-1"), "PCI_BUS_ID"), [(1, Some(1))]);
        assert_eq!(seen(Some("1"), "PCI_BUS_ID"), [(1, Some(0))]);
        machine.with(|state| state.gpus[2].lost = 1).unwrap();
        assert_eq!((seen(Some("GPU-bb33"), "PCI_BUS_ID"), seen(Some("2"), "PCI_BUS_ID")), (vec![], vec![]));
    }
}
