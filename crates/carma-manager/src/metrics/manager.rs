//! Metrics of the manager itself, of its store and of the host.

use super::ORPHANED;
use super::exposition::{Labels, Page, counter, gauge};
use super::facts::Facts;
use super::process::Process;
use super::value::{bytes, flag, share};
use crate::host::HostReading;

pub(super) fn write(page: &mut Page, facts: &Facts, store_size: u64, process: Option<Process>) {
    let status = &facts.status;
    let build = Labels::new([("version", &status.version), ("policy", &status.policy)]);
    page.family(gauge("carma_build_info", "The manager's version and the policy in force; the value is 1."), [(&build, Some(1.0))]);
    page.single(
        gauge("carma_start_time_seconds", "When the manager was started, in seconds since 1970."),
        status.started.0 as f64 / 1000.0,
    );
    page.single(gauge("carma_uptime_seconds", "Time since the manager started."), status.up.get());
    page.single(gauge("carma_observing", "Whether the manager only observes."), flag(status.observes));
    page.single(
        gauge("carma_draining", "Whether the manager is draining: it starts no jobs, and ends after the last one."),
        flag(status.draining),
    );
    page.single(gauge("carma_clock_speed_ratio", "Speed of the GPUs' time; 1 for real GPUs."), status.speed);
    page.single(gauge("carma_store_size_bytes", "Size of the store with its write-ahead log."), store_size as f64);
    page.single(gauge("carma_store_writable", "Whether the store can be written."), flag(facts.writable));
    problems(page, facts);
    if let Some(host) = &facts.host {
        write_host(page, host);
    }
    if let Some(process) = process {
        page.single(counter("process_cpu_seconds_total", "CPU time of the manager."), process.cpu_seconds);
        page.single(gauge("process_resident_memory_bytes", "Memory of the manager."), process.resident_bytes);
        page.single(gauge("process_open_fds", "Open files of the manager."), process.open_files);
    }
}

fn problems(page: &mut Page, facts: &Facts) {
    let gpus = |has: fn(&super::facts::GpuFacts) -> bool| facts.gpus.iter().filter(|gpu| has(gpu)).count() as f64;
    let kinds = [
        ("store_unwritable", flag(!facts.writable)),
        ("host_short", flag(facts.host_short)),
        ("gpu_lost", gpus(|gpu| gpu.detail.lost)),
        ("gpu_silent", gpus(|gpu| gpu.detail.silent_for.is_some())),
        ("gpu_unusable", f64::from(facts.unusable)),
        ("gpu_drained", gpus(|gpu| gpu.detail.drained)),
        (
            "memory_orphaned",
            gpus(|gpu| gpu.reading.as_ref().and_then(carma_gpu::Reading::unaccounted).is_some_and(|memory| memory >= ORPHANED)),
        ),
    ];
    let samples = kinds.map(|(kind, number)| (Labels::new([("kind", &kind)]), number));
    page.family(gauge("carma_problems", "Present problems, by kind."), samples.iter().map(|(labels, number)| (labels, Some(*number))));
}

fn write_host(page: &mut Page, host: &HostReading) {
    page.single(gauge("carma_host_cores", "Usable cores."), f64::from(host.cores));
    page.single(gauge("carma_host_cpu_busy_ratio", "Share of time that CPUs were busy."), share(host.busy));
    page.single(gauge("carma_host_load", "Runnable processes, averaged over the last minute."), host.load);
    page.single(gauge("carma_host_memory_bytes", "Total memory of the host."), bytes(host.memory_total));
    page.single(gauge("carma_host_memory_available_bytes", "Memory available without swapping."), bytes(host.memory_available));
    page.single(
        gauge("carma_host_cpu_pressure_ratio", "Share of the last ten seconds in which some process waited for a CPU."),
        share(host.cpu_pressure.map(|pressure| pressure.some)),
    );
    page.single(
        gauge("carma_host_memory_pressure_ratio", "Share of the last ten seconds in which all processes waited for memory."),
        share(host.memory_pressure.and_then(|pressure| pressure.full)),
    );
    let disks: Vec<Labels> = host.disks.iter().map(|disk| Labels::new([("folder", &disk.folder.display())])).collect();
    let each = || disks.iter().zip(&host.disks);
    page.family(
        gauge("carma_host_disk_bytes", "Size of the disk with the folder."),
        each().map(|(labels, disk)| (labels, Some(bytes(disk.total)))),
    );
    page.family(
        gauge("carma_host_disk_free_bytes", "Free space on the disk with the folder."),
        each().map(|(labels, disk)| (labels, Some(bytes(disk.free)))),
    );
}
