//! `carma drain` and `carma resume`: GPUs out of use for new jobs, and back.

use std::io::Write;

use anyhow::Result;
use carma_core::{DeviceId, ServerId};
use clap::Args;

use super::ask::Manager;

#[derive(Debug, Args)]
#[command(after_help = "A GPU is its number, as `carma gpus` shows it, or its name in `carma why`, as in s0/gpu3 or s0/gpu3/mig1.")]
pub(crate) struct Arguments {
    /// The GPUs.
    #[arg(required = true, value_name = "GPU", value_parser = device)]
    gpus: Vec<DeviceId>,
    #[command(flatten)]
    manager: Manager,
}

pub(super) fn run(arguments: &Arguments, drained: bool, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    for gpu in &arguments.gpus {
        client.drain(*gpu, drained)?;
        writeln!(output, "{gpu} {}", if drained { "takes no new jobs" } else { "takes jobs again" })?;
    }
    Ok(())
}

fn device(text: &str) -> Result<DeviceId, String> {
    match text.parse() {
        Ok(ordinal) => Ok(DeviceId::gpu(ServerId(0), ordinal)),
        Err(_) => text.parse().map_err(|_| "give a number, or a name as in s0/gpu3 or s0/gpu3/mig1".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::device;

    #[test]
    fn a_gpu_is_a_number_or_a_name() {
        let name = |text: &str| device(text).map(|device| device.to_string());
        assert_eq!((name("3").unwrap().as_str(), name("s1/gpu0/mig2").unwrap().as_str()), ("s0/gpu3", "s1/gpu0/mig2"));
        assert!(["", "-1", "gpu3", "A100"].into_iter().all(|text| device(text).is_err()));
    }
}
