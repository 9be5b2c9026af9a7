//! Metrics of GPUs and of their instances. A partitioned GPU has no own memory and jobs here: its instances have, so that sums are correct.

use carma_gpu::Throttling;

use super::exposition::{Labels, Metric, Page, counter, gauge};
use super::facts::GpuFacts;
use super::value::{Value, bytes, flag, share};
use crate::measure::DeviceEnergy;
use crate::tally::kind_of;

/// Metrics of devices that can take jobs.
const USED: [(Metric, Value<GpuFacts>); 9] = [
    (gauge("carma_gpu_memory_bytes", "Total memory of the GPU."), |gpu| Some(bytes(gpu.detail.memory))),
    (gauge("carma_gpu_memory_used_bytes", "Memory in use by all processes."), |gpu| Some(bytes(gpu.detail.memory_used?))),
    (gauge("carma_gpu_memory_reserved_bytes", "Memory reserved for jobs."), |gpu| Some(bytes(gpu.detail.reserved))),
    (gauge("carma_gpu_memory_available_bytes", "Memory that can still be reserved for a job."), |gpu| Some(bytes(gpu.detail.available))),
    (gauge("carma_gpu_memory_unaccounted_bytes", "Memory in use that belongs to no listed process."), |gpu| {
        Some(bytes(gpu.reading.as_ref()?.unaccounted()?))
    }),
    (gauge("carma_gpu_memory_foreign_bytes", "Memory of processes outside CARMA."), |gpu| Some(bytes(gpu.foreign_memory))),
    (gauge("carma_gpu_processes_foreign", "Processes outside CARMA."), |gpu| Some(gpu.detail.foreign as f64)),
    (gauge("carma_gpu_jobs", "CARMA jobs on the GPU."), |gpu| Some(gpu.detail.tenants.len() as f64)),
    (gauge("carma_gpu_open", "Whether the GPU accepts another job, apart from memory."), |gpu| Some(flag(gpu.detail.obstacles.is_empty()))),
];

/// Metrics of all devices, partitioned or not.
const EACH: [(Metric, Value<GpuFacts>); 8] = [
    (gauge("carma_gpu_lost", "Whether the GPU is lost."), |gpu| Some(flag(gpu.detail.lost))),
    (gauge("carma_gpu_silent", "Whether the driver calls of the GPU fail or hang."), |gpu| Some(flag(gpu.detail.silent_for.is_some()))),
    (gauge("carma_gpu_drained", "Whether the GPU is drained."), |gpu| Some(flag(gpu.detail.drained))),
    (gauge("carma_gpu_faulty", "Whether the manager drained the GPU because of its faults."), |gpu| {
        Some(flag(gpu.detail.drained_for.is_some()))
    }),
    (gauge("carma_gpu_look_age_seconds", "Time since the GPU last answered."), |gpu| gpu.age.map(carma_core::Seconds::get)),
    (gauge("carma_gpu_power_watts", "Power drawn."), |gpu| gpu.detail.power.map(|power| power.0)),
    (gauge("carma_gpu_temperature_celsius", "Temperature."), |gpu| gpu.detail.temperature.map(f64::from)),
    (counter("carma_gpu_memory_errors_total", "Uncorrected memory errors since the driver was loaded."), |gpu| {
        gpu.reading.as_ref()?.uncorrected.map(|errors| errors as f64)
    }),
];

/// Consumers of energy.
const ENERGY: [(&str, Value<DeviceEnergy>); 3] = [
    ("jobs", |energy| Some((energy.all - energy.others - energy.nobody).joules())),
    ("foreign", |energy| Some(energy.others.joules())),
    ("idle", |energy| Some(energy.nobody.joules())),
];

pub(super) fn write(page: &mut Page, gpus: &[GpuFacts], host: &str) {
    let labels: Vec<Labels> = gpus.iter().map(labels).collect();
    let info: Vec<Labels> = labels.iter().zip(gpus).map(|(labels, gpu)| describe(labels.clone(), gpu, host)).collect();
    page.family(gauge("carma_gpu_info", "Facts about the GPU; the value is 1."), info.iter().map(|labels| (labels, Some(1.0))));
    let used = || labels.iter().zip(gpus).filter(|(_, gpu)| !gpu.partitioned);
    for (metric, value) in USED {
        page.family(metric, used().map(|(labels, gpu)| (labels, value(gpu))));
    }
    for metric in carma_core::Metric::ALL {
        let facts = metric.facts();
        page.family(gauge(facts.gauge, facts.about), used().map(|(labels, gpu)| (labels, share(gpu.detail.utilisation[metric]))));
    }
    for (metric, value) in EACH {
        page.family(metric, labels.iter().zip(gpus).map(|(labels, gpu)| (labels, value(gpu))));
    }
    let throttled = labels.iter().zip(gpus).filter(|(_, gpu)| gpu.reading.is_some()).flat_map(|(labels, gpu)| {
        Throttling::ALL.map(|reason| (labels.clone().with("reason", reason), flag(gpu.detail.throttling.contains(&reason))))
    });
    let throttled: Vec<(Labels, f64)> = throttled.collect();
    page.family(
        gauge("carma_gpu_throttled", "Whether the GPU runs below its clocks for this reason."),
        throttled.iter().map(|(labels, flag)| (labels, Some(*flag))),
    );
    let parts = labels.iter().zip(gpus).filter_map(|(labels, gpu)| Some((labels, gpu.energy.as_ref()?)));
    let parts: Vec<(Labels, Option<f64>)> =
        parts.flat_map(|(labels, energy)| ENERGY.map(|(whose, part)| (labels.clone().with("share", whose), part(energy)))).collect();
    page.family(
        counter("carma_gpu_energy_joules_total", "Energy since the first sample, by consumer."),
        parts.iter().map(|(labels, joules)| (labels, *joules)),
    );
}

fn labels(gpu: &GpuFacts) -> Labels {
    Labels::new([("gpu", &gpu.detail.device), ("uuid", &gpu.detail.uuid)])
}

fn describe(labels: Labels, gpu: &GpuFacts, host: &str) -> Labels {
    let labels = labels.with("node", gpu.detail.node.as_deref().unwrap_or(host));
    labels.with("model", &gpu.detail.name).with("mode", kind_of(&gpu.detail.mode)).with("counters", &gpu.detail.counters)
}

#[cfg(test)]
mod tests {
    use super::super::facts::example::{instance, whole};
    use super::*;

    #[test]
    fn memory_of_a_partitioned_gpu_is_that_of_its_instances() {
        let mut page = Page::default();
        let mut elsewhere = whole();
        (elsewhere.detail.device, elsewhere.detail.node) = ("s1/gpu0".parse().unwrap(), Some("gn1".to_owned()));
        write(&mut page, &[whole(), instance(), elsewhere], "head");
        let text = page.into_text();
        let lines =
            |metric: &str| text.lines().filter(|line| line.starts_with(&format!("{metric}{{"))).map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(lines("carma_gpu_memory_bytes"), ["carma_gpu_memory_bytes{gpu=\"s0/gpu3/mig1\",uuid=\"MIG-7\"} 21072183296"]);
        assert_eq!(
            lines("carma_gpu_power_watts"),
            ["carma_gpu_power_watts{gpu=\"s0/gpu3\",uuid=\"GPU-3\"} 250.5", "carma_gpu_power_watts{gpu=\"s1/gpu0\",uuid=\"GPU-3\"} 250.5"]
        );
        assert_eq!(lines("carma_gpu_lost").len(), 3);
        let nodes = lines("carma_gpu_info").into_iter().map(|line| line.contains("node=\"gn1\"")).collect::<Vec<_>>();
        assert_eq!(nodes, [false, false, true]);
    }
}
