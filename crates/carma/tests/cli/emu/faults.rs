//! Injected faults, as programs on the GPUs see them.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use carma_emu::state::{ContextKind, ContextRecord, started};
use rustix::process::Signal;

use super::{Emulated, WORKLOAD, command, signal, text, until};

#[test]
fn gpu_faults_end_jobs_with_the_right_message() {
    let emulated = Emulated::up("4xA100-40GB", 200);
    let jobs = ["0", "1", "2", "3"].map(|gpu| emulated.train(gpu, &["--workload", WORKLOAD]));
    for job in &jobs {
        emulated.trains(job.id());
    }
    let pid = jobs[2].id().to_string();
    assert_eq!(emulated.prints(&["fault", "lost", "--gpu", "0"]), "GPU 0 is lost\n");
    let uuid = emulated.machine.with(|state| state.gpus[1].uuid.get().to_owned()).unwrap();
    assert_eq!(emulated.prints(&["fault", "ecc", "--gpu", &uuid, "--uncorrected"]), "GPU 1: 1 uncorrected memory error\n");
    emulated.prints(&["fault", "xid", "--gpu", "2", "--code", "31", "--pid", &pid]);
    emulated.prints(&["fault", "ecc", "--gpu", "3", "--count", "5"]);
    emulated.prints(&["fault", "leak", "--gpu", "3", "--memory", "4GiB"]);
    assert_eq!(
        emulated.prints(&["fault", "list"]),
        "GPU 0 is lost\nGPU 1: 1 uncorrected memory error\nGPU 3: 5 corrected memory errors\nGPU 3: 4096 MiB without a process\n"
    );
    let events = emulated.machine.with(|state| (0..).map_while(|number| state.event_from(number)).collect::<Vec<_>>()).unwrap();
    let events: Vec<_> = events.iter().map(|(_, event)| (event.gpu, event.kind, event.data)).collect();
    assert_eq!(events, [(0, 8, 79), (1, 2, 0), (1, 8, 48), (2, 8, 31), (3, 1, 0)]);
    let [lost, uncorrected, illegal, unharmed] = jobs;
    let expected = ["unspecified launch failure", "uncorrectable ECC error encountered", "an illegal memory access was encountered"];
    for (job, words) in [lost, uncorrected, illegal].into_iter().zip(expected) {
        let output = job.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(&format!("\nRuntimeError: CUDA error: {words}\n")), "{}", text(&output.stderr));
    }
    assert_eq!(emulated.prints(&["fault", "back", "--gpu", "0"]), "GPU 0 is available again\n");
    assert_eq!(emulated.prints(&["fault", "clear"]), "all faults are cleared\n");
    assert_eq!(emulated.prints(&["fault", "list"]), "");
    assert_eq!(emulated.contexts(unharmed.id())[0].fault, 0, "corrected errors and leaks end nobody");
    signal(unharmed.id(), Signal::TERM);
    assert_eq!(unharmed.wait_with_output().unwrap().status.code(), Some(143));
}

#[test]
fn foreign_processes_appear_and_end() {
    let emulated = Emulated::up("1xA100-40GB,1xT4-16GB", 100);
    let appear = ["fault", "foreign", "--gpu", "1", "--memory", "8GiB", "--smact", "0.5"];
    let pid: u32 = emulated.prints(&appear).trim().parse().unwrap();
    let context = emulated.contexts(pid)[0];
    // Monitors read the requested values.
    let [smact, smocc, _, utilisation] = emulated.machine.with(|state| state.gpus[1].engine.levels).unwrap();
    assert!([(smact, 0.5), (smocc, 0.25), (utilisation, 0.5)].iter().all(|(read, asked)| (read - asked).abs() < 1e-9), "{smact} {smocc}");
    assert_eq!((context.gpu, context.bytes, context.busy), (1, 8 << 30, 1));
    signal(pid, Signal::KILL);
    until("its memory back", || emulated.contexts(pid).is_empty().then_some(()));
    let brief: u32 = emulated.prints(&[&appear[..], &["--for", "60s"]].concat()).trim().parse().unwrap();
    until("its end", || emulated.contexts(brief).is_empty().then_some(()));
    let refused = emulated.emu(&["fault", "foreign", "--gpu", "1", "--memory", "80GiB"]);
    let words = text(&refused.stderr);
    assert!(words.starts_with("carma: the process ended at once: CUDA out of memory."), "{words}");
    assert!(words.contains(" GPU 1 has a total capacity of "), "{words}");
}

#[test]
fn a_crash_of_an_mps_server_reaches_its_clients() {
    let emulated = Emulated::up("1xA100-40GB", 1);
    let crash = || emulated.emu(&["fault", "mps-crash", "--gpu", "0"]);
    assert_eq!(text(&crash().stderr), "carma: no MPS server is on GPU 0\n");
    let mut server = Command::new("sleep").arg("1000").spawn().unwrap();
    let (server_pid, client) = (server.id(), std::process::id());
    let attach = |pid: u32, server: u32, kind| {
        let context = ContextRecord { pid, server, busy: 1, ..ContextRecord::new(kind) };
        emulated.machine.with(|state| state.attach(context, started(pid).unwrap())).unwrap().unwrap();
    };
    attach(server_pid, 0, ContextKind::MpsServer);
    attach(client, server_pid, ContextKind::MpsClient);
    assert_eq!(text(&crash().stdout), format!("MPS server {server_pid} of GPU 0 is killed\n"));
    server.wait().unwrap();
    assert_eq!(until("the fault", || Some(emulated.contexts(client)[0].fault).filter(|fault| *fault != 0)), 806);
}

#[test]
fn driver_calls_fail_and_hang_on_demand() {
    let emulated = Emulated::up("1xA100-40GB", 1);
    let script = "import ctypes, time\nlibrary = ctypes.CDLL('libnvidia-ml.so.1')\nbegin = time.monotonic()\nprint('asking', flush=True)\n\
                  codes = [library.nvmlInit_v2(), library.nvmlDeviceGetCount_v2(ctypes.byref(ctypes.c_uint()))]\n\
                  print(*codes, time.monotonic() - begin)\n";
    let ask = || {
        let mut asking = command(emulated.folder.path());
        let mut child = asking.args(["run", "--", "python3", "-c", script]).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "asking");
        (child, lines)
    };
    let answer = |(mut child, mut lines): (Child, _)| -> Vec<f64> {
        let answered: String = Iterator::next(&mut lines).unwrap();
        assert!(child.wait().unwrap().success());
        answered.split(' ').map(|number| number.parse().unwrap()).collect()
    };
    let call = ["--call", "nvmlDeviceGetCount_v2"];
    let set = emulated.prints(&[&["fault", "error", "--code", "NOT_SUPPORTED"], &call[..]].concat());
    assert_eq!(set, "nvmlDeviceGetCount_v2 answers NOT_SUPPORTED\n");
    assert_eq!(answer(ask())[..2], [0.0, 3.0]);
    emulated.prints(&["fault", "clear"]);
    assert_eq!(emulated.prints(&[&["fault", "hang"], &call[..]].concat()), "nvmlDeviceGetCount_v2 hangs\n");
    let asking = ask();
    std::thread::sleep(Duration::from_millis(100));
    emulated.prints(&["fault", "clear"]);
    let answered = answer(asking);
    assert!(answered[..2] == [0.0, 0.0] && answered[2] >= 0.1, "{answered:?}");
}
