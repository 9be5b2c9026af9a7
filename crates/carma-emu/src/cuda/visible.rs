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
        state.places().into_iter().find(|place| {
            let gpu = &state.gpus[place.gpu];
            gpu.lost == 0
                && match place.instance {
                    Some(instance) => gpu.instances[instance].uuid.get() == name,
                    None => name.len() > 4 && gpu.uuid.get().starts_with(name),
                }
        })
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
