//! The state of each GPU as a table for people: at most 80 columns; in plain text, a fact per line.

use std::collections::BTreeSet;
use std::io::{self, Write};

use carma_core::{Fraction, Metric, MiB, Utilisation};
use carma_gpu::Throttling;
use carma_gpu::profiling::{Counters, Source};
use carma_manager::api::{GpuDetail, GpuTenant};
use carma_manager::store::label;

use super::report::{DeviceReport, GpuReport, PartReport, ProcessReport, Report};
use super::{plain, remote_table};
use carma_format::{Terminal, WIDTH, fitted, printable, shortened};

/// The widths of the name and of a metric.
const NAME: usize = 16;
const METRIC: usize = 5;

/// Writes the table, and the sources of its numbers below.
pub(crate) fn write(report: &Report, output: &mut impl Write) -> io::Result<()> {
    let plain = Terminal::current().plain;
    if plain {
        plain::write(report, output)?;
        writeln!(output)?;
    } else if report.driver.is_some() {
        write_local(report, output)?;
    }
    if report.driver.is_some() {
        write_sources(report, output)?;
    }
    if plain { Ok(()) } else { remote_table::write(&report.remote, output) }
}

/// Writes GPUs as a manager knows them.
pub(crate) fn write_managed(gpus: &[GpuDetail], output: &mut impl Write) -> io::Result<()> {
    if Terminal::current().plain { plain::managed(gpus, output) } else { remote_table::write(gpus, output) }
}

fn write_local(report: &Report, output: &mut impl Write) -> io::Result<()> {
    let columns = Columns::of(&measured_by(&report.gpus));
    columns.write_heads(output)?;
    for gpu in &report.gpus {
        write_gpu(gpu, &columns, output)?;
    }
    for left_out in &report.left_out {
        let name = left_out.name.as_deref().map_or("", short);
        let line = format!("{:>3}  {:<16}  not used: {}", left_out.index, shortened(name, 16), left_out.reason);
        writeln!(output, "{}", fitted(&line))?;
    }
    Ok(())
}

fn write_sources(report: &Report, output: &mut impl Write) -> io::Result<()> {
    let world = report.emulated.as_ref().map_or(String::new(), |folder| format!(", emulated in {folder}"));
    let [driver, cuda] = [&report.driver, &report.cuda].map(|version| version.as_deref().unwrap_or("?"));
    writeln!(output, "driver {driver}, CUDA {cuda}{world}")?;
    writeln!(output, "{}", if report.waited { sources(&report.gpus) } else { "counters were not waited for".to_owned() })
}

fn write_gpu(gpu: &GpuReport, columns: &Columns, output: &mut impl Write) -> io::Result<()> {
    let name = short(&gpu.gpu.name);
    if let Some(problem) = &gpu.state.problem {
        writeln!(output, "{:>3}  {:<16}  {}", gpu.gpu.index, shortened(name, 16), shortened(problem, WIDTH - 23))?;
        return write_notes(gpu, output);
    }
    let power = |watts: Option<carma_core::Watts>| watts.map_or_else(|| "-".to_owned(), |watts| format!("{:.0}", watts.0));
    writeln!(
        output,
        "{:>3}  {:<width$}  {}  {:>9}  {:>3}",
        gpu.gpu.index,
        shortened(name, columns.name),
        columns.numbers(&gpu.state, gpu.gpu.memory),
        format!("{} / {}", power(gpu.state.power), power(gpu.gpu.power_limit)),
        gpu.state.temperature.map_or_else(|| "-".to_owned(), |degrees| degrees.to_string()),
        width = columns.name,
    )?;
    for PartReport { part, state } in &gpu.parts {
        let name = format!("MIG {} #{}", part.profile, part.gpu_instance);
        writeln!(output, "     {:<width$}  {}", shortened(&name, columns.name), columns.numbers(state, part.memory), width = columns.name)?;
        write_processes(&state.processes, 7, output)?;
    }
    if gpu.parts.is_empty() {
        write_processes(&gpu.state.processes, 5, output)?;
    }
    for tenant in &gpu.jobs {
        writeln!(output, "{}", fitted(&format!("     {}", reservation(tenant))))?;
    }
    write_notes(gpu, output)
}

/// A job, its user, and what is reserved for it on a GPU.
pub(super) fn reservation(tenant: &GpuTenant) -> String {
    let name = tenant.name.as_deref().map_or_else(String::new, |name| format!(" {:?}", printable(name)));
    let (job, user) = (label(tenant.attempt.job, tenant.array), printable(&tenant.user));
    format!("{job}{name} of {user}: {} reserved{}", tenant.reserved, limits(tenant))
}

/// The memory that a job borrows, and its limit, after its reserved memory.
pub(super) fn limits(tenant: &GpuTenant) -> String {
    let borrowed = tenant.borrowed.map_or_else(String::new, |borrowed| format!(", {borrowed} borrowed"));
    let limit = tenant.limit.map_or_else(String::new, |limit| format!(", {limit} at most"));
    borrowed + &limit
}

fn write_notes(gpu: &GpuReport, output: &mut impl Write) -> io::Result<()> {
    gpu.notes.iter().try_for_each(|note| writeln!(output, "{}", fitted(&format!("     ! {note}"))))
}

/// The columns that depend on the available metrics.
pub(super) struct Columns {
    metrics: Vec<Metric>,
    /// Width of the name: extra metrics reduce it.
    pub(super) name: usize,
}

impl Columns {
    /// For devices with these measurements.
    pub(super) fn of(measured: &(impl Iterator<Item = Utilisation> + Clone)) -> Self {
        let metrics: Vec<Metric> = Metric::shown(|metric| measured.clone().any(|measured| measured[metric].is_some())).collect();
        let always = Metric::shown(|_| false).count();
        Self { name: NAME.saturating_sub((METRIC + 2) * (metrics.len() - always)), metrics }
    }

    pub(super) fn write_heads(&self, output: &mut impl Write) -> io::Result<()> {
        let heads = self.metrics.iter().map(|metric| format!("  {:>METRIC$}", metric.name())).collect::<Vec<_>>().concat();
        let celsius = Terminal::current().glyphs().celsius;
        writeln!(output, "GPU  {:<name$}  {:>13}   UTIL{heads}  {:>9}  {celsius:>3}", "NAME", "MEMORY GiB", "POWER W", name = self.name)
    }

    fn numbers(&self, state: &DeviceReport, total: MiB) -> String {
        self.text((state.memory_used, total), state.utilisation, &measured(state))
    }

    /// Memory, utilisation and the metrics.
    pub(super) fn text(&self, (used, total): (Option<MiB>, MiB), busy: Option<Fraction>, measured: &Utilisation) -> String {
        let share = |metric: Metric| measured[metric].map_or_else(|| "-".to_owned(), |value| format!("{:.2}", value.get()));
        format!(
            "{:>5} / {:>5}  {:>5}{}",
            used.map_or_else(|| "-".to_owned(), gibibytes),
            gibibytes(total),
            busy.map_or_else(|| "-".to_owned(), |share| format!("{:.0} %", share.get() * 100.0)),
            self.metrics.iter().map(|metric| format!("  {:>METRIC$}", share(*metric))).collect::<Vec<_>>().concat(),
        )
    }
}

fn measured_by(gpus: &[GpuReport]) -> impl Iterator<Item = Utilisation> + Clone {
    gpus.iter().flat_map(|gpu| gpu.parts.iter().map(|part| &part.state).chain([&gpu.state])).map(measured)
}

pub(super) fn measured(state: &DeviceReport) -> Utilisation {
    state.counters.as_ref().map_or(Utilisation::NONE, Counters::utilisation)
}

fn write_processes(processes: &[ProcessReport], indent: usize, output: &mut impl Write) -> io::Result<()> {
    for process in processes {
        let memory = process.memory.map_or_else(|| "?".to_owned(), gibibytes);
        let who = owner(process, " ");
        let line = format!("{:indent$}{:>8}  {memory:>6} GiB  {who}", "", process.pid);
        writeln!(output, "{}", fitted(&line))?;
    }
    Ok(())
}

/// The user of a process in a column of its own, and its command.
pub(super) fn owner(process: &ProcessReport, between: &str) -> String {
    let Some(owner) = &process.ownership else { return "out of sight".to_owned() };
    let user = owner.user.clone().unwrap_or_else(|| owner.uid.to_string());
    let container = owner.container.as_ref().map_or(String::new(), |name| format!("[{name}] "));
    let width = if Terminal::current().plain { 0 } else { 10 };
    format!("{user:<width$}{between}{container}{}", without_folder(&owner.command))
}

/// The sources of profiling counters, each once.
fn sources(gpus: &[GpuReport]) -> String {
    let mut sources: Vec<Source> = gpus.iter().map(|gpu| gpu.source).collect();
    sources.sort_unstable();
    sources.dedup();
    match sources[..] {
        [] => "no GPU to show".to_owned(),
        [Source::UtilisationOnly] => "SMACT and its like are not measured: `carma doctor` says how to get them".to_owned(),
        _ => {
            let of = |source: Source| {
                let numbers: Vec<String> = gpus.iter().filter(|gpu| gpu.source == source).map(|gpu| gpu.gpu.index.to_string()).collect();
                format!("{source} (GPU {})", numbers.join(", "))
            };
            let all = sources.len() == 1;
            let names: Vec<String> = sources.into_iter().map(|source| if all { source.to_string() } else { of(source) }).collect();
            format!("counters from {}", names.join("; "))
        }
    }
}

/// A command line with the program's name without its folder.
fn without_folder(command: &str) -> String {
    let (program, arguments) = command.split_once(' ').map_or((command, ""), |(program, rest)| (program, rest));
    format!("{} {arguments}", program.rsplit('/').next().unwrap_or(program)).trim_end().to_owned()
}

/// Why a GPU is throttled, if it is.
pub(super) fn throttled(reasons: &BTreeSet<Throttling>) -> Option<String> {
    let names: Vec<&str> = reasons.iter().map(|reason| reason.name()).collect();
    (!names.is_empty()).then(|| format!("throttled: {}", names.join(", ")))
}

pub(super) fn gibibytes(memory: MiB) -> String {
    format!("{:.1}", memory.0 as f64 / 1024.0)
}

/// A product's name without the common prefix.
pub(super) fn short(name: &str) -> &str {
    name.trim_start_matches("NVIDIA ").trim_start_matches("GeForce ").trim_start_matches("Tesla ")
}
