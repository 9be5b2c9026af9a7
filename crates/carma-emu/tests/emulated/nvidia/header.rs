//! A C program against NVIDIA's `nvml.h`: it calls every function of the stand-in with the arguments and structures that the header declares.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use carma_emu::state::Place;
use carma_testing::{Missing, need};

use crate::support::{Emulated, MIB, Sleeper, training};

const VERSIONS: [&str; 2] = ["12.9", "13.4"];

/// A function as a header declares it: its name, and the type of each argument.
type Functions = BTreeMap<String, Vec<String>>;

/// The parts of a header that the test needs.
struct Header {
    functions: Functions,
    /// Structures that begin with a version, and the macro of that version.
    versions: BTreeMap<String, String>,
}

impl Header {
    fn read(version: &str) -> Result<Self, Missing> {
        let text = fs::read_to_string(carma_testing::nvidia()?.join(format!("nvml-{version}/nvml.h"))).unwrap();
        let functions = text.split("nvmlReturn_t DECLDIR ").skip(1).filter_map(function).collect();
        let macros: BTreeSet<&str> = text.lines().filter_map(|line| line.strip_prefix("#define nvml")?.split_whitespace().next()).collect();
        let macro_of = |name: &str| {
            let stem = name.strip_prefix("nvml")?.strip_suffix("_t")?;
            macros.contains(stem).then(|| format!("nvml{stem}"))
        };
        let mut versions: BTreeMap<String, String> = BTreeMap::new();
        // `typedef nvmlUUID_v1_t nvmlUUID_t;`: the second name has the macro of the first.
        for line in text.lines().map(str::trim) {
            let words: Vec<&str> = line.trim_start_matches('}').trim_end_matches(';').split_whitespace().collect();
            match words.as_slice() {
                ["typedef", first, second] => drop(macro_of(first).map(|found| versions.insert((*second).to_owned(), found))),
                [name] if line.starts_with('}') => drop(macro_of(name).map(|found| versions.insert((*name).to_owned(), found))),
                _ => {}
            }
        }
        for (name, version) in [("nvmlGpmMetricsGet_t", "NVML_GPM_METRICS_GET_VERSION"), ("nvmlGpmSupport_t", "NVML_GPM_SUPPORT_VERSION")] {
            versions.insert(name.to_owned(), version.to_owned());
        }
        Ok(Self { functions, versions })
    }
}

/// The function that a text begins with: `nvmlName(type name, ...);`
fn function(text: &str) -> Option<(String, Vec<String>)> {
    let (name, rest) = text.split_once('(')?;
    let (arguments, _) = rest.split_once(");")?;
    let types = arguments.split(',').map(|argument| {
        let argument = argument.trim();
        // Without the name of the argument, which is the last word.
        let end = argument.rfind(|each: char| !(each.is_alphanumeric() || each == '_')).map_or(0, |place| place + 1);
        let name_only = end == 0;
        (if name_only { argument } else { &argument[..end] }).split_whitespace().collect::<Vec<_>>().join(" ")
    });
    Some((name.trim().to_owned(), types.filter(|kind| kind != "void").collect()))
}

/// The names that a library exports.
fn exports(library: &Path) -> BTreeSet<String> {
    let output = Command::new("nm").args(["--dynamic", "--defined-only"]).arg(library).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split_whitespace().nth(2)).filter(|name| name.starts_with("nvml")).map(str::to_owned).collect()
}

#[test]
fn every_function_of_nvidias_headers_is_there_or_left_out_for_a_reason() {
    let headers = VERSIONS.map(Header::read);
    let emulated = Emulated::new("1xA100-40GB");
    let ours = exports(&emulated.machine.library());
    let listed: Vec<(&str, &str)> = include_str!("left-out.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(' ').expect("a name and a reason"))
        .collect();
    let mut used = BTreeSet::new();
    for header in headers {
        for name in need!(header).functions.keys() {
            let matches = |pattern: &str| pattern.strip_suffix('*').map_or(pattern == name, |stem| name.starts_with(stem));
            let exact = listed.iter().find(|(pattern, _)| matches(pattern));
            match (ours.contains(name), exact) {
                (true, found) => assert!(found.is_none_or(|(pattern, _)| pattern.ends_with('*')), "{name} is there and listed as left out"),
                (false, Some((pattern, reason))) => {
                    assert!(!reason.trim().is_empty(), "{name} needs a reason");
                    used.insert(*pattern);
                }
                (false, None) => panic!("the stand-in has no {name}: add it, or list it in left-out.txt with a reason"),
            }
        }
    }
    let unused: Vec<&str> = listed.iter().map(|(pattern, _)| *pattern).filter(|pattern| !used.contains(pattern)).collect();
    assert!(unused.is_empty(), "left-out.txt lists what no header has: {unused:?}");
}

/// A call with one argument of each type: the device, zeroes, and zeroed structures with their version and guarded ends.
fn call(code: &mut String, name: &str, types: &[String], header: &Header) {
    let mut arguments = Vec::new();
    let (mut before, mut after) = (String::new(), String::new());
    for (place, kind) in types.iter().enumerate() {
        let text = kind.contains("char");
        let pointed =
            kind.trim_end_matches("[]").trim_end().strip_suffix('*').map(|kind| kind.trim().trim_start_matches("const ").trim().to_owned());
        match pointed {
            Some(_) if text && kind.contains("const") => arguments.push("\"GPU-none\"".to_owned()),
            Some(_) if text => {
                writeln!(
                    before,
                    "    struct {{ char value[96]; unsigned char guard[32]; }} a{place}; fill(&a{place}, sizeof a{place}, 96);"
                )
                .unwrap();
                writeln!(after, "    check(\"{name}\", a{place}.guard, 32);").unwrap();
                arguments.push(format!("a{place}.value"));
            }
            Some(pointed) if pointed != "void" && !pointed.ends_with('*') => {
                writeln!(before, "    struct {{ {pointed} value; unsigned char guard[32]; }} a{place};").unwrap();
                writeln!(before, "    fill(&a{place}, sizeof a{place}, sizeof a{place}.value);").unwrap();
                if let Some(version) = header.versions.get(&pointed) {
                    writeln!(before, "    *(unsigned int *)&a{place}.value = {version};").unwrap();
                }
                writeln!(after, "    check(\"{name}\", a{place}.guard, 32);").unwrap();
                arguments.push(format!("&a{place}.value"));
            }
            Some(_) => arguments.push("0".to_owned()),
            None if kind == "nvmlDevice_t" => arguments.push("device".to_owned()),
            // The room of a text.
            None if kind == "unsigned int" && types.iter().any(|other| other.contains("char") && !other.contains("const")) => {
                arguments.push("96".to_owned());
            }
            None => {
                writeln!(before, "    {kind} a{place}; memset(&a{place}, 0, sizeof a{place});").unwrap();
                arguments.push(format!("a{place}"));
            }
        }
    }
    writeln!(code, "{{\n{before}    printf(\"{name} %d\\n\", {name}({}));\n{after}}}", arguments.join(", ")).unwrap();
}

const BEGINNING: &str = r#"
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "nvml.h"
static void fill(void *all, size_t size, size_t value) { memset(all, 0xA5, size); memset(all, 0, value); }
static void check(const char *name, const unsigned char *guard, size_t size) {
    for (size_t i = 0; i < size; i++) if (guard[i] != 0xA5) { printf("%s OVERRUN\n", name); return; }
}
int main(void) {
    nvmlDevice_t device;
    if (nvmlInit_v2() || nvmlDeviceGetHandleByIndex_v2(0, &device)) return 1;
"#;

/// Values that the state knows, each read in C by NVIDIA's own structures.
const VALUES: &str = r#"
    unsigned int count = 0, number = 0, milliwatts = 0, temperature = 0;
    char text[96];
    nvmlDeviceGetCount_v2(&count);
    printf("= count %u\n", count);
    nvmlDeviceGetName(device, text, sizeof text);
    printf("= name %s\n", text);
    nvmlDeviceGetUUID(device, text, sizeof text);
    printf("= uuid %s\n", text);
    nvmlMemory_t first;
    nvmlDeviceGetMemoryInfo(device, &first);
    printf("= memory %llu %llu %llu\n", first.total, first.free, first.used);
    nvmlMemory_v2_t second = { .version = nvmlMemory_v2 };
    nvmlDeviceGetMemoryInfo_v2(device, &second);
    printf("= memory_v2 %llu %llu %llu %llu\n", second.total, second.reserved, second.free, second.used);
    nvmlUtilization_t busy;
    nvmlDeviceGetUtilizationRates(device, &busy);
    printf("= utilisation %u %u\n", busy.gpu, busy.memory);
    nvmlDeviceGetPowerUsage(device, &milliwatts);
    printf("= power %u\n", milliwatts);
    nvmlDeviceGetTemperature(device, NVML_TEMPERATURE_GPU, &temperature);
    printf("= temperature %u\n", temperature);
    nvmlPciInfo_t pci;
    nvmlDeviceGetPciInfo_v3(device, &pci);
    printf("= pci %s %x\n", pci.busId, pci.pciDeviceId);
    nvmlProcessInfo_t infos[8];
    number = 8;
    nvmlDeviceGetComputeRunningProcesses_v3(device, &number, infos);
    for (unsigned int i = 0; i < number; i++) printf("= process %u %llu\n", infos[i].pid, infos[i].usedGpuMemory);
    nvmlShutdown();
    return 0;
}
"#;

#[test]
fn a_program_compiled_against_nvidias_headers_gets_whole_structures_and_right_values() {
    for version in VERSIONS {
        let header = need!(Header::read(version));
        let folder = carma_testing::nvidia().unwrap().join(format!("nvml-{version}"));
        let emulated = Emulated::new("2xA100-40GB");
        let process = Sleeper::new();
        emulated.attach(training(process.pid(), 0, 4321 * MIB));
        let ours = exports(&emulated.machine.library());
        let mut code = BEGINNING.to_owned();
        let called: Vec<&String> =
            header.functions.keys().filter(|name| ours.contains(*name) && !["nvmlInit", "nvmlShutdown"].contains(&name.as_str())).collect();
        assert!(called.len() > 250 && header.versions.len() > 40, "{} calls, {} versions", called.len(), header.versions.len());
        for name in &called {
            // Calls that change the machine come last.
            if !name.starts_with("nvmlDeviceSet") {
                call(&mut code, name, &header.functions[*name], &header);
            }
        }
        code += VALUES.split_once("nvmlShutdown();").unwrap().0;
        for name in called.iter().filter(|name| name.starts_with("nvmlDeviceSet")) {
            call(&mut code, name, &header.functions[*name], &header);
        }
        code += "nvmlShutdown();";
        code += VALUES.split_once("nvmlShutdown();").unwrap().1;
        let scratch = tempfile::tempdir().unwrap();
        let [source, program] = ["calls.c", "calls"].map(|name| scratch.path().join(name));
        fs::write(&source, &code).unwrap();
        let mut compiler = Command::new("cc");
        compiler
            .args(["-std=c11", "-Wall", "-Werror", "-Wno-deprecated-declarations", "-o"])
            .arg(&program)
            .arg(&source)
            .arg("-I")
            .arg(&folder);
        let built = compiler.arg(emulated.machine.library()).output().unwrap();
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        let output = Command::new(&program).envs(emulated.machine.environment()).output().unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(output.status.success(), "{:?} after {}", output.status, printed.lines().last().unwrap_or_default());
        assert!(!printed.contains("OVERRUN"), "nvml.h {version}: {printed}");
        let codes: BTreeMap<&str, i32> = printed
            .lines()
            .filter(|line| !line.starts_with('='))
            .filter_map(|line| line.split_once(' '))
            .map(|(name, code)| (name, code.parse().unwrap()))
            .collect();
        assert_eq!(codes.len(), called.len());
        let mismatch = 25;
        let wrong: Vec<&str> = codes.iter().filter(|(_, code)| **code == mismatch).map(|(name, _)| *name).collect();
        assert!(wrong.is_empty(), "nvml.h {version} has other structures: {wrong:?}");
        let (readings, memory) = emulated.with(|state| (state.readings(0), state.memory(Place::gpu(0))));
        let uuid = emulated.with(|state| state.gpus[0].uuid.get().to_owned());
        let bus = emulated.with(|state| state.gpus[0].bus_id());
        let device = emulated.with(|state| state.profile(0).facts.device_id);
        let values = [
            "= count 2".to_owned(),
            "= name NVIDIA A100-SXM4-40GB".to_owned(),
            format!("= uuid {uuid}"),
            format!("= memory {} {} {}", memory.total, memory.free(), memory.used + memory.reserved),
            format!("= memory_v2 {} {} {} {}", memory.total, memory.reserved, memory.free(), memory.used),
            format!("= utilisation {} {}", readings.utilisation, readings.memory_utilisation),
            format!("= power {}", readings.milliwatts),
            format!("= temperature {}", readings.temperature),
            format!("= pci {bus} {device:x}"),
            format!("= process {} {}", process.pid(), 4321 * MIB),
        ];
        let seen: Vec<&str> = printed.lines().filter(|line| line.starts_with('=')).collect();
        assert_eq!(seen, values, "nvml.h {version}");
    }
}
