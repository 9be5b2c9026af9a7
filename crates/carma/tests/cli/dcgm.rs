//! Counters of emulated GPUs, through the same programs and pages as real ones.

use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::time::{Duration, Instant};
use std::{fs, thread};

use carma_emu::Machine;
use carma_emu::state::{ContextKind, ContextRecord, NONE, Text, started};
use carma_gpu::profiling::dcgmi::{Stream, gpus};
use carma_gpu::profiling::fields::by_id;
use carma_gpu::profiling::{Counters, Options, Problem, Profiler, Source, SourceState, Status, Target};
use carma_gpu::{DEADLINE, DeviceUuid, Driver};
use tempfile::TempDir;

/// Long enough for any machine.
const TIMEOUT: Duration = Duration::from_secs(60);
const INTERVAL: Duration = Duration::from_millis(50);

fn machine(gpus: &str) -> (TempDir, Machine) {
    let folder = tempfile::tempdir().unwrap();
    let machine = Machine::create(folder.path(), &gpus.parse().unwrap(), 1.0, Some(Path::new(env!("CARGO_BIN_EXE_carma")))).unwrap();
    (folder, machine)
}

/// This process computes on a GPU or one of its instances.
fn compute(machine: &Machine, gpu: u32, instance: u32, counters: [f64; 4]) {
    let pid = std::process::id();
    let context =
        ContextRecord { pid, gpu, instance, bytes: 3 << 30, busy: 1, counters, watts: 100.0, ..ContextRecord::new(ContextKind::Compute) };
    machine.with(|state| state.attach(context, started(pid).unwrap())).unwrap().unwrap();
}

fn uuid(machine: &Machine, gpu: usize) -> DeviceUuid {
    machine.with(|state| state.gpus[gpu].uuid.get().parse()).unwrap().unwrap()
}

fn run(machine: &Machine, program: &str, arguments: &[&str]) -> Output {
    Command::new(machine.programs().join(program)).args(arguments).output().unwrap()
}

fn text(machine: &Machine, program: &str, arguments: &[&str]) -> String {
    let output = run(machine, program, arguments);
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// Polls until there is an answer.
fn wait<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(began.elapsed() < TIMEOUT, "{what} never came");
        thread::sleep(Duration::from_millis(5));
    }
}

fn options(machine: &Machine) -> Options {
    // No process listens on port 1.
    Options { dcgmi: machine.programs().join("dcgmi"), exporter: "http://127.0.0.1:1/metrics".into(), forced: None, interval: INTERVAL }
}

fn profiler(machine: &Machine, targets: Vec<Target>, options: Options) -> Profiler {
    let driver = Driver::open(Some(&machine.library()), DEADLINE).unwrap();
    Profiler::start(Arc::new(driver), targets, options).unwrap()
}

/// The counters are those that the state has, as far as its models go.
fn assert_levels(counters: &Counters, levels: [f64; 4]) {
    let value = |id| counters.get(by_id(id).unwrap());
    let read = [1002, 1003, 1005, 1001].map(|id| value(id).unwrap());
    assert!(read.iter().zip(levels).all(|(read, level)| (read - level).abs() < 0.002), "{read:?} against {levels:?}");
    assert_eq!((value(1004), value(1009)), (None, None), "nothing is made up");
}

/// Processes of a machine's `dcgmi dmon`, running or not yet reaped.
fn streams(machine: &Machine) -> Vec<u32> {
    let program = machine.programs().join("dcgmi");
    let is_ours = |pid: &u32| {
        let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.starts_with(program.as_os_str().as_encoded_bytes()) && line.windows(4).any(|part| part == b"dmon")
    };
    let processes = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    processes.filter(is_ours).collect()
}

/// Children of this process that are not yet reaped.
fn zombies() -> usize {
    let children = fs::read_dir("/proc").unwrap().flatten().filter(|entry| {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let fields: Vec<&str> = stat.rsplit_once(')').map_or(Vec::new(), |(_, fields)| fields.split_whitespace().collect());
        fields.first() == Some(&"Z") && fields.get(1) == Some(&std::process::id().to_string().as_str())
    });
    children.count()
}

#[test]
fn dcgmi_prints_counters_as_the_real_one_does() {
    let (_folder, machine) = machine("2xA100-40GB");
    compute(&machine, 1, NONE, [0.926, 0.4, 0.869, 1.0]);
    let listed = gpus(&text(&machine, "dcgmi", &["discovery", "-l"]));
    assert_eq!(listed.into_iter().map(|(_, unit)| unit.gpu).collect::<Vec<_>>(), [uuid(&machine, 0), uuid(&machine, 1)]);
    let printed = text(&machine, "dcgmi", &["dmon", "-e", "1001,1002,1005", "-d", "20", "-c", "2"]);
    let [smact, _, drama, gract] = machine.with(|state| state.gpus[1].engine.levels).unwrap();
    let expected = format!(
        "\
#Entity   GRACT        SMACT        DRAMA
ID
GPU 1     N/A          N/A          N/A
GPU 0     N/A          N/A          N/A
GPU 1     {gract:.3}        {smact:.3}        {drama:.3}
GPU 0     0.000        0.000        0.000
"
    );
    assert_eq!(printed, expected);
    assert!(smact > 0.5 && drama > 0.5 && gract > 0.5);
    // Called by its bare name it finds its machine too.
    let by_name = Command::new("dcgmi").args(["dmon", "-e", "252", "-c", "1", "-i", "1"]).env("PATH", machine.programs()).output().unwrap();
    assert_eq!(String::from_utf8(by_name.stdout).unwrap(), "#Entity   FBUSD\nID\nGPU 1     3072\n");
    assert!(!run(&machine, "dcgmi", &["dmon", "-e", "1001", "-i", "9", "-c", "1"]).status.success());
}

#[test]
fn gpus_without_profiling_read_nothing() {
    let (_folder, machine) = machine("1xRTX-2080Ti-11GB");
    compute(&machine, 0, NONE, [0.5, 0.5, 0.5, 0.75]);
    let printed = text(&machine, "dcgmi", &["dmon", "-e", "1002,203", "-d", "20", "-c", "2"]);
    assert!(printed.ends_with("\nGPU 0     N/A          75\nGPU 0     N/A          75\n"), "{printed}");
}

#[test]
fn counters_come_from_a_stream_that_is_begun_again_when_it_ends() {
    let (_folder, machine) = machine("2xA100-40GB");
    compute(&machine, 0, NONE, [0.6, 0.3, 0.2, 0.9]);
    let [first, second] = [0, 1].map(|gpu| uuid(&machine, gpu));
    let profiler = profiler(&machine, vec![Target::gpu(first.clone()), Target::gpu(second.clone())], options(&machine));
    let counters = || wait("counters", || profiler.counters(&first).zip(profiler.counters(&second)));
    let levels = machine.with(|state| state.gpus[0].engine.levels).unwrap();
    let (busy, idle) = counters();
    assert_levels(&busy, levels);
    assert_levels(&idle, [0.0; 4]);
    assert_eq!(profiler.source(&first), Source::Dcgmi);
    let dcgmi = &profiler.report()[1];
    assert_eq!((dcgmi.state.clone(), dcgmi.to_string().as_str()), (SourceState::Used(2), "dcgmi: used for 2 devices"));

    let [before] = streams(&machine)[..] else { panic!("one program, not one a sample") };
    assert!(Command::new("kill").args(["-9", &before.to_string()]).status().unwrap().success());
    let after = wait("another stream", || streams(&machine).into_iter().find(|pid| *pid != before));
    let killed = Instant::now();
    wait("counters from it", || profiler.counters(&first).filter(|counters| counters.at > killed));
    assert_eq!(zombies(), 0);

    drop(profiler);
    wait("its end", || streams(&machine).is_empty().then_some(()));
    wait("its end", || (!Path::new(&format!("/proc/{after}")).exists() && zombies() == 0).then_some(()));
}

#[test]
fn instances_have_counters_of_their_own() {
    let (_folder, machine) = machine("1xA100-40GB");
    let instance: DeviceUuid = "MIG-11111111-2222-8333-8444-555555555555".parse().unwrap();
    machine
        .with(|state| {
            state.gpus[0].mig = 1;
            let record = &mut state.gpus[0].instances[2];
            (record.used, record.computes, record.id, record.uuid) = (1, 1, 9, Text::new(instance.as_str()));
            state.touch();
        })
        .unwrap();
    compute(&machine, 0, 2, [0.7, 0.35, 0.2, 0.8]);
    let levels = machine.with(|state| (state.gpus[0].engine.levels, state.gpus[0].instances[2].engine.levels)).unwrap();
    assert!(levels.0[0] < levels.1[0], "a part of the whole");
    let gpu = uuid(&machine, 0);
    let targets = vec![Target::gpu(gpu.clone()), Target::instance(instance.clone(), gpu.clone(), 9)];
    let profiler = profiler(&machine, targets, options(&machine));
    assert_levels(&wait("the instance's counters", || profiler.counters(&instance)), levels.1);
    assert_levels(&wait("the GPU's counters", || profiler.counters(&gpu)), levels.0);
}

#[test]
fn without_dcgmi_the_exporters_page_is_read() {
    let (folder, machine) = machine("2xA100-40GB");
    compute(&machine, 1, NONE, [0.6, 0.3, 0.2, 0.9]);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let served = folder.path().to_owned();
    // It serves until the test is over.
    thread::spawn(move || carma_emu::dcgm::serve(&Machine::open(&served).unwrap(), &listener));
    let options = Options { dcgmi: "/nonexistent/dcgmi".into(), exporter: format!("http://{address}/metrics"), ..options(&machine) };
    let gpu = uuid(&machine, 1);
    let profiler = profiler(&machine, vec![Target::gpu(gpu.clone())], options);
    let levels = machine.with(|state| state.gpus[1].engine.levels).unwrap();
    assert_levels(&wait("counters", || profiler.counters(&gpu)), levels);
    assert_eq!(profiler.source(&gpu), Source::Exporter);
}

#[test]
fn a_missing_counter_source_is_explained() {
    let (_folder, machine) = machine("1xA100-40GB");
    let gpu = uuid(&machine, 0);
    let options = Options { dcgmi: "/nonexistent/dcgmi".into(), ..options(&machine) };
    let profiler = profiler(&machine, vec![Target::gpu(gpu.clone())], options);
    let settled = |report: &Vec<_>| {
        !report.iter().any(|source: &carma_gpu::profiling::SourceReport| {
            matches!(source.state, SourceState::Starting | SourceState::Absent(Problem::NotAsked))
        })
    };
    let report = wait("a report", || Some(profiler.report()).filter(settled));
    let lines: Vec<String> = report.iter().map(|source| format!("{source}\n    {}", source.remedy().unwrap_or("-"))).collect();
    insta::assert_snapshot!("profiling-report", lines.join("\n"));
    assert_eq!((profiler.source(&gpu), profiler.counters(&gpu)), (Source::UtilisationOnly, None));
}

#[test]
fn a_lost_host_engine_is_noticed_and_found_again() {
    let (folder, machine) = machine("1xA100-40GB");
    let state = folder.path().join("state");
    let away = folder.path().join("away");
    fs::rename(&state, &away).unwrap();
    let stream = Stream::start(machine.programs().join("dcgmi"), INTERVAL, []).unwrap();
    wait("its absence", || (stream.status() == Status::Failing(Problem::NoHostEngine)).then_some(()));
    fs::rename(&away, &state).unwrap();
    wait("its return", || (stream.status() == Status::Running).then_some(()));
}

#[test]
fn nvidia_smi_shows_what_scripts_ask_for() {
    let (_folder, machine) = machine("2xA100-40GB");
    compute(&machine, 0, NONE, [0.6, 0.3, 0.2, 0.9]);
    let uuids = [0, 1].map(|gpu| uuid(&machine, gpu));
    let listed = text(&machine, "nvidia-smi", &["-L"]);
    let expected = [0, 1].map(|gpu| format!("GPU {gpu}: NVIDIA A100-SXM4-40GB (UUID: {})\n", uuids[gpu])).concat();
    assert_eq!(listed, expected);
    let fields =
        "--query-gpu=index,name,memory.total,memory.used,utilization.gpu,power.draw,fan.speed,compute_mode,mig.mode.current,pstate";
    insta::assert_snapshot!("nvidia-smi-query", text(&machine, "nvidia-smi", &[fields, "--format=csv"]));
    let bare = text(&machine, "nvidia-smi", &["--query-gpu=memory.used,uuid", "--format=csv,noheader,nounits", "-i", "1"]);
    assert_eq!(bare, format!("0, {}\n", uuids[1]));
    let apps = text(&machine, "nvidia-smi", &["--query-compute-apps=pid,used_memory,gpu_uuid", "--format=csv"]);
    assert_eq!(apps, format!("pid, used_gpu_memory [MiB], gpu_uuid\n{}, 3072 MiB, {}\n", std::process::id(), uuids[0]));
    let table = text(&machine, "nvidia-smi", &[]);
    let widths: Vec<usize> = table.lines().map(|line| line.chars().count()).filter(|width| *width > 0).collect();
    assert!(widths.iter().all(|width| *width == widths[0]), "{table}");
    let own = std::process::id().to_string();
    let shown: Vec<&str> = table.lines().map(|line| if line.contains(&own) { "[this process]" } else { line }).collect();
    insta::assert_snapshot!("nvidia-smi", shown.join("\n"));
    for (program, option) in [("nvidia-smi", "-q"), ("dcgmi", "stats")] {
        let unknown = run(&machine, program, &[option]);
        let message = String::from_utf8(unknown.stderr).unwrap();
        assert!(!unknown.status.success() && unknown.stdout.is_empty());
        assert!(message.starts_with(&format!("{option} is not emulated: this stand-in knows ")), "{message}");
    }
    machine.with(|state| state.gpus[1].lost = 1).unwrap();
    let lost = run(&machine, "nvidia-smi", &[]);
    assert_eq!(lost.status.code(), Some(15));
    assert!(String::from_utf8(lost.stdout).unwrap().contains("GPU is lost."));
}

#[test]
fn from_hopper_on_nvml_itself_gives_the_counters_and_nothing_is_started() {
    let (_folder, machine) = machine("2xH100-80GB");
    compute(&machine, 0, NONE, [0.6, 0.3, 0.2, 0.9]);
    let gpu = uuid(&machine, 0);
    let targets = [0, 1].map(|gpu| Target::gpu(uuid(&machine, gpu)));
    let profiler = profiler(&machine, targets.to_vec(), options(&machine));
    let levels = machine.with(|state| state.gpus[0].engine.levels).unwrap();
    assert_levels(&wait("counters", || profiler.counters(&gpu)), levels);
    assert_eq!(profiler.report()[0].state, SourceState::Used(2));
    assert_eq!(profiler.report()[1].state, SourceState::Absent(Problem::NotAsked));
    assert!(streams(&machine).is_empty());
    // A lost device has none, and the others still do.
    machine.with(|state| state.gpus[0].lost = 1).unwrap();
    wait("its loss", || profiler.counters(&gpu).is_none().then_some(()));
    assert_levels(&wait("the other's counters", || profiler.counters(&targets[1].uuid)), [0.0; 4]);
}
