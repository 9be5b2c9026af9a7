//! Flags for the training and the hardware of a model.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use carma_estimate::allocator::AllocatorSettings;
use carma_estimate::confidence::DEFAULT_CONFIDENCE;
use carma_estimate::gpu::{Capability, Gpu};
use carma_estimate::parse::Hints;
use carma_estimate::stack::Stack;
use carma_estimate::training::{Optimizer, Parallel, Precision, Training};
use clap::Args;

use crate::units::bytes;

/// How it is trained: flags win over what the description says.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Training")]
pub(crate) struct TrainingArguments {
    /// Batch size of one process
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    pub(crate) batch: Option<u64>,
    /// Tokens per sample
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 32))]
    sequence: Option<u64>,
    /// Shape of one sample, such as 3x224x224
    #[arg(long, value_parser = shape)]
    input: Option<Shape>,
    /// none, sgd, momentum, adam, adamw, fused-adam, adam8bit, rmsprop, adagrad,
    /// adafactor or lion [default: adam]
    #[arg(long, value_parser = optimizer)]
    optimizer: Option<Optimizer>,
    /// The optimizer adds weight decay to the gradients
    #[arg(long)]
    weight_decay: bool,
    /// float32, mixed (automatic mixed precision) or half [default: float32]
    #[arg(long, value_parser = precision)]
    precision: Option<Precision>,
    /// Gradient checkpointing: activations are recomputed in the backward pass
    #[arg(long)]
    checkpointing: bool,
    /// Elementwise operators are fused (torch.compile)
    #[arg(long)]
    fusion: bool,
    /// single, data-parallel:N, distributed:N, zero1:N, zero2:N or zero3:N
    #[arg(long, value_parser = parallel, default_value = "single", hide_default_value = true)]
    parallel: Parallel,
    /// Train only low-rank adapters (`LoRA`) of this rank
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 20))]
    adapters: Option<u64>,
    /// Batch size of a forward pass before training (torchsummary on the GPU: 2)
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..1 << 40))]
    rehearsal: Option<u64>,
}

#[derive(Debug, Clone)]
struct Shape(Vec<u64>);

impl TrainingArguments {
    /// The training: flags first, then the description, then defaults.
    pub(crate) fn training(&self, hints: &Hints) -> Training {
        let gpus = hints.gpus.filter(|&gpus| gpus > 1).map(|gpus| Parallel::DataParallel { gpus });
        Training {
            batch: self.batch.or(hints.batch).unwrap_or(1),
            sequence: self.sequence.or(hints.sequence),
            input: self.input.as_ref().map(|Shape(sides)| sides.clone()),
            optimizer: self.optimizer.or(hints.optimizer).unwrap_or(Optimizer::Adam),
            weight_decay: self.weight_decay,
            precision: self.precision.or(hints.precision).unwrap_or(Precision::Float32),
            checkpointing: self.checkpointing || hints.checkpointing.unwrap_or(false),
            fusion: self.fusion || hints.fusion.unwrap_or(false),
            parallel: if self.parallel == Parallel::Single { gpus.unwrap_or(Parallel::Single) } else { self.parallel },
            rehearsal: self.rehearsal,
            adapters: self.adapters,
        }
    }
}

/// The GPU, and the confidence of the upper bound.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Machine")]
pub(crate) struct MachineArguments {
    /// Software stack: a name (see `carma estimator list`), or a file written by `carma estimator calibrate`
    #[arg(long)]
    stack: Option<String>,
    /// Value of `PYTORCH_CUDA_ALLOC_CONF`
    #[arg(long, default_value = "", hide_default_value = true)]
    allocator: String,
    /// The GPU, such as RTX4060 or A100-40GB; sets memory, CUDA context and convolution kernels (see `carma estimator list`)
    #[arg(long, value_parser = gpu)]
    gpu: Option<Gpu>,
    /// Compute capability of a GPU that is not in the list, such as 8.6
    #[arg(long, value_name = "MAJOR.MINOR", value_parser = capability, conflicts_with = "gpu", requires = "gpu_memory")]
    compute_capability: Option<Capability>,
    /// Memory of the GPU, such as 40GiB or 40536MiB [default: unlimited]
    #[arg(long, value_parser = bytes)]
    gpu_memory: Option<u64>,
    /// Confidence of the upper bound
    #[arg(long, default_value_t = DEFAULT_CONFIDENCE, value_parser = share)]
    pub(crate) confidence: f64,
}

impl MachineArguments {
    /// The stack on the named GPU.
    pub(crate) fn stack(&self, hints: &Hints) -> Result<Stack> {
        let stack = self.stack_on_any(hints)?;
        let unlisted = self.compute_capability.map(|capability| Gpu::unlisted(capability, self.gpu_memory.unwrap_or(0)));
        Ok(self.gpu.as_ref().or(unlisted.as_ref()).map_or_else(|| stack.clone(), |gpu| stack.on(gpu)))
    }

    /// The stack: by flag, by the description, or the default.
    pub(crate) fn stack_on_any(&self, hints: &Hints) -> Result<Stack> {
        let Some(name) = self.stack.as_ref().or(hints.stack.as_ref()) else { return default_stack() };
        if let Some(stack) = Stack::named(name) {
            return Ok(stack.clone());
        }
        let file = Path::new(name);
        if !file.exists() {
            let known: Vec<&str> = Stack::built_in().iter().map(|stack| stack.name.as_str()).collect();
            bail!("there is no stack `{name}`: give a file or one of {}", known.join(", "));
        }
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        let stacks = Stack::read(&text).with_context(|| format!("{} cannot be used", file.display()))?;
        stacks.into_iter().next().with_context(|| format!("{} holds no stack", file.display()))
    }

    pub(crate) fn allocator(&self) -> Result<AllocatorSettings> {
        AllocatorSettings::parse(&self.allocator).context("--allocator")
    }

    /// Bytes of the GPU.
    pub(crate) fn gpu(&self) -> Option<u64> {
        self.gpu_memory.or_else(|| self.gpu.as_ref().map(Gpu::bytes))
    }
}

fn default_stack() -> Result<Stack> {
    Stack::built_in().first().cloned().context("no stack is built in")
}

/// A GPU by name.
pub(crate) fn gpu(word: &str) -> Result<Gpu, String> {
    let known = || Gpu::known().iter().map(|gpu| gpu.name.as_str()).collect::<Vec<_>>().join(", ");
    Gpu::named(word).cloned().ok_or_else(|| format!("known are {}; for others use --compute-capability and --gpu-memory", known()))
}

fn capability(word: &str) -> Result<Capability, String> {
    let parts = word.split_once('.').and_then(|(major, minor)| Some(Capability(major.parse().ok()?, minor.parse().ok()?)));
    parts.filter(|Capability(major, _)| (3..=20).contains(major)).ok_or_else(|| "write major and minor, such as 8.6".to_owned())
}

fn named<T: serde::de::DeserializeOwned>(word: &str, known: &str) -> Result<T, String> {
    serde_json::from_value(serde_json::Value::from(word)).map_err(|_| format!("known are {known}"))
}

fn optimizer(word: &str) -> Result<Optimizer, String> {
    match word {
        "adamw" => Ok(Optimizer::AdamW),
        "adam8bit" => Ok(Optimizer::Adam8bit),
        "rmsprop" => Ok(Optimizer::RmsProp),
        other => named(other, "none, sgd, momentum, adam, adamw, fused-adam, adam8bit, rmsprop, adagrad, adafactor, lion"),
    }
}

fn precision(word: &str) -> Result<Precision, String> {
    match word {
        "amp" => Ok(Precision::Mixed),
        "fp32" => Ok(Precision::Float32),
        "fp16" | "bf16" | "float16" | "bfloat16" => Ok(Precision::Half),
        other => named(other, "float32, mixed, half"),
    }
}

fn parallel(word: &str) -> Result<Parallel, String> {
    if word == "single" {
        return Ok(Parallel::Single);
    }
    let (way, gpus) = word.split_once(':').ok_or("write the way and the GPUs, such as zero2:4")?;
    let gpus = gpus.parse().ok().filter(|gpus| (1..=1 << 20).contains(gpus)).ok_or_else(|| format!("`{gpus}` is not a number of GPUs"))?;
    match way {
        "data-parallel" => Ok(Parallel::DataParallel { gpus }),
        "distributed" | "ddp" => Ok(Parallel::Distributed { gpus }),
        "zero1" => Ok(Parallel::Zero { stage: 1, gpus }),
        "zero2" => Ok(Parallel::Zero { stage: 2, gpus }),
        "zero3" => Ok(Parallel::Zero { stage: 3, gpus }),
        _ => Err("known are single, data-parallel:N, distributed:N, zero1:N, zero2:N, zero3:N".to_owned()),
    }
}

fn shape(word: &str) -> Result<Shape, String> {
    let sides: Result<Vec<u64>, _> = word.split(['x', ',']).map(|side| side.trim().parse::<u64>()).collect();
    match sides {
        Ok(sides) if sides.len() <= 8 && sides.iter().all(|&side| side > 0) => Ok(Shape(sides)),
        _ => Err("write the sides, such as 3x224x224".to_owned()),
    }
}

fn share(word: &str) -> Result<f64, String> {
    let share = word.parse::<f64>().ok().filter(|share| (0.5..1.0).contains(share));
    share.ok_or_else(|| "must be at least 0.5 and below 1".to_owned())
}
