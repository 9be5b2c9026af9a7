//! GPUs that are lost or do not answer stay in view, and can be drained.

use std::process::Command;

use carma_core::{DeviceId, MiB, ServerId, Utilisation};
use carma_emu::VARIABLE;
use carma_emu::fault::{CallAnswer, Fault, clear, recover_gpu};
use carma_manager::api::{DrainResult, GpuDetail, JobAction, QueueQuery};
use carma_manager::event::JobEvent;

use super::devices::cut;
use super::lab::{Lab, block_on, program, until};
use super::up::ManagerProcess;

fn gpu(number: u16) -> DeviceId {
    DeviceId::gpu(ServerId(0), number)
}

fn detail(lab: &Lab, number: u16) -> GpuDetail {
    let all = block_on(lab.handle().gpus()).unwrap();
    all.into_iter().find(|detail| detail.device == gpu(number)).unwrap_or_else(|| panic!("GPU {number} is listed"))
}

fn problem(lab: &Lab, words: &str) -> Option<String> {
    block_on(lab.handle().status()).unwrap().problems.into_iter().find(|problem| problem.contains(words))
}

/// The events of the machine with these words, and whether they are warnings.
fn machine_events(lab: &Lab, words: &str) -> Vec<bool> {
    let events = lab.reader().events_after(0, 1000).unwrap();
    let warning = |event: &JobEvent| match event {
        JobEvent::Machine { text, warning } if text.contains(words) => Some(*warning),
        _ => None,
    };
    events.iter().filter_map(|stored| warning(&stored.event.event)).collect()
}

/// Has the manager list its GPUs again: a change of one GPU leads to that.
fn list_again(lab: &Lab) {
    cut(lab, &"3g.20gb".parse().unwrap());
    until(|| (!machine_events(lab, "came: ").is_empty()).then_some(()));
}

#[test]
fn a_lost_gpu_stays_listed_until_it_is_back_and_can_be_drained() {
    let lab = Lab::new("3xA100-40GB", 60.0, "");
    lab.machine.with(|state| Fault::Lost { gpu: 2 }.inject(state)).unwrap().unwrap();
    until(|| problem(&lab, "s0/gpu2 is lost"));
    list_again(&lab);
    assert!(detail(&lab, 2).lost && problem(&lab, "s0/gpu2 is lost").is_some());
    // The driver reports it as Xid 79, a sample as lost: whichever comes first.
    let warnings = machine_events(&lab, "s0/gpu2: ");
    assert!(!warnings.is_empty() && warnings.iter().all(|warning| *warning), "{warnings:?}");
    let facts = block_on(lab.handle().facts()).unwrap();
    assert_eq!((facts.gpus.iter().filter(|gpu| gpu.detail.lost).count(), facts.unusable), (1, 0));
    let drain = |drained| block_on(lab.handle().drain(gpu(2), drained, "ada".to_owned())).unwrap();
    assert_eq!(drain(false), DrainResult { changed: false, lost: true });
    assert_eq!([drain(true), drain(true)], [true, false].map(|changed| DrainResult { changed, lost: true }));
    assert!(problem(&lab, "s0/gpu2 was drained by ada").is_some());
    lab.machine.with(|state| recover_gpu(state, 2)).unwrap();
    until(|| (!detail(&lab, 2).lost).then_some(()));
    let back = detail(&lab, 2);
    assert!(back.drained && back.drained_since.is_some(), "it was drained meanwhile: {back:?}");
    assert_eq!(back.drained_by.as_deref(), Some("ada"));
    assert_eq!(drain(false), DrainResult { changed: true, lost: false });
    assert_eq!(machine_events(&lab, "s0/gpu2 is no longer drained by ada"), [false]);
    // The driver reports events of it again.
    until(|| {
        lab.machine.with(|state| Fault::Xid { gpu: 2, code: 48, pid: None }.inject(state)).unwrap().unwrap();
        (!machine_events(&lab, "s0/gpu2: Xid 48").is_empty()).then_some(())
    });
}

#[test]
fn a_manager_knows_who_drained_a_gpu_and_forgets_a_lost_one_that_it_starts_without() {
    let mut lab = Lab::new("2xA100-40GB", 60.0, "");
    block_on(lab.handle().drain(gpu(0), true, "ada".to_owned())).unwrap();
    lab.stop();
    lab.machine.with(|state| Fault::Lost { gpu: 1 }.inject(state)).unwrap().unwrap();
    lab.start();
    assert_eq!(detail(&lab, 0).drained_by.as_deref(), Some("ada"));
    assert!(problem(&lab, "GPU 1 is not used: fell off the bus").is_some());
    let facts = block_on(lab.handle().facts()).unwrap();
    assert_eq!((facts.gpus.len(), facts.unusable), (1, 1));
}

#[test]
fn a_gpu_that_does_not_answer_is_a_problem_and_not_lost() {
    let lab = Lab::new("2xA100-40GB", 60.0, "");
    until(|| detail(&lab, 1).memory_used);
    let hang = Fault::Call { gpu: Some(1), call: None, answer: CallAnswer::Hangs };
    lab.machine.with(|state| hang.inject(state)).unwrap().unwrap();
    let silent = until(|| Some(detail(&lab, 1)).filter(|detail| detail.silent_for.is_some()));
    assert!(!silent.lost && silent.utilisation == Utilisation::NONE, "{silent:?}");
    assert!(problem(&lab, "s0/gpu1 has not answered for").is_some());
    let ages: Vec<_> = block_on(lab.handle().facts()).unwrap().gpus.into_iter().map(|gpu| gpu.age.unwrap()).collect();
    assert!(ages[1] > ages[0], "{ages:?}");
    list_again(&lab);
    assert!(detail(&lab, 1).silent_for.is_some_and(|lasted| lasted > ages[1]), "it is still listed");
    assert_eq!(machine_events(&lab, "s0/gpu1: its driver calls hang"), [true]);
    lab.machine.with(|state| clear(state, None)).unwrap();
    until(|| detail(&lab, 1).silent_for.is_none().then_some(()));
}

#[test]
fn ignored_gpus_and_resumed_ones_are_told_as_they_are() {
    let up = ManagerProcess::new(Some(("3xA100-40GB", 60.0)), "[manager.gpus]\nignore = [\"0\"]\n");
    let socket = up.places().socket.display().to_string();
    let machine = up.machine.as_ref().unwrap();
    let carma = |words: &[&str]| {
        let output = Command::new(program()).args(words).env(VARIABLE, machine.folder()).env("CARMA_SOCKET", &socket).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(carma(&["status"]).contains("GPU 0 is not used: ignored (manager.gpus.ignore)"), "{}", carma(&["status"]));
    let gpus = carma(&["gpus", "--quick"]);
    assert!(gpus.contains("the manager ignores it"), "{gpus}");
    assert_eq!(carma(&["resume", "1"]), "GPU 1 was not drained\n");
    assert_eq!(carma(&["drain", "1"]), "GPU 1 takes no new jobs\n");
    assert!(carma(&["status"]).contains("s0/gpu1 was drained by"));
    assert_eq!(carma(&["resume", "1"]), "GPU 1 takes jobs again\n");
    machine.with(|state| Fault::Lost { gpu: 2 }.inject(state)).unwrap().unwrap();
    until(|| carma(&["status"]).contains("s0/gpu2 is lost").then_some(()));
    assert_eq!(carma(&["resume", "2"]), "GPU 2 was not drained, but it is lost: it takes jobs when it is back\n");
    let status = carma(&["status"]);
    assert!(status.split("Last warnings and errors:").nth(1).is_some_and(|last| last.contains("s0/gpu2: ")), "{status}");
}

#[test]
fn memory_that_a_job_gave_back_is_reserved_nowhere() {
    let lab = Lab::new("1xA100-40GB", 60.0, "[admission]\ntrim_after = 30\n");
    let mut request = lab.shell(&format!("exec {} emu occupy --gpu 0 --memory 3000MiB --smact 0.3", program().display()));
    request.resources.memory = Some(MiB(10_240));
    let job = lab.submit(request);
    let on_gpu = || block_on(lab.handle().gpus()).unwrap()[0].tenants.first().map(|tenant| tenant.reserved);
    let trimmed = until(|| on_gpu().filter(|reserved| *reserved < MiB(10_240)));
    let row = block_on(lab.handle().queue(QueueQuery::default())).unwrap().jobs.remove(0);
    assert_eq!((row.id, row.memory), (job, Some(trimmed)));
    block_on(lab.handle().act(vec![job], JobAction::Cancel, "me".to_owned())).unwrap();
}

#[test]
fn a_job_that_waits_for_its_host_is_told_what_is_short() {
    let lab = Lab::new("1xA100-40GB", 60.0, "[manager.host]\nmemory = 1000000000\n");
    until(|| problem(&lab, "the host starts no new attempts"));
    let job = lab.submit(lab.shell("true"));
    let text = until(|| block_on(lab.handle().why(job)).ok().map(|why| why.text).filter(|text| text.contains("host")));
    assert!(text.contains("its host is short of a resource: ") && text.contains("of host memory is available, less than"), "{text}");
}
