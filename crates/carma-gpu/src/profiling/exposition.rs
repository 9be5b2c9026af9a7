//! Counters on dcgm-exporter's page, which is in Prometheus's text format.

use std::collections::HashMap;
use std::time::Instant;

use super::counters::{Counters, Unit};
use super::fields::by_exported_name;

/// The counters of each device on a page, read at this time. Lines of other metrics and damaged lines are skipped.
pub fn read_counters(page: &str, at: Instant) -> HashMap<Unit, Counters> {
    let mut found: HashMap<Unit, Counters> = HashMap::new();
    for sample in page.lines().filter_map(Sample::read) {
        let Some(field) = by_exported_name(sample.name).filter(|field| field.counter.is_some()) else { continue };
        let Some(gpu) = sample.label("UUID").and_then(|uuid| uuid.parse().ok()) else { continue };
        let instance = sample.label("GPU_I_ID").filter(|number| !number.is_empty()).map(str::parse);
        let Ok(instance) = instance.transpose() else { continue };
        found.entry(Unit { gpu, instance }).or_insert_with(|| Counters::new(at)).set(field, sample.value);
    }
    found
}

/// A line: `name{label="value",...} number`.
struct Sample<'a> {
    name: &'a str,
    labels: Vec<(&'a str, String)>,
    value: f64,
}

impl<'a> Sample<'a> {
    fn read(line: &'a str) -> Option<Self> {
        let line = line.trim();
        if line.starts_with('#') {
            return None;
        }
        let end = line.find(|c: char| c == '{' || c.is_whitespace())?;
        let (name, mut rest) = line.split_at(end);
        let mut labels = Vec::new();
        if let Some(inside) = rest.strip_prefix('{') {
            rest = inside.trim_start();
            while !rest.starts_with('}') {
                let (label, quoted) = rest.split_once('=')?;
                let (value, after) = unquote(quoted.trim_start())?;
                labels.push((label.trim(), value));
                rest = after.trim_start();
                rest = rest.strip_prefix(',').map_or(rest, str::trim_start);
            }
            rest = &rest[1..];
        }
        // A time may follow.
        let value = rest.split_whitespace().next()?.parse().ok()?;
        Some(Self { name, labels, value })
    }

    fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(label, _)| *label == name).map(|(_, value)| value.as_str())
    }
}

/// A quoted text, and the rest after it.
fn unquote(text: &str) -> Option<(String, &str)> {
    let inside = text.strip_prefix('"')?;
    let mut value = String::new();
    let mut letters = inside.char_indices();
    while let Some((place, letter)) = letters.next() {
        match letter {
            '"' => return Some((value, &inside[place + 1..])),
            '\\' => match letters.next()?.1 {
                'n' => value.push('\n'),
                other => value.push(other),
            },
            letter => value.push(letter),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use carma_core::{Metric, Utilisation};

    use super::*;

    const PAGE: &str = r#"# HELP DCGM_FI_PROF_SM_ACTIVE The ratio of cycles an SM has at least 1 warp assigned.
# TYPE DCGM_FI_PROF_SM_ACTIVE gauge
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA \"A100\", 40GB {x}",Hostname="node\\1",container="",namespace="",pod=""} 0.926
DCGM_FI_PROF_SM_ACTIVE{gpu="1",UUID="GPU-1",device="nvidia1",modelName="NVIDIA A100",GPU_I_PROFILE="1g.5gb",GPU_I_ID="7",Hostname="node"} 0.5 1395066363000
DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu="0",UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52"} 0.375
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52",} 1.234e+09
DCGM_FI_PROF_DRAM_ACTIVE { gpu = "0" , UUID = "GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52" } NaN
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-2"} 45
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-3 0.5
DCGM_FI_PROF_SM_ACTIVE{gpu="0",UUID="GPU-3"}
DCGM_FI_PROF_SM_ACTIVE 1
go_gc_duration_seconds{quantile="0"} 2.6e-05
"#;

    #[test]
    fn a_page_is_read_by_gpu_and_instance() {
        let read = read_counters(PAGE, Instant::now());
        let unit = |gpu: &str, instance| Unit { gpu: gpu.parse().unwrap(), instance };
        assert_eq!(read.len(), 2, "{read:?}");
        let whole = read[&unit("GPU-604ac76c-d9cf-fef3-62e9-d92044ab6e52", None)];
        assert_eq!(whole.utilisation(), Utilisation::of([(Metric::Smact, 0.926), (Metric::Tensor, 0.375)]));
        assert_eq!(whole.get(by_exported_name("DCGM_FI_PROF_PCIE_TX_BYTES").unwrap()), Some(1_234_000_000.0));
        assert_eq!(read[&unit("GPU-1", Some(7))].utilisation(), Utilisation::of([(Metric::Smact, 0.5)]));
    }

    #[test]
    fn published_pages_of_instances_are_read() {
        let read = read_counters(include_str!("samples/exporter-mig.txt"), Instant::now());
        let value = |gpu: &str, instance, field| {
            let unit = Unit { gpu: format!("GPU-00000000-0000-0000-0000-0000000000{gpu}").parse().unwrap(), instance };
            read[&unit].get(by_exported_name(field).unwrap())
        };
        assert_eq!(read.len(), 4, "two instances, another GPU's, and a GPU; memory is no counter: {read:?}");
        assert_eq!([7, 8].map(|instance| value("1a", Some(instance), "DCGM_FI_PROF_GR_ENGINE_ACTIVE")), [Some(0.0); 2]);
        assert_eq!(value("30", Some(1), "DCGM_FI_PROF_GR_ENGINE_ACTIVE"), Some(0.381_124));
        assert_eq!(value("30", Some(1), "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"), Some(0.022_137));
        assert_eq!(value("1b", None, "DCGM_FI_PROF_DRAM_ACTIVE"), Some(0.0));
    }

    #[test]
    fn damaged_pages_are_read_as_far_as_possible() {
        for end in 0..PAGE.len() {
            read_counters(&PAGE[..end], Instant::now());
        }
        assert!(Sample::read("name{a=\"b\"").is_none());
    }
}
