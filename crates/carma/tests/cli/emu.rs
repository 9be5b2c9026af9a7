//! Emulated GPUs with real processes on them. Time runs fast there, so that a job takes a second.

mod faults;
mod limits;
mod removal;
mod rights;
mod train;

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use carma_core::Fraction;
use carma_emu::Machine;
use carma_emu::state::{ContextRecord, Place};
use carma_sim::{Catalogue, Draw, GpuType, InterferenceModel, Neighbours, Physics, RankFacts};
use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

const WORKLOAD: &str = "resnet50_imagenet_bs64";
const PEAK: u64 = 7118 << 20;

/// An emulated server of its own for each test.
struct Emulated {
    folder: TempDir,
    machine: Machine,
}

impl Emulated {
    fn up(gpus: &str, speed: u32) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let made = command(folder.path()).args(["up", "--gpus", gpus, "--speed", &speed.to_string()]).output().unwrap();
        assert!(made.status.success(), "{}", text(&made.stderr));
        let machine = Machine::open(folder.path()).unwrap();
        Self { folder, machine }
    }

    fn emu(&self, arguments: &[&str]) -> Output {
        command(self.folder.path()).args(arguments).output().unwrap()
    }

    /// The output of a command that must succeed.
    fn prints(&self, arguments: &[&str]) -> String {
        let output = self.emu(arguments);
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout)
    }

    fn train(&self, gpu: &str, arguments: &[&str]) -> Child {
        let mut train = command(self.folder.path());
        train.args(["train", "--seed", "1"]).args(arguments).env("CUDA_VISIBLE_DEVICES", gpu).env("CUDA_DEVICE_ORDER", "PCI_BUS_ID");
        train.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// The contexts of a process.
    fn contexts(&self, pid: u32) -> Vec<ContextRecord> {
        self.machine.with(|state| state.contexts().iter().filter(|context| context.pid == pid).copied().collect()).unwrap()
    }

    /// Waits until a process trains with all its memory.
    fn trains(&self, pid: u32) {
        let full = |context: &ContextRecord| context.bytes == PEAK && context.work > 0.0;
        until("training", || self.contexts(pid).iter().any(full).then_some(()));
    }
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_carma"));
    // Ignore the environment of the user who runs the tests.
    command.env("XDG_CONFIG_HOME", "/nonexistent").env("CARMA_EMU", folder).arg("emu");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn until<T>(what: &str, look: impl Fn() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(seen) = look() {
            return seen;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "waited too long for: {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid.cast_signed()).unwrap(), signal).unwrap();
}

#[test]
fn a_training_job_uses_memory_and_prints_progress() {
    let emulated = Emulated::up("1xA100-40GB", 300);
    let job = emulated.train("0", &["--workload", WORKLOAD, "--seconds", "600", "--epochs", "1"]);
    let pid = job.id();
    emulated.trains(pid);
    assert_eq!(emulated.machine.with(|state| state.memory(Place::gpu(0)).used).unwrap(), PEAK);
    let output = job.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let (lines, end) = printed.trim_end().rsplit_once('\n').unwrap();
    insta::assert_snapshot!("emu-train", lines);
    let seconds: f64 = end.strip_prefix("done after ").and_then(|end| end.strip_suffix(" s")).unwrap().parse().unwrap();
    assert!(seconds > 538.0, "{seconds}");
    assert_eq!(emulated.contexts(pid).len(), 0);
}

#[test]
fn the_second_process_runs_out_of_memory_and_the_first_goes_on() {
    let emulated = Emulated::up("1xRTX-2080Ti-11GB", 300);
    let first = emulated.train("0", &["--workload", WORKLOAD]);
    emulated.trains(first.id());
    let second = emulated.train("0", &["--workload", WORKLOAD]).wait_with_output().unwrap();
    assert_eq!(second.status.code(), Some(1));
    let words = text(&second.stderr);
    assert!(words.starts_with("Traceback (most recent call last):\n"), "{words}");
    assert!(words.contains("\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate "), "{words}");
    assert!(words.contains(&format!("Process {} has 6.95 GiB memory in use.", first.id())), "{words}");
    let before = emulated.contexts(first.id())[0].work;
    until("more work", || (emulated.contexts(first.id())[0].work > before).then_some(()));
    signal(first.id(), Signal::INT);
    assert_eq!(first.wait_with_output().unwrap().status.code(), Some(130));
}

#[test]
fn a_stopped_job_resumes_from_its_checkpoint() {
    let emulated = Emulated::up("1xA100-40GB", 500);
    let file = emulated.folder.path().join("job.json");
    let arguments = ["--workload", WORKLOAD, "--seconds", "2000", "--epochs", "10", "--checkpoint", file.to_str().unwrap()];
    let done = || -> f64 {
        let kept: serde_json::Value = serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap();
        assert_eq!(kept["workload"], WORKLOAD);
        kept["done"].as_f64().unwrap()
    };
    let job = emulated.train("0", &arguments);
    until("a part of it", || emulated.contexts(job.id()).first().filter(|context| context.work > 300.0).map(drop));
    signal(job.id(), Signal::TERM);
    let stopped = job.wait_with_output().unwrap();
    assert_eq!(stopped.status.code(), Some(143), "{}", text(&stopped.stderr));
    let told = format!("\ncheckpoint written to {}\n", file.display());
    assert!(text(&stopped.stdout).ends_with(&told), "{}", text(&stopped.stdout));
    let (kept, lines) = (done(), text(&stopped.stdout).lines().filter(|line| line.starts_with("epoch")).count());
    assert!(kept > 300.0, "{kept}");
    let resumed = emulated.train("0", &arguments).wait_with_output().unwrap();
    assert!(resumed.status.success(), "{}", text(&resumed.stderr));
    let printed = text(&resumed.stdout);
    assert!(printed.starts_with("resuming from epoch "), "{printed}");
    assert_eq!(printed.lines().filter(|line| line.starts_with("epoch")).count() + lines, 100, "each step is taken once");
    assert!(done() > kept);
    let other = emulated.train("0", &["--workload", "unet_voc", "--checkpoint", file.to_str().unwrap()]).wait_with_output().unwrap();
    assert_eq!(other.status.code(), Some(1));
    assert!(text(&other.stderr).contains(&format!("belongs to {WORKLOAD}, not to unet_voc: give another file")));
}

#[test]
fn the_work_of_an_emulated_job_is_drawn_once_and_kept() {
    let emulated = Emulated::up("1xA100-40GB", 500);
    let file = emulated.folder.path().join("job.json");
    let kept = || -> serde_json::Value { serde_json::from_str(&fs::read_to_string(&file).unwrap()).unwrap() };
    let mut train = command(emulated.folder.path());
    train.args(["train", "--workload", WORKLOAD, "--seconds", "2000", "--epochs", "1", "--checkpoint"]).arg(&file);
    let mut job = train.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("a part of it", || emulated.contexts(job.id()).first().filter(|context| context.work > 200.0).map(drop));
    signal(job.id(), Signal::STOP);
    drop(job.stdout.take());
    signal(job.id(), Signal::TERM);
    signal(job.id(), Signal::CONT);
    let stopped = job.wait_with_output().unwrap();
    assert_eq!((stopped.status.code(), text(&stopped.stderr)), (Some(141), String::new()));
    let (seed, done) = (kept()["seed"].as_u64().unwrap(), kept()["done"].as_f64().unwrap());
    assert!(done > 200.0, "{done}");
    assert!(train.output().unwrap().status.success());
    let (_, training) = Draw::new(&Physics::default(), seed, 0, 0).for_job(2000.0);
    assert_eq!((kept()["seed"].as_u64(), kept()["done"].as_f64()), (Some(seed), Some(training)));
}

#[test]
fn co_runners_slow_each_other_as_modelled() {
    let emulated = Emulated::up("1xA100-40GB", 200);
    let names = [WORKLOAD, "bert_base_wiki_bs32"];
    let jobs = names.map(|name| emulated.train("0", &["--workload", name]));
    let speed = |job: &Child| emulated.contexts(job.id()).first().map(|context| context.speed).filter(|speed| *speed > 0.0 && *speed < 1.0);
    let speeds = until("both to train", || Some([speed(&jobs[0])?, speed(&jobs[1])?]));
    let (catalogue, model, kind) = (Catalogue::shipped(), InterferenceModel::shipped(), GpuType::reference());
    let facts = names.map(|name| {
        let workload = catalogue.get(catalogue.find(name).unwrap());
        RankFacts::new(&model, Some(workload), &workload.ranks[0], kind, Fraction::ONE)
    });
    for (me, other) in [(0, 1), (1, 0)] {
        let mut neighbours = Neighbours::default();
        neighbours.add(facts[other].interference.pressure);
        let slowdown = model.slowdown(facts[me].interference.sensitivity, neighbours, carma_core::CollocationMode::Streams);
        let expected = 1.0 / (slowdown * Physics::default().host_slowdown(2, 1.0));
        assert!((speeds[me] - expected).abs() < 1e-9, "{}: {} is not {expected}", names[me], speeds[me]);
    }
    for mut job in jobs {
        job.kill().unwrap();
        job.wait().unwrap();
    }
}

#[test]
fn ranks_need_a_gpu_each_and_see_those_they_are_given() {
    let emulated = Emulated::up("3xA100-40GB", 300);
    let [first, second] = [2, 0].map(|gpu: usize| emulated.machine.with(|state| state.gpus[gpu].uuid.get().to_owned()).unwrap());
    let job = emulated.train(&format!("{first},{second}"), &["--workload", "gpt2_large_wiki_bs8"]);
    let gpus = until("both ranks", || Some(emulated.contexts(job.id())).filter(|contexts| contexts.len() == 2));
    assert_eq!(gpus.iter().map(|context| context.gpu).collect::<Vec<_>>(), [2, 0]);
    signal(job.id(), Signal::KILL);
    job.wait_with_output().unwrap();
    until("the memory of who was killed", || emulated.machine.with(|state| state.contexts().is_empty().then_some(())).unwrap());
    let words = |gpu: &str| {
        let output = emulated.train(gpu, &["--workload", "gpt2_large_wiki_bs8"]).wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    assert!(words("1").contains("\nRuntimeError: CUDA error: invalid device ordinal\nCUDA kernel errors might be"));
    assert!(words("").ends_with("\nRuntimeError: No CUDA GPUs are available\n"));
}

#[test]
fn a_python_script_is_a_program_too() {
    let emulated = Emulated::up("2xA100-40GB", 500);
    let script = r#"
import math, os
from carma import emu
with emu.Gpu("resnet50_imagenet_bs64") as gpu:
    shares = []
    gpu.train(seconds=100, progress=shares.append)
    assert shares == sorted(shares) and shares[-1] == 1.0, shares
    assert gpu.work()[0] >= 100 and gpu.held() == 7118 << 20
    try:
        gpu.hold("60GiB")
    except emu.OutOfMemoryError as error:
        print(error)
with emu.Gpu(peak="3GiB", smact=0.3) as gpu:
    gpu.hold("1GiB")
    child = os.fork()
    if child == 0:
        try:
            gpu.hold("2GiB")
        except RuntimeError as error:
            gpu.close()
            os._exit(7 if "forked subprocess" in str(error) else 8)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(gpu.held() >> 20)
    for wrong in (lambda: emu.Gpu("resnet50_imagenet_bs64"), lambda: gpu.hold(-1), lambda: gpu.train(), lambda: gpu.train(0), lambda: gpu.train(math.nan)):
        try:
            wrong()
        except ValueError as error:
            print(error)
    for wrong in (1.5, None):
        try:
            gpu.hold(wrong)
        except TypeError as error:
            print(error)
try:
    emu.Gpu("resnet51")
except ValueError as error:
    print(error)
"#;
    let mut run = command(emulated.folder.path());
    let output = run.args(["run", "--", "python3", "-c", script]).env("CUDA_VISIBLE_DEVICES", "1").output().unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let printed = text(&output.stdout);
    let lines: Vec<&str> = printed.lines().collect();
    assert!(lines[0].starts_with("CUDA out of memory. Tried to allocate 53.05 GiB. GPU 0 has a total capacity of 39.59 GiB"), "{printed}");
    let known = [
        "1024",
        "this process uses its GPUs already",
        "-1 is not a size: write bytes from 0 on",
        "give the seconds to train for: only workloads of the catalogue have their own",
        "seconds cannot be 0: give more than 0",
        "seconds cannot be nan: give more than 0",
        "1.5 is not a size: write whole bytes, or a text such as '3GiB'",
        "None is not a size: write whole bytes, or a text such as '3GiB'",
    ];
    assert_eq!(lines[1..9], known);
    assert!(lines[9].starts_with("\"resnet51\" is not a workload of the catalogue; did you mean \"resnet50_"), "{printed}");
}

#[test]
fn machines_are_made_shown_and_removed() {
    let emulated = Emulated::up("1xA100-40GB,1xT4-16GB", 60);
    let shown = emulated.prints(&["show"]);
    assert!(shown.contains("\n  0 A100-40GB ") && shown.contains("    0/16384     0\n"), "{shown}");
    let folder = emulated.folder.path().display().to_string();
    let again = emulated.emu(&["up"]);
    assert_eq!(text(&again.stderr), format!("carma: {folder} already has emulated GPUs: `carma emu down` removes them\n"));
    assert!(emulated.prints(&["env"]).starts_with(&format!("export CARMA_EMU={folder}\nexport LD_LIBRARY_PATH={folder}/lib")));
    assert!(emulated.prints(&["env", "--fish"]).starts_with(&format!("set -gx CARMA_EMU '{folder}'\n")));
    let undone = emulated.prints(&["run", "--", "sh", "-c", "\"$0\" emu env --unset", env!("CARGO_BIN_EXE_carma")]);
    assert!(undone.starts_with("unset CARMA_EMU\n") && !undone.contains(&folder), "{undone}");
    let variables: serde_json::Value = serde_json::from_str(&emulated.prints(&["env", "--json"])).unwrap();
    assert_eq!(variables["CARMA_EMU"], folder.as_str());
    emulated.prints(&["run", "--", "python3", "-c", "from carma import emu"]);
    assert_eq!(emulated.prints(&["run", "--", "sh", "-c", "echo $CARMA_EMU $0", "--folder"]), format!("{folder} --folder\n"));
    assert!(
        text(&emulated.emu(&["fault", "lost", "--gpu", "2"]).stderr).contains("GPU 2 does not exist: give a number from 0 to 1 or a UUID")
    );
    fs::write(emulated.folder.path().join("notes"), "mine").unwrap();
    assert_eq!(text(&emulated.emu(&["down"]).stderr), format!("carma: removed 2 emulated GPUs in {folder}\n"));
    let left: Vec<_> = fs::read_dir(emulated.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["notes"], "what is not of the machine stays, and nothing else");
    let absent = format!("carma: {folder} has no emulated GPUs: `carma emu up` creates them\n");
    for command in ["show", "down", "env"] {
        assert_eq!(text(&emulated.emu(&[command]).stderr), absent);
    }
    let two = emulated.emu(&["up", "--gpus", "2x4xA100-40GB"]);
    assert_eq!(text(&two.stderr), "carma: one server with at most 64 GPUs can be emulated\n");
}

#[test]
fn folders_may_have_odd_names() {
    let above = tempfile::tempdir().unwrap();
    let folder = above.path().join("it's a \"$HOME\" \\ folder");
    let up = command(&folder).arg("up").output().unwrap();
    assert!(up.status.success(), "{}", text(&up.stderr));
    let named = command(Path::new("/nonexistent")).args(["up", "--folder"]).arg(above.path().join("a b")).output().unwrap();
    assert!(
        text(&named.stderr).contains(&format!("$(carma emu env --folder '{}/a b')", above.path().display())),
        "{}",
        text(&named.stderr)
    );
    // The output works in a shell, also when applied twice.
    let script =
        "eval \"$(\"$0\" emu env)\"; first=$PATH; eval \"$(\"$0\" emu env)\"; [ \"$PATH\" = \"$first\" ] && printf %s \"$CARMA_EMU\"";
    let shell = Command::new("sh").args(["-c", script, env!("CARGO_BIN_EXE_carma")]).env("CARMA_EMU", &folder).output().unwrap();
    assert_eq!(text(&shell.stdout), folder.to_str().unwrap(), "{}", text(&shell.stderr));
    let colon = command(&above.path().join("a:b")).arg("up").output().unwrap();
    assert!(text(&colon.stderr).ends_with("a:b contains a colon and cannot be in PATH: give another folder\n"));
}

#[test]
fn a_failed_creation_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir_all(folder.path().join("bin/nvidia-smi")).unwrap();
    let up = command(folder.path()).arg("up").output().unwrap();
    assert!(text(&up.stderr).ends_with("bin/nvidia-smi: File exists (os error 17)\n"), "{}", text(&up.stderr));
    let left = |folder: &Path| fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect::<Vec<_>>();
    assert_eq!((left(folder.path()), left(&folder.path().join("bin"))), (vec!["bin".into()], vec!["nvidia-smi".into()]));
}

#[test]
fn the_help_of_emu_lists_commands_and_kinds_of_gpus() {
    insta::assert_snapshot!("emu-help", crate::stdout(&["emu", "--help"]));
    insta::assert_snapshot!("emu-train-help", crate::stdout(&["emu", "train", "--help"]));
    insta::assert_snapshot!("emu-fault-help", crate::stdout(&["emu", "fault", "--help"]));
    insta::assert_snapshot!("emu-kinds", crate::stdout(&["emu", "kinds"]));
}
