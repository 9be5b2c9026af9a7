//! The state of each GPU in plain text: a fact per line, to be read aloud.

use std::io::{self, Write};

use carma_core::{Fraction, Metric, MiB, Utilisation, Watts};
use carma_format::{count, memory, printable, write_facts};
use carma_manager::api::GpuDetail;

use super::report::{DeviceReport, GpuReport, PartReport, ProcessReport, Report, drained, silent};
use super::table::{measured, owner, reservation, throttled};

/// A label and a value; an empty value is not written.
type Fact = (&'static str, String);

/// Writes the GPUs of this machine, then those of other servers.
pub(super) fn write(report: &Report, output: &mut impl Write) -> io::Result<()> {
    writeln!(output, "{}", count(report.gpus.len() + report.remote.len(), "GPU"))?;
    for gpu in &report.gpus {
        local(gpu, output)?;
    }
    for left_out in &report.left_out {
        let name = format!("GPU {}: {}", left_out.index, left_out.name.as_deref().unwrap_or_default());
        write_facts(&name, [("not used", left_out.reason.to_string())], output)?;
    }
    managed(&report.remote, output)
}

fn local(GpuReport { gpu, state, parts, jobs, notes, .. }: &GpuReport, output: &mut impl Write) -> io::Result<()> {
    let mut facts = vec![("problem", state.problem.clone().unwrap_or_default())];
    facts.extend(device(state, gpu.memory));
    facts.extend([power(state.power, gpu.power_limit), temperature(state.temperature)]);
    facts.extend(state.processes.iter().filter(|_| parts.is_empty()).map(process));
    facts.extend(jobs.iter().map(|tenant| ("job", reservation(tenant))));
    facts.extend(notes.iter().map(|note| ("note", note.clone())));
    write_facts(&format!("GPU {}: {}", gpu.index, gpu.name), facts, output)?;
    for PartReport { part, state } in parts {
        let facts = device(state, part.memory).into_iter().chain(state.processes.iter().map(process));
        write_facts(&format!("MIG instance {} of GPU {}: {}", part.gpu_instance, gpu.index, part.profile), facts, output)?;
    }
    Ok(())
}

/// Writes GPUs as the manager knows them.
pub(super) fn managed(gpus: &[GpuDetail], output: &mut impl Write) -> io::Result<()> {
    for gpu in gpus {
        let mut facts = vec![("server", gpu.node.clone().unwrap_or_default())];
        facts.extend(numbers(gpu.memory_used, gpu.memory, gpu.utilisation[Metric::Utilisation], &gpu.utilisation));
        facts.extend([("memory reserved", memory(gpu.reserved)), power(gpu.power, None), temperature(gpu.temperature)]);
        facts.extend(gpu.tenants.iter().map(|tenant| {
            let used = tenant.memory.map_or_else(String::new, |used| format!(", {} in use", memory(used)));
            ("job", format!("{}{used}", reservation(tenant)))
        }));
        facts.extend((gpu.foreign > 0).then(|| ("processes of others", gpu.foreign.to_string())));
        let notes = [gpu.lost.then(|| "the driver lost it".to_owned()), silent(gpu), drained(gpu), throttled(&gpu.throttling)];
        facts.extend(notes.into_iter().flatten().map(|note| ("note", note)));
        write_facts(&format!("GPU {}: {}", gpu.device, gpu.name), facts, output)?;
    }
    Ok(())
}

fn device(state: &DeviceReport, total: MiB) -> Vec<Fact> {
    numbers(state.memory_used, total, state.utilisation, &measured(state))
}

fn numbers(used: Option<MiB>, total: MiB, busy: Option<Fraction>, measured: &Utilisation) -> Vec<Fact> {
    let used = used.map_or_else(|| "unknown".to_owned(), memory);
    let busy = busy.map_or_else(String::new, |share| format!("{:.0} %", share.get() * 100.0));
    let mut facts = vec![("memory in use", format!("{used} of {}", memory(total))), ("utilisation", busy)];
    let metrics = Metric::shown(|metric| measured[metric].is_some());
    facts.extend(metrics.filter_map(|metric| Some((metric.name(), format!("{:.2}", measured[metric]?.get())))));
    facts
}

fn power(drawn: Option<Watts>, limit: Option<Watts>) -> Fact {
    let limit = limit.map_or_else(String::new, |Watts(limit)| format!(" of {limit:.0} W"));
    ("power", drawn.map_or_else(String::new, |Watts(drawn)| format!("{drawn:.0} W{limit}")))
}

fn temperature(degrees: Option<u32>) -> Fact {
    ("temperature", degrees.map_or_else(String::new, |degrees| format!("{degrees} degrees Celsius")))
}

fn process(process: &ProcessReport) -> Fact {
    let size = process.memory.map_or_else(|| "memory unknown".to_owned(), memory);
    ("process", printable(&format!("{}, {size}, {}", process.pid, owner(process, ", "))))
}
