//! Inventories of a process that was given some of a machine's GPUs.

use std::time::Duration;

use carma_emu::fault::{CallAnswer, Fault};
use carma_gpu::{Allocation, DEADLINE, Driver, Exclusion, FileAccess, Inventory, Limits, Unfit};

use crate::support::Emulated;

const SHORT: Duration = Duration::from_millis(300);

fn everything(_: u32) -> FileAccess {
    FileAccess::Granted
}

/// As a device cgroup with the last two GPUs does.
fn last_two(minor: u32) -> FileAccess {
    if minor < 2 { FileAccess::Refused } else { FileAccess::Granted }
}

fn inventory(emulated: &Emulated, variables: &[(&str, &str)], file_access: fn(u32) -> FileAccess) -> Inventory {
    let variable = |name: &str| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned());
    let limits = Limits { allocation: Allocation::from_variables(variable), file_access };
    Driver::open(Some(&emulated.machine.library()), SHORT).unwrap().limited(limits).inventory().unwrap()
}

fn used(inventory: &Inventory) -> Vec<u32> {
    inventory.gpus.iter().map(|gpu| gpu.index).collect()
}

#[test]
fn gpus_outside_the_allocation_are_excluded_with_the_reason() {
    let emulated = Emulated::new("4xA100-40GB");
    let all = inventory(&emulated, &[], everything);
    assert_eq!((used(&all), all.left_out.len()), (vec![0, 1, 2, 3], 0));
    let visible = inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", "3,1")], everything);
    assert_eq!(
        (used(&visible), visible.exclusions()),
        (vec![1, 3], vec!["GPUs 0 and 2 are not used: not in CUDA_VISIBLE_DEVICES".to_owned()])
    );
    assert_eq!(visible.left_out[1].uuid.as_ref(), Some(&all.gpus[2].uuid));
    let slurm = [("SLURM_JOB_ID", "5"), ("SLURM_JOB_GPUS", "0,1,2")];
    assert_eq!(inventory(&emulated, &slurm, everything).exclusions(), ["GPU 3 is not used: not in this Slurm job (SLURM_JOB_GPUS)"]);
}

#[test]
fn gpus_that_cannot_be_opened_are_excluded() {
    let emulated = Emulated::new("4xA100-40GB");
    let constrained = [("SLURM_JOB_ID", "5"), ("SLURM_JOB_GPUS", "2,3"), ("CUDA_VISIBLE_DEVICES", "0,1")];
    for variables in [&constrained[..], &[]] {
        let inventory = inventory(&emulated, variables, last_two);
        assert_eq!(used(&inventory), [2, 3], "{variables:?}");
        assert_eq!(inventory.exclusions(), ["GPUs 0 and 1 are not used: cannot be opened: permission denied"]);
        assert!(inventory.left_out[0].uuid.is_some() && inventory.left_out[0].name.is_some());
    }
    // The driver may refuse by itself.
    let answer = CallAnswer::Fails("NO_PERMISSION".parse().unwrap());
    let fault = Fault::Call { gpu: Some(0), call: None, answer };
    emulated.with(|state| fault.inject(state)).unwrap();
    let inventory = inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", "0")], everything);
    assert_eq!((used(&inventory), &inventory.left_out[0].reason), (vec![1], &Unfit::Excluded(Exclusion::CannotBeOpened)));
}

#[test]
fn a_gpu_that_is_lost_or_hangs_leaves_the_others_their_numbers_and_names() {
    let emulated = Emulated::new("4xA100-40GB");
    let uuids: Vec<String> = emulated.with(|state| state.gpus.iter().map(|gpu| gpu.uuid.get().to_owned()).collect());
    emulated.with(|state| state.gpus[1].lost = 1);
    assert_eq!(used(&inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", "1,2")], everything)), [2]);
    assert_eq!(used(&inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", &uuids[1..3].join(","))], everything)), [2]);
    emulated.with(|state| Fault::Call { gpu: Some(0), call: None, answer: CallAnswer::Hangs }.inject(state)).unwrap();
    assert_eq!(used(&inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", "0,1,2")], everything)), [2]);
}

#[test]
fn some_instances_of_a_gpu_can_be_allocated() {
    let emulated = Emulated::new("2xA100-40GB");
    emulated.partition(0, &["3g.20gb", "2g.10gb", "1g.5gb"]);
    let driver = Driver::open(Some(&emulated.machine.library()), DEADLINE).unwrap();
    let gpu = driver.inventory().unwrap().gpus.remove(0);
    let instances = carma_gpu::mig::list(&driver, &gpu.uuid).unwrap().instances;
    let second = instances[1].compute[0].uuid.clone();
    let older = format!("MIG-{}/{}/0", gpu.uuid, instances[1].gpu_instance);
    for name in [second.as_str(), &older] {
        let inventory = inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", name)], everything);
        assert_eq!(used(&inventory), [0]);
        assert_eq!(inventory.gpus[0].usable_instances.as_deref(), Some(std::slice::from_ref(&second)), "{name}");
        let words = [
            "GPU 1 is not used: not in CUDA_VISIBLE_DEVICES",
            "GPU 0 is used in part: its other MIG instances are not in CUDA_VISIBLE_DEVICES",
        ];
        assert_eq!(inventory.exclusions(), words);
    }
    let whole = inventory(&emulated, &[("CUDA_VISIBLE_DEVICES", "0")], everything);
    assert_eq!(whole.gpus[0].usable_instances, None);
}
