//! The trace of the demo: light, medium and heavy jobs, and one whose estimate is far too low.

use super::workload::{
    BERT_BASE, DLRM, EFFICIENTNET, EFFICIENTNET_CIFAR, GPT2_LARGE, LLAMA3, MOBILENET, MOBILENET_CIFAR, RESNET18_CIFAR, RESNET34_CIFAR,
    RESNET50, UNET, Workload, XCEPTION,
};

/// A submission.
#[derive(Debug)]
pub(super) struct Arrival {
    /// When, in seconds.
    pub(super) at: u32,
    /// What.
    pub(super) workload: Workload,
    /// What the estimator says of its memory, as a share of the truth.
    pub(super) estimate: f64,
}

const fn arrival(at: u32, workload: Workload) -> Arrival {
    Arrival { at, workload, estimate: 1.05 }
}

/// The afternoon of a lab, in order.
pub(super) const TRACE: [Arrival; 24] = [
    arrival(0, RESNET50),
    arrival(20, RESNET18_CIFAR),
    arrival(45, XCEPTION),
    arrival(60, EFFICIENTNET),
    arrival(90, MOBILENET_CIFAR),
    arrival(150, DLRM),
    arrival(210, UNET),
    arrival(240, RESNET34_CIFAR),
    arrival(420, EFFICIENTNET_CIFAR),
    arrival(600, GPT2_LARGE),
    arrival(640, MOBILENET),
    arrival(700, RESNET18_CIFAR),
    arrival(900, BERT_BASE),
    arrival(960, MOBILENET_CIFAR),
    arrival(1200, RESNET50),
    arrival(1260, DLRM),
    // Its need is underestimated by far: it runs out of memory and comes back.
    Arrival { estimate: 0.2, ..arrival(1300, LLAMA3) },
    arrival(1500, EFFICIENTNET),
    arrival(1530, RESNET34_CIFAR),
    arrival(1800, MOBILENET),
    arrival(2400, UNET),
    arrival(2430, EFFICIENTNET_CIFAR),
    arrival(3000, BERT_BASE),
    arrival(3600, RESNET18_CIFAR),
];
