//! The workloads of the demo, as measured by others on an A100-40GB.

use carma_core::SharingClass;

/// A training job as it is when it has its GPUs alone.
///
/// Time, peak memory and counters are measurements published with AEGIS, the successor of the CARMA prototype.
#[derive(Debug)]
pub(super) struct Workload {
    pub(super) name: &'static str,
    pub(super) gpus: u32,
    /// Seconds from start to end.
    pub(super) alone: f64,
    /// Peak memory on each GPU, in MiB.
    pub(super) memory: &'static [u64],
    pub(super) smact: f64,
    pub(super) smocc: f64,
    pub(super) drama: f64,
}

impl Workload {
    /// How well it shares, by how busy it keeps a GPU.
    pub(super) fn sharing_class(&self) -> SharingClass {
        match self.smact {
            ..0.25 => SharingClass::Tiny,
            ..0.65 => SharingClass::Medium,
            _ => SharingClass::Jumbo,
        }
    }
}

macro_rules! workloads {
    ($($constant:ident: $name:literal, $gpus:literal, $alone:literal, $memory:expr, $smact:literal, $smocc:literal, $drama:literal;)*) => {
        $(pub(super) const $constant: Workload = Workload {
            name: $name, gpus: $gpus, alone: $alone, memory: &$memory, smact: $smact, smocc: $smocc, drama: $drama,
        };)*
    };
}

workloads! {
    BERT_BASE: "bert_base wiki bs32", 1, 923.45, [19_868], 0.8993, 0.2706, 0.1420;
    DLRM: "dlrm criteo bs32768", 1, 1471.7, [1_364], 0.1192, 0.0399, 0.0232;
    EFFICIENTNET_CIFAR: "efficientnet cifar100 bs64 50e", 1, 1374.02, [724], 0.1883, 0.1117, 0.0110;
    EFFICIENTNET: "efficientnet imagenet bs64", 1, 1699.31, [6_724], 0.5920, 0.3577, 0.3191;
    GPT2_LARGE: "gpt2_large wiki bs8", 2, 3981.23, [28_330, 16_458], 0.8418, 0.2687, 0.2139;
    LLAMA3: "llama3 8 layers wiki bs1", 1, 2359.07, [28_712], 0.2955, 0.1667, 0.6101;
    MOBILENET: "mobilenet imagenet bs64", 1, 1540.34, [6_164], 0.4972, 0.2610, 0.2807;
    MOBILENET_CIFAR: "mobilenet cifar100 bs64 50e", 1, 969.78, [602], 0.1185, 0.0622, 0.0031;
    RESNET18_CIFAR: "resnet18 cifar100 bs32 50e", 1, 1150.33, [790], 0.1743, 0.0636, 0.0497;
    RESNET34_CIFAR: "resnet34 cifar100 bs64 50e", 1, 1005.9, [1_018], 0.1745, 0.0696, 0.0541;
    RESNET50: "resnet50 imagenet bs64", 1, 1951.05, [7_118], 0.6855, 0.3475, 0.4709;
    UNET: "unet voc", 1, 1880.22, [5_636], 0.6363, 0.3177, 0.3676;
    XCEPTION: "xception imagenet bs128", 1, 2857.58, [21_004], 0.7932, 0.4719, 0.4208;
}
