//! The DCGM fields that CARMA knows, by their numbers and names.

/// What a field is counted in.
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
    /// What it is counted in.
    pub measure: Measure,
    /// What dcgm-exporter says about it.
    pub help: &'static str,
}

/// The first of the fields that need the GPU's profiling counters.
const FIRST_PROFILING: u16 = 1001;

impl Field {
    /// Whether it comes from the GPU's profiling counters, which one profiler can hold at a time.
    pub const fn is_profiling(&self) -> bool {
        self.id >= FIRST_PROFILING
    }
}

const fn field(id: u16, [short_name, long_name, exported_name]: [&'static str; 3], measure: Measure, help: &'static str) -> Field {
    Field { id, short_name, long_name, exported_name, measure, help }
}

use Measure::{BytesPerSecond, Fraction, Mebibytes, Millijoules, Percent, Watts};

/// All of them, by number.
#[rustfmt::skip]
pub static FIELDS: [Field; 17] = [
    field(155, ["POWER", "power_usage", "DCGM_FI_DEV_POWER_USAGE"], Watts, "Power draw (in W)."),
    field(156, ["TOTEC", "total_energy_consumption", "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"], Millijoules, "Total energy consumption since boot (in mJ)."),
    field(203, ["GPUTL", "gpu_utilization", "DCGM_FI_DEV_GPU_UTIL"], Percent, "GPU utilization (in %)."),
    field(204, ["MCUTL", "mem_copy_utilization", "DCGM_FI_DEV_MEM_COPY_UTIL"], Percent, "Memory utilization (in %)."),
    field(252, ["FBUSD", "fb_used", "DCGM_FI_DEV_FB_USED"], Mebibytes, "Framebuffer memory used (in MiB)."),
    field(1001, ["GRACT", "gr_engine_active", "DCGM_FI_PROF_GR_ENGINE_ACTIVE"], Fraction, "Ratio of time the graphics engine is active."),
    field(1002, ["SMACT", "sm_active", "DCGM_FI_PROF_SM_ACTIVE"], Fraction, "The ratio of cycles an SM has at least 1 warp assigned."),
    field(1003, ["SMOCC", "sm_occupancy", "DCGM_FI_PROF_SM_OCCUPANCY"], Fraction, "The ratio of number of warps resident on an SM."),
    field(1004, ["TENSO", "tensor_active", "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE"], Fraction, "Ratio of cycles the tensor (HMMA) pipe is active."),
    field(1005, ["DRAMA", "dram_active", "DCGM_FI_PROF_DRAM_ACTIVE"], Fraction, "Ratio of cycles the device memory interface is active sending or receiving data."),
    field(1006, ["FP64A", "fp64_active", "DCGM_FI_PROF_PIPE_FP64_ACTIVE"], Fraction, "Ratio of cycles the fp64 pipes are active."),
    field(1007, ["FP32A", "fp32_active", "DCGM_FI_PROF_PIPE_FP32_ACTIVE"], Fraction, "Ratio of cycles the fp32 pipes are active."),
    field(1008, ["FP16A", "fp16_active", "DCGM_FI_PROF_PIPE_FP16_ACTIVE"], Fraction, "Ratio of cycles the fp16 pipes are active."),
    field(1009, ["PCITX", "pcie_tx_bytes", "DCGM_FI_PROF_PCIE_TX_BYTES"], BytesPerSecond, "The rate of data transmitted over the PCIe bus - including both protocol headers and data payloads - in bytes per second."),
    field(1010, ["PCIRX", "pcie_rx_bytes", "DCGM_FI_PROF_PCIE_RX_BYTES"], BytesPerSecond, "The rate of data received over the PCIe bus - including both protocol headers and data payloads - in bytes per second."),
    field(1011, ["NVLTX", "nvlink_tx_bytes", "DCGM_FI_PROF_NVLINK_TX_BYTES"], BytesPerSecond, "The rate of data transmitted over NVLink in bytes per second."),
    field(1012, ["NVLRX", "nvlink_rx_bytes", "DCGM_FI_PROF_NVLINK_RX_BYTES"], BytesPerSecond, "The rate of data received over NVLink in bytes per second."),
];

/// The field with this number.
pub fn by_id(id: u16) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.id == id)
}

/// The field whose column has this head.
pub fn by_short_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.short_name == name)
}

/// The field that dcgm-exporter calls so.
pub fn by_exported_name(name: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.exported_name == name)
}

/// The fields from the GPU's profiling counters.
pub fn profiling() -> impl Iterator<Item = &'static Field> {
    FIELDS.iter().filter(|field| field.is_profiling())
}
