//! The DCGM fields that CARMA uses, by number and name, and their monitored metrics.

use carma_core::Metric;
use nvml_wrapper::enums::gpm::GpmMetricId;

/// The unit of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measure {
    /// From 0 to 1.
    Fraction,
    /// From 0 to 100.
    Percent,
    /// Watts.
    Watts,
    /// Thousandths of a joule.
    Millijoules,
    /// 2^20 bytes.
    Mebibytes,
    /// Bytes a second.
    BytesPerSecond,
}

/// A field of DCGM.
#[derive(Debug, PartialEq, Eq)]
pub struct Field {
    /// DCGM's number.
    pub id: u16,
    /// The head of its column in `dcgmi dmon`.
    pub short_name: &'static str,
    /// Its name in `dcgmi dmon -l`.
    pub long_name: &'static str,
    /// Its name on dcgm-exporter's page.
    pub exported_name: &'static str,
    /// Its unit.
    pub measure: Measure,
    /// The help text of dcgm-exporter.
    pub help: &'static str,
    /// Only for profiling counters.
    pub counter: Option<Counter>,
}

/// A profiling counter; only one profiler at a time can use it.
#[derive(Debug, PartialEq, Eq)]
pub struct Counter {
    /// Its name in JSON.
    pub name: &'static str,
    /// NVML's id of it.
    pub gpm: GpmMetricId,
    /// The monitored metric that it is.
    pub metric: Option<Metric>,
}

type Names = [&'static str; 3];

const fn field(id: u16, [short_name, long_name, exported_name]: Names, measure: Measure, help: &'static str) -> Field {
    Field { id, short_name, long_name, exported_name, measure, help, counter: None }
}

impl Field {
    const fn counter(self, name: &'static str, gpm: GpmMetricId) -> Self {
        Self { counter: Some(Counter { name, gpm, metric: None }), ..self }
    }

    const fn metric(self, metric: Metric, gpm: GpmMetricId) -> Self {
        Self { counter: Some(Counter { name: metric.facts().id, gpm, metric: Some(metric) }), ..self }
    }
}

use Measure::{BytesPerSecond, Fraction, Mebibytes, Millijoules, Percent, Watts};

/// All of them, by number; profiling counters last.
#[rustfmt::skip]
pub static FIELDS: [Field; 17] = [
    field(155, ["POWER", "power_usage", "DCGM_FI_DEV_POWER_USAGE"], Watts, "Power draw (in W)."),
    field(156, ["TOTEC", "total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], Millijoules, "Total energy consumption since boot (in mJ)."),
    field(203, ["GPUTL", "gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"], Percent, "GPU utilization (in %)."),
    field(204, ["MCUTL", "mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL"], Percent, "Memory utilization (in %)."),
    field(252, ["FBUSD", "fb_used", "DCGM_FI_DEV_FB_USED"], Mebibytes, "Framebuffer memory used (in MiB)."),
    field(1001, ["GRACT", "gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"], Fraction, "Ratio of time the graphics engine is active.")
        .counter("gract", GpmMetricId::GraphicsUtil),
    field(1002, ["SMACT", "sm_active", "DCGM_FI_PROF_SM_ACTIVE"], Fraction, "The ratio of cycles an SM has at least 1 warp assigned.")
        .metric(Metric::Smact, GpmMetricId::SmUtil),
    field(1003, ["SMOCC", "sm_occupancy", "DCGM_FI_PROF_SM_OCCUPANCY"], Fraction, "The ratio of number of warps resident on an SM.")
        .metric(Metric::Smocc, GpmMetricId::SmOccupancy),
    field(1004, ["TENSO", "tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"], Fraction, "Ratio of cycles the tensor (HMMA) pipe is active.")
        .metric(Metric::Tensor, GpmMetricId::AnyTensorUtil),
    field(1005, ["DRAMA", "dram_active", "DCGM_FI_PROF_DRAM_ACTIVE"], Fraction, "Ratio of cycles the device memory interface is active sending or receiving data.")
        .metric(Metric::Drama, GpmMetricId::DramBwUtil),
    field(1006, ["FP64A", "fp64_active", "DCGM_FI_PROF_PIPE_FP64_ACTIVE"], Fraction, "Ratio of cycles the fp64 pipes are active.")
        .counter("fp64", GpmMetricId::Fp64Util),
    field(1007, ["FP32A", "fp32_active", "DCGM_FI_PROF_PIPE_FP32_ACTIVE"], Fraction, "Ratio of cycles the fp32 pipes are active.")
        .counter("fp32", GpmMetricId::Fp32Util),
    field(1008, ["FP16A", "fp16_active", "DCGM_FI_PROF_PIPE_FP16_ACTIVE"], Fraction, "Ratio of cycles the fp16 pipes are active.")
        .counter("fp16", GpmMetricId::Fp16Util),
    field(1009, ["PCITX", "pcie_tx_bytes", "DCGM_FI_PROF_PCIE_TX_BYTES"], BytesPerSecond, "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in bytes per second.")
        .counter("pcie_tx", GpmMetricId::PcieTxPerSec),
    field(1010, ["PCIRX", "pcie_rx_bytes", "DCGM_FI_PROF_PCIE_RX_BYTES"], BytesPerSecond, "The rate of data received over the PCIe bus - including both protocol headers and data payloads - in bytes per second.")
        .counter("pcie_rx", GpmMetricId::PcieRxPerSec),
    field(1011, ["NVLTX", "nvlink_tx_bytes", "DCGM_FI_PROF_NVLINK_TX_BYTES"], BytesPerSecond, "The rate of data transmitted over NVLink in bytes per second.")
        .counter("nvlink_tx", GpmMetricId::NvlinkTotalTxPerSec),
    field(1012, ["NVLRX", "nvlink_rx_bytes", "DCGM_FI_PROF_NVLINK_RX_BYTES"], BytesPerSecond, "The rate of data received over NVLink in bytes per second.")
        .counter("nvlink_rx", GpmMetricId::NvlinkTotalRxPerSec),
];

/// The number of the first profiling counter in [`FIELDS`].
const FIRST_COUNTER: usize = 5;
/// Number of profiling counters.
pub(super) const COUNTERS: usize = FIELDS.len() - FIRST_COUNTER;

/// The fields that are profiling counters.
pub fn profiling() -> &'static [Field] {
    &FIELDS[FIRST_COUNTER..]
}

/// The field with this number.
pub fn by_id(id: u16) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.id == id)
}

/// The field with this column head.
pub fn by_short_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.short_name == name)
}

/// The field with this name on dcgm-exporter's page.
pub fn by_exported_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.exported_name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profiling_counters_come_last() {
        assert!(FIELDS.iter().map(|field| field.counter.is_some()).is_sorted());
        assert!(FIELDS.is_sorted_by_key(|field| field.id));
        assert_eq!(profiling().len(), FIELDS.iter().filter(|field| field.counter.is_some()).count());
    }
}
