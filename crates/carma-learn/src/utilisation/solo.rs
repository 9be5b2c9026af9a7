//! Measurements of named workloads on an exclusive GPU, and the published summaries of their models.

use std::io::Read;

use carma_estimate::model::Model;
use carma_estimate::parse;
use carma_estimate::training::{Parallel, Training};
use serde::Deserialize;

use crate::data::DataError;

/// One workload on exclusive A100s, measured on one of its GPUs.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Solo {
    /// Model, data set and batch size in one word, such as `resnet50_imagenet_bs64`.
    pub workload: String,
    /// Number of GPUs.
    pub gpus: u64,
    /// Index of this GPU.
    pub gpu_rank: u64,
    /// Share of time that multiprocessors were active.
    pub smact: Option<f64>,
    /// Share of warp slots in use.
    pub smocc: Option<f64>,
    /// Share of time that memory was busy.
    pub drama: Option<f64>,
    /// Mean power.
    pub power_w: Option<f64>,
}

/// File names of the workloads' summaries; `#` is the batch size. The summary of mobilenet on CIFAR is a copy of another model's, so it is
/// omitted.
const SUMMARIES: [(&str, &str); 18] = [
    ("bert_base_wiki", "BERT_base"),
    ("bert_large_wiki", "BERT_large"),
    ("dlrm_criteo", "dlrm"),
    ("efficientnet_cifar100", "efficientNet_cifar100"),
    ("efficientnet_imagenet", "efficientnet_#"),
    ("gpt2_large_wiki", "gpt2_large"),
    ("gpt2_xl_wiki", "gpt2_xl"),
    ("inception_imagenet", "inceptionv3_#"),
    ("maskrcnn_coco", "maskrcnn"),
    ("mnist", "mnist_cnn_64"),
    ("mobilenet_imagenet", "mobilenet_#"),
    ("resnet18_cifar100", "resnet18_cifar100"),
    ("resnet34_cifar100", "resnet34_cifar100"),
    ("resnet50_imagenet", "resnet50_#"),
    ("unet_voc", "UNet"),
    ("vgg16_imagenet", "vgg_#"),
    ("xception_imagenet", "Xception_#"),
    ("xlnet_base_cased_wiki", "xlnet_base_cased"),
];

impl Solo {
    /// Reads a table with the columns `workload,gpus,gpu_rank,smact,smocc,drama,power_w` among others; cells may be empty.
    pub fn read(table: impl Read) -> Result<Vec<Self>, DataError> {
        let mut rows = Vec::new();
        for row in csv::Reader::from_reader(table).into_deserialize() {
            let row: Self = row?;
            let line = rows.len() as u64 + 2;
            let share = |value: Option<f64>| value.is_none_or(|value| (0.0..=1.0).contains(&value));
            if ![row.smact, row.smocc, row.drama].into_iter().all(share) {
                return Err(DataError::Row { line, problem: format!("a counter of {:?} is not from 0 to 1", row.workload) });
            }
            if row.power_w.is_some_and(|watts| !(0.0..=10_000.0).contains(&watts)) {
                return Err(DataError::Row { line, problem: format!("the power of {:?} is not from 0 to 10000 W", row.workload) });
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Batch size, from `_bs` in the name.
    pub fn batch(&self) -> Option<u64> {
        let digits = self.workload.split_once("_bs")?.1;
        let end = digits.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(digits.len());
        digits[..end].parse().ok().filter(|batch| (1..=1 << 24).contains(batch))
    }

    /// Model type: `resnet` for all its sizes.
    pub fn family(&self) -> &str {
        let end = self.workload.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(self.workload.len());
        &self.workload[..end]
    }

    /// Name of the published summary of its model, if there is one.
    pub fn summary(&self) -> Option<String> {
        let name = self.workload.split_once("_bs").map_or(self.workload.as_str(), |(name, _)| name);
        let (_, file) = SUMMARIES.iter().find(|(workload, _)| *workload == name)?;
        let batch = self.batch().unwrap_or(0).to_string();
        Some(format!("{}.model", file.replace('#', &batch)))
    }

    /// Its training, as far as the name states it. In some jobs the second GPU is idle: `busy` is the number of active GPUs.
    fn training(&self, stated: Option<u64>, busy: u64) -> Training {
        let parallel = if busy > 1 { Parallel::DataParallel { gpus: busy } } else { Parallel::Single };
        Training { batch: self.batch().or(stated).unwrap_or(1), parallel, ..Training::default() }
    }
}

/// A workload with its layers.
#[derive(Debug, Clone, PartialEq)]
pub struct SoloRun {
    /// Measurements on its first GPU.
    pub measured: Solo,
    /// The model.
    pub model: Model,
    /// The training.
    pub training: Training,
}

/// Workloads with a readable summary and recorded counters, the first GPU of each. `summary` returns the content of a file.
pub fn runs(rows: &[Solo], summary: impl Fn(&str) -> Option<Vec<u8>>) -> Vec<SoloRun> {
    let first = |row: &&Solo| row.gpu_rank == 0 && row.smact.is_some();
    let run = |row: &Solo| {
        let same = rows.iter().filter(|other| other.workload == row.workload);
        let busy = same.filter(|other| other.smact.is_some_and(|smact| smact > 0.0)).count() as u64;
        let training = row.training(None, busy);
        let description = parse::read(&summary(&row.summary()?)?, None, &training).ok()?;
        let training = row.training(description.hints.batch, busy);
        Some(SoloRun { measured: row.clone(), model: description.model, training })
    };
    rows.iter().filter(first).filter_map(run).collect()
}
