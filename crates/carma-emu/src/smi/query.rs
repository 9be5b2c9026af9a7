//! `nvidia-smi --query-...`: fields as comma-separated values.

use std::fmt;

use super::Refusal;
use super::arguments::invalid;
use super::gpu::{App, Gpu};

/// A field's value.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value<'a> {
    Text(&'a str),
    Number(u64),
    Mebibytes(u64),
    Milliwatts(u32),
    Switch(bool),
    PerformanceState(u32),
    Version([u32; 2]),
    Absent,
}
use Value::{Absent, Mebibytes, Milliwatts, Number, PerformanceState, Switch, Text, Version};

impl fmt::Display for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Text(text) => f.write_str(text),
            Number(number) => write!(f, "{number}"),
            Mebibytes(bytes) => write!(f, "{}", bytes >> 20),
            Milliwatts(power) => write!(f, "{:.2}", f64::from(power) / 1000.0),
            Switch(on) => f.write_str(if on { "Enabled" } else { "Disabled" }),
            PerformanceState(state) => write!(f, "P{state}"),
            Version([major, minor]) => write!(f, "{major}.{minor}"),
            Absent => f.write_str("[N/A]"),
        }
    }
}

/// A field: its names, the first of which is shown; its unit; and how to get it.
#[derive(Debug)]
pub(super) struct Field<T> {
    names: &'static [&'static str],
    unit: &'static str,
    get: T,
}

type OfGpu = fn(&Gpu) -> Value<'_>;
type OfApp = for<'a> fn(&'a Gpu, &'a App) -> Value<'a>;
pub(super) type GpuField = Field<OfGpu>;
pub(super) type AppField = Field<OfApp>;

/// A row that such a field can be read from.
pub(super) trait Row<T> {
    fn value(&self, get: &T) -> Value<'_>;
}

impl Row<OfGpu> for &Gpu {
    fn value(&self, get: &OfGpu) -> Value<'_> {
        get(self)
    }
}

impl Row<OfApp> for (&Gpu, &App) {
    fn value(&self, get: &OfApp) -> Value<'_> {
        get(self.0, self.1)
    }
}

const fn of_gpu(names: &'static [&'static str], unit: &'static str, get: OfGpu) -> GpuField {
    Field { names, unit, get }
}

const fn of_app(names: &'static [&'static str], unit: &'static str, get: OfApp) -> AppField {
    Field { names, unit, get }
}

fn number(number: u32) -> Value<'static> {
    Number(number.into())
}

/// The utilisation of a GPU in MIG mode is unknown.
fn busy(gpu: &Gpu, percent: u32) -> Value<'static> {
    if gpu.mig == Some(true) { Absent } else { number(percent) }
}

#[rustfmt::skip]
static GPU_FIELDS: [GpuField; 30] = [
    of_gpu(&["index"], "", |gpu| Number(gpu.index as u64)),
    of_gpu(&["uuid", "gpu_uuid"], "", |gpu| Text(&gpu.uuid)),
    of_gpu(&["name", "gpu_name"], "", |gpu| Text(&gpu.facts.product)),
    of_gpu(&["pci.bus_id", "gpu_bus_id"], "", |gpu| Text(&gpu.bus_id)),
    of_gpu(&["driver_version"], "", |gpu| Text(gpu.driver.driver())),
    of_gpu(&["compute_cap"], "", |gpu| Version(gpu.facts.capability)),
    of_gpu(&["memory.total"], "MiB", |gpu| Mebibytes(gpu.memory.total)),
    of_gpu(&["memory.reserved"], "MiB", |gpu| Mebibytes(gpu.memory.reserved)),
    of_gpu(&["memory.used"], "MiB", |gpu| Mebibytes(gpu.memory.used)),
    of_gpu(&["memory.free"], "MiB", |gpu| Mebibytes(gpu.memory.free())),
    of_gpu(&["utilization.gpu"], "%", |gpu| busy(gpu, gpu.readings.utilisation)),
    of_gpu(&["utilization.memory"], "%", |gpu| busy(gpu, gpu.readings.memory_utilisation)),
    of_gpu(&["power.draw", "power.draw.instant", "power.draw.average"], "W", |gpu| Milliwatts(gpu.readings.milliwatts)),
    of_gpu(&["power.limit", "enforced.power.limit"], "W", |gpu| Milliwatts(gpu.power_limit)),
    of_gpu(&["power.default_limit"], "W", |gpu| Milliwatts(gpu.highest_limit)),
    of_gpu(&["power.max_limit"], "W", |gpu| Milliwatts(gpu.highest_limit)),
    of_gpu(&["temperature.gpu"], "", |gpu| number(gpu.readings.temperature)),
    of_gpu(&["temperature.memory"], "", |gpu| number(gpu.readings.memory_temperature)),
    of_gpu(&["fan.speed"], "%", |gpu| gpu.readings.fan.map_or(Absent, number)),
    of_gpu(&["pstate"], "", |gpu| PerformanceState(gpu.readings.performance_state)),
    of_gpu(&["clocks.current.sm", "clocks.sm"], "MHz", |gpu| number(gpu.readings.sm_clock)),
    of_gpu(&["clocks.current.memory", "clocks.mem"], "MHz", |gpu| number(gpu.readings.memory_clock)),
    of_gpu(&["clocks.max.sm"], "MHz", |gpu| number(gpu.facts.sm_clock)),
    of_gpu(&["clocks.max.memory", "clocks.max.mem"], "MHz", |gpu| number(gpu.facts.memory_clock)),
    of_gpu(&["compute_mode"], "", |gpu| Text(gpu.mode())),
    of_gpu(&["persistence_mode"], "", |gpu| Switch(gpu.persistence)),
    of_gpu(&["display_active"], "", |gpu| Switch(gpu.display)),
    of_gpu(&["mig.mode.current", "mig.mode.pending"], "", |gpu| gpu.mig.map_or(Absent, Switch)),
    of_gpu(&["ecc.mode.current"], "", |gpu| if gpu.facts.ecc { Switch(true) } else { Absent }),
    of_gpu(&["ecc.errors.uncorrected.volatile.total"], "", |gpu| if gpu.facts.ecc { Number(gpu.uncorrected) } else { Absent }),
];

#[rustfmt::skip]
static APP_FIELDS: [AppField; 6] = [
    of_app(&["pid"], "", |_, app| number(app.pid)),
    of_app(&["process_name", "name"], "", |_, app| Text(&app.name)),
    of_app(&["used_gpu_memory", "used_memory"], "MiB", |_, app| Mebibytes(app.bytes)),
    of_app(&["gpu_uuid"], "", |gpu, _| Text(&gpu.uuid)),
    of_app(&["gpu_name"], "", |gpu, _| Text(&gpu.facts.product)),
    of_app(&["gpu_bus_id"], "", |gpu, _| Text(&gpu.bus_id)),
];

/// The fields of GPUs with these names.
pub(super) fn gpu_fields(names: &str) -> Result<Vec<&'static GpuField>, Refusal> {
    fields(&GPU_FIELDS, names)
}

/// The fields of processes with these names.
pub(super) fn app_fields(names: &str) -> Result<Vec<&'static AppField>, Refusal> {
    fields(&APP_FIELDS, names)
}

fn fields<T>(all: &'static [Field<T>], names: &str) -> Result<Vec<&'static Field<T>>, Refusal> {
    let find = |name: &str| {
        let found = all.iter().find(|field| field.names.contains(&name));
        found.ok_or_else(|| invalid(&format!("Field \"{name}\" is not a valid field to query.\n")))
    };
    names.split(',').map(|name| find(name.trim())).collect()
}

/// The format of values.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Csv {
    header: bool,
    units: bool,
}

impl Csv {
    /// Reads `csv[,noheader][,nounits]`.
    pub(super) fn read(format: &str) -> Result<Self, Refusal> {
        let mut csv = Self { header: true, units: true };
        let mut named = false;
        for word in format.split(',').map(str::trim) {
            match word {
                "csv" => named = true,
                "noheader" => csv.header = false,
                "nounits" => csv.units = false,
                other => return Err(invalid(&format!("Unknown format option \"{other}\".\n"))),
            }
        }
        if named { Ok(csv) } else { Err(invalid("\"csv\" is missing in the \"--format=\" switch.\n")) }
    }

    /// Writes rows.
    pub(super) fn write<T>(&self, fields: &[&Field<T>], rows: impl Iterator<Item = impl Row<T>>) -> String {
        let line = |cells: Vec<String>| cells.join(", ") + "\n";
        let head = |field: &&Field<T>| match field.unit {
            "" => field.names[0].to_owned(),
            unit => format!("{} [{unit}]", field.names[0]),
        };
        let cell = |value: Value<'_>, unit: &str| match value {
            value if self.units && !unit.is_empty() && !matches!(value, Absent) => format!("{value} {unit}"),
            value => value.to_string(),
        };
        let header = self.header.then(|| line(fields.iter().map(head).collect()));
        let rows = rows.map(|row| line(fields.iter().map(|field| cell(row.value(&field.get), field.unit)).collect()));
        header.into_iter().chain(rows).collect()
    }
}
