//! Allocations over many environments: the variables, the accessible device files, and the result.

use super::*;
use crate::Inventory;

/// `aa00` to `aa03`; these cannot be opened.
fn four(refused: &[usize]) -> Vec<Listed> {
    let listed = |gpu: usize| Listed {
        gpu: NamedGpu { uuid: Some(format!("GPU-aa0{gpu}").parse().unwrap()), instances: Vec::new() },
        file: if refused.contains(&gpu) { FileAccess::Refused } else { FileAccess::Granted },
    };
    (0..4).map(listed).collect()
}

/// The same, with the first GPU partitioned into three instances.
fn cut() -> Vec<Listed> {
    let mut listed = four(&[]);
    let instance = |number| NamedInstance { uuid: format!("MIG-{number}").parse().unwrap(), gpu_instance: number, compute_instance: 0 };
    listed[0].gpu.instances = [1, 2, 5].map(instance).to_vec();
    listed
}

fn allocation(variables: &[(&str, &str)]) -> Allocation {
    Allocation::from_variables(|name| variables.iter().find(|(other, _)| *other == name).map(|(_, value)| (*value).to_owned()))
}

/// One letter per GPU: all of it, instances of it, or why not: cannot be opened, not in the Slurm job or step, not visible.
fn letters(grants: &[Grant]) -> String {
    let letter = |grant: &Grant| match grant {
        Grant::Whole => 'W',
        Grant::Instances(_) => 'I',
        Grant::Excluded(Exclusion::CannotBeOpened) => 'o',
        Grant::Excluded(Exclusion::NotInSlurmJob) => 'j',
        Grant::Excluded(Exclusion::NotInSlurmStep) => 's',
        Grant::Excluded(Exclusion::NotVisible) => 'v',
    };
    grants.iter().map(letter).collect()
}

/// In the order: `CUDA_VISIBLE_DEVICES`, `SLURM_JOB_GPUS`, `SLURM_STEP_GPUS`; `-`: it is not set. With one of the last two, there is a Slurm job.
fn environment(values: &str) -> Vec<(&'static str, &str)> {
    let values: Vec<&str> = values.split(' ').collect();
    let [visible, job, step] = values[..] else { panic!("{values:?}") };
    let mut variables = vec![("CUDA_VISIBLE_DEVICES", visible), ("SLURM_JOB_GPUS", job), ("SLURM_STEP_GPUS", step)];
    variables.retain(|(_, value)| *value != "-");
    let in_job = variables.iter().any(|(name, _)| name.starts_with("SLURM"));
    variables.extend(in_job.then_some(("SLURM_JOB_ID", "7")));
    variables
}

#[test]
fn the_environment_and_the_device_files_define_the_allocation() {
    let cases: [(&str, &[usize], &str); 27] = [
        // Nothing is set.
        ("- - -", &[], "WWWW"),
        // Only CUDA.
        ("0,1 - -", &[], "WWvv"),
        ("3 - -", &[], "vvvW"),
        ("2,9,0 - -", &[], "vvWv"),
        (" - -", &[], "vvvv"),
        ("-1 - -", &[], "vvvv"),
        ("NoDevFiles - -", &[], "vvvv"),
        ("1,1 - -", &[], "vvvv"),
        ("GPU-aa02,GPU-aa00 - -", &[], "WvWv"),
        ("GPU-aa0 - -", &[], "vvvv"),
        // CUDA counts the GPUs that it can open.
        ("- - -", &[1], "WoWW"),
        ("0,1 - -", &[0, 1], "ooWW"),
        ("0,1 - -", &[1], "WoWv"),
        ("GPU-aa01,GPU-aa02 - -", &[1], "vovv"),
        // Slurm without device cgroups.
        ("- 1,2 -", &[], "jWWj"),
        ("1,2 1,2 -", &[], "jWWj"),
        ("1 1,2 -", &[], "jWvj"),
        ("0,1,2,3 1,2 -", &[], "jWWj"),
        ("GPU-aa02 1,2 -", &[], "jvWj"),
        ("-  -", &[], "jjjj"),
        ("- 5 -", &[], "jjjj"),
        ("- 0,1,2,3 -", &[], "WWWW"),
        // With them every job counts from 0, whether or not the others' files are refused.
        ("0,1 2,3 -", &[0, 1], "ooWW"),
        ("- 2,3 -", &[0, 1], "ooWW"),
        ("0,1 2,3 -", &[], "jjWW"),
        // A step has some of the job's GPUs.
        ("- 1,2 2", &[], "ssWs"),
        ("2 1,2 2", &[], "ssWs"),
    ];
    for (values, refused, expected) in cases {
        assert_eq!(letters(&allocation(&environment(values)).grants(&four(refused))), expected, "{values:?}, refused: {refused:?}");
    }
}

#[test]
fn slurm_lists_count_only_inside_slurm_jobs() {
    for id in [None, Some(""), Some(" ")] {
        let mut variables = vec![("SLURM_JOB_GPUS", "1"), ("SLURM_STEP_GPUS", "1")];
        variables.extend(id.map(|id| ("SLURM_JOB_ID", id)));
        assert_eq!(letters(&allocation(&variables).grants(&four(&[]))), "WWWW", "{id:?}");
    }
}

#[test]
fn nvml_numbers_differ_from_slurm_numbers_if_gpus_are_hidden() {
    // NVML lists two GPUs as 0 and 1, which are 2 and 3 of the node.
    let seen = &four(&[])[2..];
    for values in ["0,1 2,3 -", "- 2,3 -", "GPU-aa02,GPU-aa03 2,3 -", "0,1 0,3 2,3"] {
        assert_eq!(letters(&allocation(&environment(values)).grants(seen)), "WW", "{values:?}");
    }
}

#[test]
fn an_inherited_list_excludes_nothing() {
    // A step on a second node has the job's list of the first; a job that was submitted inside a step has that step's list.
    for values in ["2,3 0,1 2,3", "2,3 2,3 0"] {
        assert_eq!(letters(&allocation(&environment(values)).grants(&four(&[]))), "vvWW", "{values:?}");
    }
    assert_eq!(letters(&allocation(&environment("- 0,1 2,3")).grants(&four(&[]))), "ssWW", "nothing else says which");
}

#[test]
fn instances_are_granted_one_by_one_and_gpus_with_all_of_theirs() {
    let granted = |values: &str| allocation(&environment(values)).grants(&cut());
    let instances = |names: &[&str]| Grant::Instances(names.iter().map(|name| name.parse().unwrap()).collect());
    assert_eq!(granted("MIG-5,MIG-1 - -")[0], instances(&["MIG-5", "MIG-1"]));
    assert_eq!(granted("MIG-GPU-aa00/2/0 - -")[0], instances(&["MIG-2"]));
    assert_eq!(letters(&granted("MIG-5 - -")), "Ivvv");
    assert_eq!(letters(&granted("0 - -")), "Wvvv");
    assert_eq!(letters(&granted("GPU-aa00 - -")), "Wvvv");
    // Slurm's numbers count instances along with GPUs: only UUIDs are unambiguous.
    assert_eq!(letters(&granted("MIG-2 1 -")), "Ivvv");
    assert_eq!(letters(&granted("- 1 -")), "jjjj");
}

#[test]
fn ambiguous_lists_give_a_warning() {
    use crate::left_out::{LeftOut, Unfit};
    let left_out = |name: &str| LeftOut { index: 0, uuid: None, name: Some(name.to_owned()), reason: Unfit::DisplayOnly };
    let inventory = |names: &[&str]| Inventory {
        driver: String::new(),
        cuda: String::new(),
        gpus: Vec::new(),
        left_out: names.iter().copied().map(left_out).collect(),
    };
    let warned = |variables: &[(&str, &str)], names: &[&str]| !allocation(variables).warnings(&inventory(names)).is_empty();
    let visible = ("CUDA_VISIBLE_DEVICES", "0,1");
    assert!(warned(&[visible], &["A100", "T4"]));
    assert!(warned(&[visible, ("CUDA_DEVICE_ORDER", "FASTEST_FIRST")], &["A100", "T4"]));
    assert!(!warned(&[visible], &["A100", "A100"]), "in one order like in the other");
    assert!(!warned(&[visible, ("CUDA_DEVICE_ORDER", "PCI_BUS_ID")], &["A100", "T4"]));
    assert!(!warned(&[("CUDA_VISIBLE_DEVICES", "GPU-1")], &["A100", "T4"]));
    assert!(!warned(&[("SLURM_JOB_ID", "1")], &["A100"]), "no GPU is used");
}
