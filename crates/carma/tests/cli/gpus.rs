//! Commands about GPUs, on emulated ones.

use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use carma_emu::state::{ContextKind, ContextRecord, started};
use carma_emu::{DriverVersion, Machine};
use carma_testing::{Missing, skip};
use serde_json::Value;
use tempfile::TempDir;

/// An emulated server with processes that do nothing but hold memory.
struct Server {
    folder: TempDir,
    machine: Machine,
    processes: Vec<Child>,
}

impl Server {
    fn new(gpus: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let machine = Machine::create(folder.path(), &gpus.parse().unwrap(), 1.0, Some(Path::new(env!("CARGO_BIN_EXE_carma")))).unwrap();
        Self { folder, machine, processes: Vec::new() }
    }

    fn occupy(&mut self, gpu: u32, gibibytes: u64) {
        let process = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let context = ContextRecord {
            pid: process.id(),
            gpu,
            bytes: gibibytes << 30,
            busy: 1,
            counters: [0.4, 0.2, 0.2, 0.9],
            watts: 100.0,
            ..ContextRecord::new(ContextKind::Compute)
        };
        self.machine.with(|state| state.attach(context, started(process.id()).unwrap())).unwrap().unwrap();
        self.processes.push(process);
    }

    fn carma(&self, arguments: &[&str]) -> Output {
        self.command(arguments, &[]).output().unwrap()
    }

    fn command(&self, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
        command.args(arguments).env("XDG_CONFIG_HOME", "/nonexistent").env("LC_ALL", "C.UTF-8").env("CARMA_EMU", self.folder.path());
        // Nor does a manager of this machine.
        command.env("CARMA_SOCKET", self.folder.path().join("carma.sock")).env_remove("CARMA_HOST");
        // An allocation of the tests themselves does not apply to emulated GPUs.
        for name in ["CUDA_VISIBLE_DEVICES", "SLURM_JOB_ID", "SLURM_JOB_GPUS", "SLURM_STEP_GPUS"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied());
        command
    }

    /// The output of a command inside an allocation.
    fn shows_inside(&self, variables: &[(&str, &str)], arguments: &[&str]) -> String {
        let output = self.command(arguments, variables).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.plain(&output.stdout)
    }

    /// The output of a command that must succeed, without parts that differ from run to run.
    fn shows(&self, arguments: &[&str]) -> String {
        let output = self.carma(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        self.plain(&output.stdout)
    }

    fn refuses(&self, arguments: &[&str]) -> String {
        let output = self.carma(arguments);
        assert!(!output.status.success() && output.stdout.is_empty());
        self.plain(&output.stderr)
    }

    fn plain(&self, text: &[u8]) -> String {
        let mut text = String::from_utf8_lossy(text).replace(self.folder.path().to_str().unwrap(), "[folder]");
        for process in &self.processes {
            text = text.replace(&format!("{:>8}", process.id()), "   [pid]").replace(&process.id().to_string(), "[pid]");
        }
        // The user who runs the tests.
        text.replace("root      ", "[user]    ")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        for process in &mut self.processes {
            process.kill().unwrap();
            process.wait().unwrap();
        }
    }
}

#[test]
fn gpus_are_shown_with_their_processes_and_where_the_numbers_come_from() {
    let mut server = Server::new("2xA100-40GB,1xH100-80GB,1xRTX-2080Ti-11GB");
    server.occupy(0, 5);
    server.occupy(0, 12);
    server.occupy(2, 70);
    server.machine.with(|state| state.gpus[1].lost = 1).unwrap();
    let table = server.shows(&["gpus"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    insta::assert_snapshot!("gpus", table);
    insta::assert_snapshot!("gpus-plain", server.shows(&["gpus", "--plain"]));
    assert!(server.shows_inside(&[("LC_ALL", "C")], &["gpus"]).is_ascii());
    // A script that asks for JSON gets the same.
    let report: Value = serde_json::from_str(&server.shows(&["gpus", "--json"]).replace("[pid]", "1")).unwrap();
    let gpus = report["gpus"].as_array().unwrap();
    assert_eq!((gpus.len(), gpus[0]["source"].as_str(), gpus[1]["source"].as_str()), (3, Some("dcgmi"), Some("gpm")));
    assert_eq!(gpus[0]["processes"][0]["command"], "sleep 1000");
    assert_eq!((gpus[0]["memory_used"].as_u64(), gpus[0]["memory"].as_u64()), (Some(17 * 1024), Some(40_960)));
    assert!(gpus[0]["counters"]["smact"].as_f64().unwrap() > 0.3 && gpus[0]["energy"].as_f64().unwrap() > 0.0);
    assert_eq!(report["left_out"][0]["index"], 1);
}

#[test]
fn gpus_that_are_not_in_the_allocation_are_shown_with_the_reason() {
    let server = Server::new("2xA100-40GB,1xH100-80GB");
    let visible = [("CUDA_VISIBLE_DEVICES", "1")];
    let table = server.shows_inside(&visible, &["gpus", "--quick"]);
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    insta::assert_snapshot!("gpus-allocation", table);
    let report: Value = serde_json::from_str(&server.shows_inside(&visible, &["gpus", "--json", "--quick"])).unwrap();
    assert_eq!((report["gpus"].as_array().unwrap().len(), &report["gpus"][0]["index"]), (1, &Value::from(1)));
    assert_eq!(report["left_out"][1]["reason"]["excluded"], "not_visible");
    assert_eq!(report["left_out"][1]["uuid"], server.machine.with(|state| state.gpus[2].uuid.get().to_owned()).unwrap());
    insta::assert_snapshot!("doctor-allocation", about_gpus(&server.shows_inside(&visible, &["doctor"])));
    let slurm = [("SLURM_JOB_ID", "9"), ("SLURM_JOB_GPUS", "0,2")];
    assert!(server.shows_inside(&slurm, &["doctor"]).contains("GPU 1 is not used: not in this Slurm job (SLURM_JOB_GPUS)"));
    // Instances of other users do not change either.
    for arguments in [&["mig", "apply", "--gpu", "0", "1g.5gb"][..], &["mps", "start", "--gpu", "0"]] {
        let refused = server.command(arguments, &visible).output().unwrap();
        assert!(!refused.status.success());
        assert_eq!(server.plain(&refused.stderr), "carma: GPU 0 is not used: not in CUDA_VISIBLE_DEVICES\n");
    }
}

#[test]
fn only_allocated_instances_of_a_partitioned_gpu_are_shown() {
    let server = Server::new("1xA100-40GB");
    server.shows(&["mig", "apply", "--gpu", "0", "3g.20gb,2x1g.5gb"]);
    let uuid = server.machine.with(|state| state.instances(0)[1].1.uuid.get().to_owned()).unwrap();
    let visible = [("CUDA_VISIBLE_DEVICES", uuid.as_str())];
    let report: Value = serde_json::from_str(&server.shows_inside(&visible, &["gpus", "--json", "--quick"])).unwrap();
    let parts = report["gpus"][0]["parts"].as_array().unwrap();
    assert_eq!((parts.len(), &parts[0]["uuid"]), (1, &Value::from(uuid.as_str())));
    assert!(server.shows_inside(&visible, &["gpus", "--quick"]).contains("! its other MIG instances are not in CUDA_VISIBLE_DEVICES"));
    let refused = server.command(&["mig", "apply", "--gpu", "0", "off"], &visible).output().unwrap();
    let words = "carma: GPU 0 is not yours as a whole: its other MIG instances are not in CUDA_VISIBLE_DEVICES\n";
    assert_eq!((refused.status.success(), server.plain(&refused.stderr).as_str()), (false, words));
}

#[test]
fn a_partitioned_gpu_shows_its_parts() {
    let server = Server::new("1xA100-40GB,1xRTX-3090-24GB");
    assert_eq!(
        server.shows(&["mig", "apply", "--gpu", "0", "3g.20gb,2x1g.5gb", "--dry-run"]),
        "switch MIG on\ncreate 3g.20gb at 0:4\ncreate 1g.5gb at 4:1\ncreate 1g.5gb at 5:1\n"
    );
    server.shows(&["mig", "apply", "--gpu", "0", "3g.20gb,2x1g.5gb"]);
    insta::assert_snapshot!("gpus-mig", server.shows(&["gpus", "--quick"]));
    let shown = server.shows(&["mig", "show"]);
    assert!(
        shown.starts_with("GPU 0  NVIDIA A100-SXM4-40GB is partitioned into\n")
            && shown.contains("RTX 3090 cannot be partitioned into instances"),
        "{shown}"
    );
    assert_eq!(server.shows(&["mig", "apply", "--gpu", "0", "2x1g.5gb,3g.20gb"]), "nothing to do: it has this layout\n");
    let refused = server.refuses(&["mig", "apply", "--gpu", "0", "4g.20gb,4g.20gb"]);
    assert_eq!(refused, "carma: this GPU has room for 1 MIG instance(s) of profile 4g.20gb, not 2\n");
    assert!(server.refuses(&["mig", "apply", "--gpu", "7", "off"]).contains("GPU 7 does not exist: `carma gpus` lists all"));
    assert!(server.refuses(&["mig", "apply", "--gpu", "1", "1g.5gb"]).contains("does not support MIG"));
}

#[test]
fn an_mps_daemon_is_started_used_and_stopped() {
    let server = Server::new("2xA100-40GB");
    assert_eq!(server.shows(&["mps", "status"]), "GPU 0  NVIDIA A100-SXM4-40GB     no MPS\nGPU 1  NVIDIA A100-SXM4-40GB     no MPS\n");
    let started = server.carma(&["mps", "start", "--gpu", "1", "--active-threads", "50"]);
    assert!(started.status.success(), "{}", String::from_utf8_lossy(&started.stderr));
    assert!(server.shows(&["mps", "status"]).ends_with("GPU 1  NVIDIA A100-SXM4-40GB     MPS waits for its first client\n"));
    let mode = || server.machine.with(|state| state.gpus[1].compute_mode).unwrap();
    assert_eq!(mode(), 3, "EXCLUSIVE_PROCESS");
    assert!(server.refuses(&["mps", "start", "--gpu", "1"]).contains("already"));
    let environment = server.shows(&["mps", "env", "--gpu", "1", "--memory", "8GiB"]);
    assert!(environment.contains("export CUDA_MPS_PINNED_DEVICE_MEM_LIMIT='0=8192M'\n"), "{environment}");
    server.shows(&["mps", "stop", "--gpu", "1"]);
    assert_eq!(mode(), 0, "as it was");
    assert!(server.shows(&["mps", "status"]).ends_with("no MPS\n"));
}

/// What the doctor prints about GPUs: the rest differs between machines.
fn about_gpus(printed: &str) -> String {
    let (gpus, others) = printed.split_once("\n\n").unwrap();
    assert!(gpus.starts_with("GPUs\n") && others.starts_with("Manager\n"), "{printed}");
    gpus.to_owned()
}

#[test]
fn the_doctor_lists_the_gpus() {
    let server = Server::new("2xA100-40GB,1xRTX-2080Ti-11GB");
    insta::assert_snapshot!("doctor", about_gpus(&server.shows(&["doctor"])));
    let findings: Value = serde_json::from_str(&server.shows(&["doctor", "--json"])).unwrap();
    assert_eq!(findings[0]["health"], "ok");
}

#[test]
fn the_doctor_reports_features_of_later_drivers() {
    let server = Server::new("1xA100-40GB");
    let said = |server: &Server| server.shows(&["doctor"]).split_whitespace().collect::<Vec<_>>().join(" ");
    let before = said(&server);
    let needs_later = "reserved GPU memory is not enforced: enforcement needs driver 615 or later";
    assert!(before.contains("driver 575.57.08 with CUDA 12.9") && before.contains(needs_later), "{before}");
    assert!(!before.contains("MPS v3"), "{before}");
    server.machine.set_driver(DriverVersion::R615).unwrap();
    let later = said(&server);
    for words in ["with CUDA 13.4", "this driver has MPS v3"] {
        assert!(later.contains(words), "{words}: {later}");
    }
    assert!(!later.contains(needs_later), "{later}");
}

#[test]
fn the_full_doctor_checks_each_gpu_and_writes_a_report_without_names() {
    use carma_emu::fault::{CallAnswer, Fault, ThrottleReason};
    let mut server = Server::new("4xA100-40GB");
    server.occupy(0, 8);
    let faults = [
        Fault::Throttle { gpu: 0, reason: ThrottleReason::Thermal },
        Fault::Lost { gpu: 2 },
        Fault::Call { gpu: Some(3), call: None, answer: CallAnswer::Hangs },
    ];
    for fault in &faults {
        server.machine.with(|state| fault.inject(state)).unwrap().unwrap();
    }
    let file = server.folder.path().join("report.md");
    let printed = server.shows(&["doctor", "--full", "--output", file.to_str().unwrap()]);
    let report = std::fs::read_to_string(&file).unwrap();
    server.machine.with(|state| carma_emu::fault::clear(state, None)).unwrap();
    for row in [
        "| GPU 0 | it answers | yes |",
        "| GPU 0 | the memory of its processes sums up to that of the GPU | yes |",
        "| GPU 0 | it is not throttled now | NO | thermal |",
        "| GPU 1 | Xid and ECC events can be registered | yes |",
        "| GPU 1 | MIG instances have devices of their own, with numbers that processes name | unknown | MIG is off",
        "| GPU 2 | it is used | NO |",
        "| GPU 3 | it is used | NO |",
        "| dcgmi, GPU 0 | dcgmi writes each row at once | yes |",
        "| MPS | the MPS control daemon answers as CARMA reads it | yes |",
        "| library | it has nvmlDeviceGetProcessUtilization | yes |",
    ] {
        assert!(report.contains(row), "{row}: {report}");
    }
    let user = std::env::var("USER").unwrap_or_else(|_| "sleep".to_owned());
    let names = ["GPU-".to_owned(), "sleep".to_owned(), server.processes[0].id().to_string()];
    assert!(!names.iter().any(|name| report.contains(name.as_str())) && (user == "root" || !report.contains(&user)), "{report}");
    assert!(printed.contains("checks: ") && printed.contains("the report is in "), "{printed}");
    assert!(printed.contains("NO       GPU 0: it is not throttled now (thermal)"), "{printed}");
}

#[test]
fn a_machine_without_gpus_is_explained() {
    let absent = |arguments: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_carma")).args(arguments).env_remove("CARMA_EMU").env_remove("LD_LIBRARY_PATH").output().unwrap()
    };
    if Machine::default_folder().join("state").exists() || Path::new("/dev/nvidiactl").exists() {
        skip!(Missing::AbsenceOfGpus);
    }
    let doctor = absent(&["doctor"]);
    assert!(doctor.status.success());
    insta::assert_snapshot!("doctor-without", about_gpus(&String::from_utf8_lossy(&doctor.stdout)));
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.md");
    assert!(absent(&["doctor", "--full", "--output", report.to_str().unwrap()]).status.success());
    let report = std::fs::read_to_string(report).unwrap();
    assert!(report.contains("| driver | the library of the driver is found, and works | NO |"), "{report}");
    let gpus = absent(&["gpus"]);
    assert!(!gpus.status.success());
    insta::assert_snapshot!("gpus-without", String::from_utf8_lossy(&gpus.stderr));
}
