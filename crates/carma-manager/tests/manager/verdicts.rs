//! Judgements of logs as frameworks write them. The first line of each file says how the program ended and what is right.

use std::fmt::Write;
use std::fs;
use std::path::Path;

use carma_core::{DeviceId, MiB, Seconds, ServerId, StopReason, Time, Verdict};
use carma_gpu::Xid;
use carma_manager::attempt::Exit;
use carma_manager::judge::{Blame, DeviceFacts, Evidence, HostFacts, Judgement, XidRecord, verdict};
use proptest::prelude::*;

const GPU: DeviceId = DeviceId::gpu(ServerId(0), 0);

/// The log of a file, how the program ended, and the right verdict.
fn log(name: &str) -> (Exit, String, String) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manager/logs").join(name);
    let text = fs::read_to_string(file).unwrap();
    let (first, log) = text.split_once('\n').unwrap();
    let (exit, right) = first.split_once(" -> ").unwrap();
    let (how, number) = exit.split_once(' ').unwrap();
    let number = number.parse().unwrap();
    let exit = if how == "signal" { Exit::Signal(number) } else { Exit::Code(number) };
    (exit, right.to_owned(), log.to_owned())
}

fn name(verdict: &Verdict) -> String {
    let written = serde_json::to_value(verdict).unwrap();
    written.as_str().map_or_else(|| written.as_object().unwrap().keys().next().unwrap().clone(), str::to_owned)
}

fn judged(file: &str, change: impl Fn(&mut Evidence<'_>)) -> Judgement {
    let (exit, _, log) = log(file);
    let mut evidence = Evidence { exit: Some(exit), stderr: log.as_bytes(), ..Evidence::default() };
    change(&mut evidence);
    verdict(&evidence)
}

#[test]
fn frameworks_are_understood() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manager/logs");
    let mut files: Vec<String> = fs::read_dir(folder).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
    files.sort_unstable();
    let mut shown = String::new();
    for file in files {
        let (exit, right, log) = log(&file);
        let on_stderr = verdict(&Evidence { exit: Some(exit.clone()), stderr: log.as_bytes(), ..Evidence::default() });
        assert_eq!(name(&on_stderr.verdict), right, "{file}: {}", on_stderr.reason);
        let on_stdout = verdict(&Evidence { exit: Some(exit), stdout: log.as_bytes(), ..Evidence::default() });
        assert_eq!(on_stdout, on_stderr, "{file} on its output");
        let blame = on_stderr.blame.map_or_else(|| "-".to_owned(), |blame| format!("{blame:?}"));
        writeln!(shown, "{file}: {right}, {blame}\n    {}", on_stderr.reason).unwrap();
    }
    insta::assert_snapshot!(shown);
}

#[test]
fn an_idle_end_counts_unless_the_job_was_stopped() {
    let idle = Evidence { exit: Some(Exit::Idle(Seconds::from_secs(1800))), stdout: b"CUDA out of memory", ..Evidence::default() };
    let judged = verdict(&idle);
    assert_eq!((judged.verdict, judged.blame), (Verdict::Failed { code: 143 }, Some(Blame::Stopped)));
    assert_eq!(judged.reason, "it was idle for 30 min: its terminal had no input and no output");
    let cancelled = verdict(&Evidence { stopped: Some(StopReason::Cancelled), ..idle });
    assert_eq!(cancelled.reason, "it was stopped: the job was cancelled");
}

#[test]
fn hardware_evidence_outweighs_the_log() {
    let seen = |file: &str, facts: DeviceFacts| judged(file, |evidence| evidence.devices = vec![facts.clone()]);
    let xid = |number| vec![XidRecord { xid: Xid(number), at: Time::from_secs(5), pid: None }];

    let lost = seen("emulated-lost.txt", DeviceFacts { lost: true, ..DeviceFacts::new(GPU) });
    assert_eq!((lost.verdict, lost.reason.as_str()), (Verdict::GpuLost, "s0/gpu0 was lost"));
    let fallen = seen("launch-failure.txt", DeviceFacts { xids: xid(79), ..DeviceFacts::new(GPU) });
    assert_eq!((fallen.verdict, fallen.blame), (Verdict::GpuLost, Some(Blame::Hardware)));
    let own_fault = seen("launch-failure.txt", DeviceFacts { xids: xid(13), ..DeviceFacts::new(GPU) });
    assert_eq!(own_fault.verdict, Verdict::Failed { code: 1 });
    assert!(own_fault.reason.contains("Xid 13"), "{}", own_fault.reason);

    let full = DeviceFacts {
        memory_total: Some(MiB(40_960)),
        memory_used: Some(MiB(40_900)),
        own_memory: Some(MiB(1_000)),
        ..DeviceFacts::new(GPU)
    };
    let cramped = seen("pytorch-cudnn.txt", full.clone());
    assert_eq!(cramped.verdict, Verdict::OutOfMemory);
    assert!(cramped.reason.contains("other processes used 39.0"), "{}", cramped.reason);
    let quiet = seen("silent-kill.txt", full);
    assert_eq!(quiet.verdict, Verdict::Failed { code: 137 });

    let died = seen("launch-failure.txt", DeviceFacts { mps_server_died: true, ..DeviceFacts::new(GPU) });
    assert_eq!(died.verdict, Verdict::MpsServerDied);
}

#[test]
fn kernel_log_lines_name_the_killed_process() {
    let host = |file: &str, facts: HostFacts<'static>| {
        judged(file, |evidence| {
            evidence.host = facts;
            evidence.pids = [4711].into();
        })
        .verdict
    };
    let log = |text| HostFacts { kernel_log: Some(text), ..HostFacts::default() };
    let counted = |kills| HostFacts { oom_kills: Some(kills), ..HostFacts::default() };
    assert_eq!(host("silent-kill.txt", counted(1)), Verdict::HostOutOfMemory);
    assert_eq!(host("silent-kill.txt", counted(0)), Verdict::Failed { code: 137 });
    assert_eq!(host("silent-kill.txt", log("Out of memory: Killed process 4711 (python) total-vm:1kB")), Verdict::HostOutOfMemory);
    assert_eq!(host("silent-kill.txt", log("Out of memory: Killed process 4712 (python) total-vm:1kB")), Verdict::Failed { code: 137 });
    let own_limit = HostFacts { at_memory_limit: true, ..counted(2) };
    let judgement = judged("silent-kill.txt", |evidence| evidence.host = own_limit);
    assert_eq!((judgement.verdict, judgement.blame), (Verdict::HostOutOfMemory, Some(Blame::Job)));
    // If the kernel counts kills, no guess is needed.
    assert_eq!(host("shell-killed.txt", counted(0)), Verdict::Failed { code: 137 });
    assert_eq!(host("dataloader-killed.txt", counted(0)), Verdict::Failed { code: 1 });
    // GPU out-of-memory errors are distinguished.
    assert_eq!(host("pytorch-2.1.txt", counted(1)), Verdict::OutOfMemory);
}

#[test]
fn signals_sent_to_an_attempt_explain_its_end() {
    let told = |reason| {
        let judgement = verdict(&Evidence { exit: Some(Exit::Signal(15)), stopped: Some(reason), ..Evidence::default() });
        (judgement.verdict, judgement.blame)
    };
    for reason in [StopReason::Cancelled, StopReason::TimeLimit, StopReason::Requeued] {
        assert_eq!(told(reason), (Verdict::Failed { code: 143 }, Some(Blame::Stopped)));
    }
    assert_eq!(told(StopReason::GpuLost).0, Verdict::GpuLost);
    assert_eq!(told(StopReason::MpsServerDied).0, Verdict::MpsServerDied);
    assert_eq!(verdict(&Evidence::default()).verdict, Verdict::SupervisorLost);
    let missing = Exit::NotStarted("no such program: pyhton".to_owned());
    let reason = "no such program: pyhton".to_owned();
    assert_eq!(verdict(&Evidence { exit: Some(missing), ..Evidence::default() }).verdict, Verdict::CouldNotStart { reason });
}

/// Bytes of any kind, and pieces that mean something.
fn any_log() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..20),
        prop::sample::select(vec![
            "\u{1b}[",
            "\u{1b}]",
            "[rank0]: ",
            "(x pid=1) ",
            "ERROR [",
            "] ",
            "\n",
            "\r",
            "Tried to allocate ",
            " total capacity of ",
            "9e99 GiB",
            "of which ",
            "CUDA out of memory",
            "ValueError: ",
            " Killed      ",
            "[1,2]<stderr>",
            "é",
            "During handling",
            "what():",
        ])
        .prop_map(|text| text.as_bytes().to_vec()),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn any_bytes_are_judged(stdout in any_log(), stderr in any_log(), code in prop_oneof![any::<i32>(), Just(i32::MIN), Just(i32::MAX)], signal in any::<bool>()) {
        let exit = if signal { Exit::Signal(code) } else { Exit::Code(code) };
        verdict(&Evidence { exit: Some(exit), stdout: &stdout, stderr: &stderr, ..Evidence::default() });
        let done = Evidence { exit: Some(Exit::Code(0)), stdout: &stdout, stderr: &stderr, stopped: Some(StopReason::TimeLimit), ..Evidence::default() };
        prop_assert_eq!(verdict(&done).verdict, Verdict::Succeeded);
    }
}
