//! Metrics of dcgm-exporter, with its names, units and labels: dashboards and rules made for it keep working.

use carma_gpu::Reading;
use carma_gpu::profiling::fields::profiling;

use super::exposition::{Labels, Metric, Page, counter, gauge};
use super::facts::GpuFacts;
use super::value::{Value, share};

/// From the driver's readings. dcgm-exporter's numbers are in per cent, MiB, watts and thousandths of a joule.
const READ: [(Metric, Value<Reading>); 8] = [
    (gauge("DCGM_FI_DEV_GPU_UTIL", "GPU utilization (in %)."), |reading| share(reading.utilisation).map(|ratio| (ratio * 100.0).round())),
    (gauge("DCGM_FI_DEV_FB_USED", "Framebuffer memory used (in MiB)."), |reading| Some(reading.memory_used.0 as f64)),
    (gauge("DCGM_FI_DEV_FB_FREE", "Framebuffer memory free (in MiB)."), |reading| {
        Some(reading.memory_total.0.saturating_sub(reading.memory_used.0) as f64)
    }),
    (gauge("DCGM_FI_DEV_POWER_USAGE", "Power draw (in W)."), |reading| reading.power.map(|power| power.0)),
    (counter("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", "Total energy consumption since boot (in mJ)."), |reading| {
        reading.energy.map(|joules| (joules * 1000.0).round())
    }),
    (gauge("DCGM_FI_DEV_GPU_TEMP", "GPU temperature (in C)."), |reading| reading.temperature.map(f64::from)),
    (gauge("DCGM_FI_DEV_SM_CLOCK", "SM clock frequency (in MHz)."), |reading| reading.clock.map(f64::from)),
    (counter("DCGM_FI_DEV_ECC_DBE_VOL_TOTAL", "Total number of double-bit volatile ECC errors."), |reading| {
        reading.uncorrected.map(|errors| errors as f64)
    }),
];

pub(super) fn write(page: &mut Page, gpus: &[GpuFacts], host: &str) {
    let labels: Vec<Labels> = gpus.iter().map(|gpu| labels(gpu, host)).collect();
    for (metric, value) in READ {
        page.family(metric, labels.iter().zip(gpus).map(|(labels, gpu)| (labels, gpu.reading.as_ref().and_then(value))));
    }
    for field in profiling() {
        let metric = gauge(field.exported_name, field.help);
        page.family(
            metric,
            labels.iter().zip(gpus).map(|(labels, gpu)| (labels, gpu.counters.as_ref().and_then(|counters| counters.get(field)))),
        );
    }
}

/// An instance has the number and the UUID of its GPU, and its own number beside them.
fn labels(gpu: &GpuFacts, host: &str) -> Labels {
    let number = gpu.detail.device.gpu.ordinal;
    let (model, profile) = match gpu.unit.instance {
        None => (gpu.detail.name.as_str(), None),
        Some(_) => gpu.detail.name.rsplit_once(' ').map_or((gpu.detail.name.as_str(), None), |(model, profile)| (model, Some(profile))),
    };
    let labels = Labels::new([("gpu", &number), ("UUID", &gpu.unit.gpu), ("device", &format!("nvidia{number}")), ("modelName", &model)]);
    let labels = match gpu.unit.instance {
        Some(instance) => labels.with("GPU_I_PROFILE", profile.unwrap_or_default()).with("GPU_I_ID", instance),
        None => labels,
    };
    labels.with("Hostname", gpu.detail.node.as_deref().unwrap_or(host))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use carma_gpu::profiling::read_counters;

    use super::super::facts::example::{instance, whole};
    use super::*;

    #[test]
    fn names_units_and_labels_are_dcgm_exporters() {
        let mut page = Page::default();
        let mut elsewhere = whole();
        (elsewhere.detail.device, elsewhere.detail.node) = ("s1/gpu0".parse().unwrap(), Some("node8".to_owned()));
        write(&mut page, &[whole(), instance(), elsewhere], "node7");
        let text = page.into_text();
        insta::assert_snapshot!("dcgm", text.lines().filter(|line| !line.starts_with("# HELP")).collect::<Vec<_>>().join("\n"));
        // The reader of dcgm-exporter's page reads this one too.
        let read = read_counters(&text, Instant::now());
        let expected = instance();
        assert_eq!((read.len(), read[&expected.unit].utilisation()), (1, expected.counters.unwrap().utilisation()));
    }
}
