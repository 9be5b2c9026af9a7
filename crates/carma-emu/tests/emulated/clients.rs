//! Programs from the Python package index that know nothing of emulation: what they show, against the state.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use carma_emu::readings::power_limits;
use carma_emu::state::{ContextKind, ContextRecord, Place};
use carma_testing::{Missing, need};
use serde_json::{Value, json};

use crate::support::{Emulated, MIB, Sleeper, training};

/// Where the programs are: `CARMA_CLIENTS`, else where `make clients` puts them.
fn programs() -> Result<PathBuf, Missing> {
    let built = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients");
    let folder = std::env::var_os("CARMA_CLIENTS").map_or_else(built, PathBuf::from).join("bin");
    if folder.join("nvitop").exists() { Ok(folder) } else { Err(Missing::PythonClients(folder)) }
}

/// What a program prints when it meets the machine.
fn output(emulated: &Emulated, program: &Path, arguments: &[&OsStr]) -> String {
    let mut command = Command::new(program);
    command.args(arguments).envs(emulated.machine.environment()).env("PYTHONNOUSERSITE", "1").stdin(Stdio::null());
    let output = command.env("COLUMNS", "120").env("TERM", "dumb").env_remove("CUDA_VISIBLE_DEVICES").output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// GPUs of three kinds with processes of every kind.
fn server() -> (Emulated, Vec<Sleeper>) {
    let emulated = Emulated::new("2xA100-40GB,1xH100-80GB,1xRTX-3090-24GB");
    let processes: Vec<Sleeper> = (0..5).map(|_| Sleeper::new()).collect();
    let on = |process: usize, gpu: usize, mib: u64, kind: ContextKind| {
        let one = training(processes[process].pid(), gpu, mib * MIB);
        let counters = one.counters.map(|counter| counter * (process + 1) as f64 / 8.0);
        emulated.attach(ContextRecord { kind: kind as u32, counters, ..one });
    };
    on(0, 0, 12_345, ContextKind::Compute);
    on(1, 0, 4321, ContextKind::Compute);
    on(2, 1, 77, ContextKind::MpsServer);
    on(3, 1, 9000, ContextKind::MpsClient);
    on(4, 3, 333, ContextKind::Graphics);
    on(0, 3, 2000, ContextKind::Compute);
    emulated.with(|state| {
        (state.gpus[0].ecc_uncorrected, state.gpus[1].compute_mode, state.gpus[2].persistence, state.gpus[3].display) = (3, 3, 1, 1);
        state.gpus[0].leaked = 111 * MIB;
    });
    (emulated, processes)
}

/// Processes of a list with their memory, as the state has them.
fn processes(emulated: &Emulated, gpu: usize, kinds: &[ContextKind]) -> Value {
    let mut all: Vec<(u32, u64)> = emulated.with(|state| {
        let listed = state.contexts_at(Place::gpu(gpu)).filter(|context| kinds.contains(&context.kind()));
        listed.map(|context| (context.pid, context.bytes)).collect()
    });
    all.sort_unstable();
    json!(all)
}

#[test]
fn nvidia_ml_py_and_nvitop_show_every_number_as_it_is() {
    let programs = need!(programs());
    let (emulated, _running) = server();
    let joules = |gpu: usize| emulated.with(|state| state.gpus[gpu].engine.joules);
    let before: Vec<f64> = (0..4).map(joules).collect();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/emulated/clients/numbers.py");
    let mut seen: Value = serde_json::from_str(&output(&emulated, &programs.join("python"), &[script.as_os_str()])).unwrap();
    assert_eq!((seen["driver"].as_str(), seen["cuda"].as_u64()), (Some("575.57.08"), Some(12_090)));
    for gpu in 0..4 {
        let (readings, memory, record, profile) =
            emulated.with(|state| (state.readings(gpu), state.memory(Place::gpu(gpu)), state.gpus[gpu], state.profile(gpu)));
        let facts = &profile.facts;
        let energy = seen["nvml"][gpu].as_object_mut().unwrap().remove("energy").unwrap().as_f64().unwrap();
        assert!((before[gpu] * 1000.0 - 1.0..=joules(gpu) * 1000.0).contains(&energy));
        let all = [ContextKind::Compute, ContextKind::MpsClient, ContextKind::MpsServer];
        let common = json!({
            "name": facts.product,
            "uuid": record.uuid.get(),
            "bus": format!("00000000:{:02X}:00.0", record.bus),
            "memory": [memory.total, memory.used + memory.reserved, memory.free()],
            "utilisation": [readings.utilisation, readings.memory_utilisation],
            "power": readings.milliwatts,
            "power_limit": record.power_limit,
            "temperature": readings.temperature,
            "clocks": [readings.sm_clock, readings.memory_clock],
            "performance_state": readings.performance_state,
            "fan": readings.fan,
            "ecc": facts.ecc.then_some(record.ecc_uncorrected),
            "compute_mode": record.compute_mode,
            "persistence": record.persistence,
            "display": record.display,
        });
        let of_nvml = json!({
            "device_id": facts.device_id,
            "capability": facts.capability,
            "architecture": facts.architecture,
            "cores": facts.cores,
            "memory_v2": [memory.total, memory.reserved, memory.used, memory.free()],
            "decoder": 0,
            "power_field": readings.milliwatts,
            "power_limits": [power_limits(profile.kind).start(), power_limits(profile.kind).end()],
            "temperature_v": readings.temperature,
            "compute": processes(&emulated, gpu, &all),
            "compute_v2": processes(&emulated, gpu, &all),
            "graphics": processes(&emulated, gpu, &[ContextKind::Graphics]),
            "clients": processes(&emulated, gpu, &[ContextKind::MpsClient]),
            "throughput": null,
        });
        assert_eq!(seen["nvml"][gpu], merged(&common, &of_nvml), "nvidia-ml-py on GPU {gpu}");
        let of_nvitop = json!({
            "memory": [memory.total, memory.used, memory.free()],
            "performance_state": format!("P{}", readings.performance_state),
            "compute_mode": (["Default", "Exclusive Thread", "Prohibited", "Exclusive Process"][record.compute_mode as usize]),
            "persistence": on_or_off(record.persistence, "Enabled", "Disabled"),
            "display": on_or_off(record.display, "Enabled", "Disabled"),
            "processes": shown(&emulated, gpu),
        });
        assert_eq!(seen["nvitop"][gpu], merged(&common, &of_nvitop), "nvitop on GPU {gpu}");
    }
}

/// Processes as nvitop lists them: with the letter of their kind.
fn shown(emulated: &Emulated, gpu: usize) -> Value {
    let mut all: Vec<(u32, u64, &str)> = emulated.with(|state| {
        let letter = |kind| if kind == ContextKind::Graphics { "G" } else { "C" };
        state.contexts_at(Place::gpu(gpu)).map(|context| (context.pid, context.bytes, letter(context.kind()))).collect()
    });
    all.sort_unstable();
    json!(all)
}

fn on_or_off(value: u32, on: &str, off: &str) -> Value {
    json!(if value == 1 { on } else { off })
}

/// The first with what the second says otherwise.
fn merged(first: &Value, second: &Value) -> Value {
    let mut all = first.as_object().unwrap().clone();
    all.extend(second.as_object().unwrap().clone());
    Value::Object(all)
}

#[test]
fn gpustat_shows_every_number_as_it_is() {
    let programs = need!(programs());
    let (emulated, _running) = server();
    let seen: Value = serde_json::from_str(&output(&emulated, &programs.join("gpustat"), &["--json".as_ref()])).unwrap();
    for gpu in 0..4 {
        let (readings, memory, record) = emulated.with(|state| (state.readings(gpu), state.memory(Place::gpu(gpu)), state.gpus[gpu]));
        let shown = &seen["gpus"][gpu];
        let numbers =
            ["memory.total", "memory.used", "utilization.gpu", "power.draw", "enforced.power.limit", "temperature.gpu", "fan.speed"];
        let expected = json!([
            memory.total / MIB,
            memory.used / MIB,
            readings.utilisation,
            readings.milliwatts / 1000,
            record.power_limit / 1000,
            readings.temperature,
            readings.fan
        ]);
        assert_eq!(json!(numbers.map(|number| shown[number].clone())), expected, "{shown:#}");
        let mut listed: Vec<(u64, u64)> = shown["processes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one["pid"].as_u64().unwrap(), one["gpu_memory_usage"].as_u64().unwrap()))
            .collect();
        listed.sort_unstable();
        let mut expected: Vec<(u64, u64)> = emulated
            .with(|state| state.contexts_at(Place::gpu(gpu)).map(|context| (u64::from(context.pid), context.bytes / MIB)).collect());
        expected.sort_unstable();
        assert_eq!(listed, expected);
    }
}

/// What nvitop draws, and the part of it that is about GPUs.
fn nvitop(emulated: &Emulated, programs: &Path) -> (String, String) {
    let table = output(emulated, &programs.join("nvitop"), &["--once".as_ref(), "--no-unicode".as_ref()]);
    let gpus = table.lines().skip_while(|line| !line.starts_with('+')).take_while(|line| !line.starts_with('['));
    // Which version it is does not matter, and the date before the table even less.
    let gpus = gpus.filter(|line| !line.contains("NVITOP")).collect::<Vec<_>>().join("\n");
    (table, gpus)
}

#[test]
fn a_partitioned_gpu_is_shown_with_its_instances() {
    let programs = need!(programs());
    let emulated = Emulated::new("2xA100-40GB");
    emulated.partition(0, &["3g.20gb", "1g.5gb"]);
    let running = [0, 1].map(|instance: u32| {
        let process = Sleeper::new();
        emulated.attach(ContextRecord { instance, ..training(process.pid(), 0, u64::from(instance + 1) * 1000 * MIB) });
        process
    });
    let (table, gpus) = nvitop(&emulated, &programs);
    insta::assert_snapshot!(gpus);
    assert!(running.iter().all(|process| table.contains(&process.pid().to_string())), "{table}");
    let seen: Value = serde_json::from_str(&output(&emulated, &programs.join("gpustat"), &["--json".as_ref()])).unwrap();
    let listed = seen["gpus"][0]["processes"].as_array().unwrap().iter().map(|one| one["pid"].as_u64().unwrap());
    assert_eq!(listed.collect::<Vec<_>>(), running.each_ref().map(|process| u64::from(process.pid())));
    assert_eq!(seen["gpus"][0]["memory.used"], 3000);
}

#[test]
fn nvitop_draws_its_table() {
    let programs = need!(programs());
    let (emulated, running) = server();
    let (table, gpus) = nvitop(&emulated, &programs);
    insta::assert_snapshot!(gpus);
    assert!(running.iter().all(|process| table.contains(&process.pid().to_string())), "{table}");
}
