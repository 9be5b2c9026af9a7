//! The available estimators, software stacks and GPUs.

use std::io::Write;

use anyhow::Result;
use carma_estimate::estimators::Estimator;
use carma_estimate::gpu::{Capability, Gpu};
use carma_estimate::stack::Stack;
use carma_format::{left, right, write_table};

pub(super) fn list(output: &mut impl Write) -> Result<()> {
    let estimators = Estimator::ALL.map(|estimator| [estimator.name().to_owned(), estimator.summary().to_owned()]);
    write_table([left("estimator", 22), left("what it uses", 80)], &estimators, output)?;
    writeln!(output)?;
    let stack = |stack: &Stack| {
        let evidence = format!("{:?}", stack.evidence).to_lowercase();
        [stack.name.clone(), format!("{:.0} MiB", stack.context), evidence, stack.description.clone()]
    };
    let columns = [left("stack", 30), right("context", 9), left("evidence", 11), left("what it is", 80)];
    write_table(columns, &Stack::built_in().iter().map(stack).collect::<Vec<_>>(), output)?;
    writeln!(output)?;
    let gpu = |gpu: &Gpu| {
        let Capability(major, minor) = gpu.capability;
        let size = format!("{} MiB{}", gpu.memory, if gpu.assumed { "*" } else { " " });
        [gpu.name.clone(), size, format!("{major}.{minor}"), if gpu.prefers_tensor_cores() { "tensor cores" } else { "plain" }.to_owned()]
    };
    let columns = [left("GPU", 20), right("memory", 12), right("capability", 10), left("FP32 convolutions", 20)];
    write_table(columns, &Gpu::known().iter().map(gpu).collect::<Vec<_>>(), output)?;
    writeln!(output, "* computed from the data sheet")?;
    Ok(())
}
