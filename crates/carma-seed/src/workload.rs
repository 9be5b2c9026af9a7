//! Workloads and users of the synthetic jobs.

use carma_manager::request::Owner;

/// Power of an idle GPU.
pub(crate) const IDLE_WATTS: f64 = 55.0;

/// A common kind of training. The figures are plausible, not measured.
#[derive(Debug)]
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    /// Memory on each GPU, in MiB.
    pub(crate) memory: u64,
    pub(crate) smact: f64,
    /// Power above that of an idle GPU, in watts.
    pub(crate) watts: f64,
}

pub(crate) const WORKLOADS: [Workload; 10] = [
    Workload { name: "resnet50", memory: 9_200, smact: 0.55, watts: 140.0 },
    Workload { name: "resnet18_cifar", memory: 1_900, smact: 0.21, watts: 60.0 },
    Workload { name: "bert_large", memory: 17_400, smact: 0.72, watts: 190.0 },
    Workload { name: "bert_base", memory: 7_800, smact: 0.58, watts: 150.0 },
    Workload { name: "vit_b16", memory: 14_300, smact: 0.66, watts: 175.0 },
    Workload { name: "gpt2_medium", memory: 21_500, smact: 0.81, watts: 215.0 },
    Workload { name: "unet_segmentation", memory: 11_600, smact: 0.49, watts: 130.0 },
    Workload { name: "dlrm_criteo", memory: 5_300, smact: 0.12, watts: 45.0 },
    Workload { name: "mobilenet_v3", memory: 2_700, smact: 0.27, watts: 70.0 },
    Workload { name: "whisper_finetune", memory: 26_800, smact: 0.61, watts: 170.0 },
];

const USERS: [&str; 6] = ["alice", "bob", "carol", "dan", "erin", "frank"];
/// Uids that hosts do not assign by themselves.
const FIRST_UID: u32 = 60_101;

/// The user of this index; users repeat.
pub(crate) fn user(place: usize) -> Owner {
    let place = place % USERS.len();
    let uid = FIRST_UID + place as u32;
    Owner { uid, gid: uid, name: USERS[place].to_owned() }
}
