//! Estimates: dry runs in the job's own environment, and history of the same command.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carma_core::{JobId, MiB, Outcome};
use carma_manager::api::JobAction;
use carma_manager::request::{Activation, JobCommand, JobRequest, Owner};
use carma_manager::submission::ValidJobs;
use carma_testing::{NOBODY, need};

use super::lab::{Lab, block_on, until};

/// A stand-in for Python: it records its user, leaves a process behind that holds its output, and fails.
fn python(path: &Path, notes: &Path) {
    let notes = notes.display();
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = -m ] || exit 0\n\
         echo \"$0 $VIRTUAL_ENV\" > {notes}.new && mv {notes}.new {notes}\n\
         setsid sh -c \"(setsid sh -c 'echo \\$\\$ > {notes}.pid; exec sleep 3600' &)\" &\n\
         while [ ! -s {notes}.pid ]; do sleep 0.01; done\nexit 1\n"
    );
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, script).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

#[test]
fn a_dry_run_has_the_jobs_environment_and_leaves_no_processes() {
    let folder = tempfile::tempdir().unwrap();
    let (own, configured) = (folder.path().join("venv/bin/python3.99"), folder.path().join("configured"));
    let settings = format!("[manager.estimates]\npython = {:?}\n", configured.display().to_string());
    let lab = Lab::new("1xA100-40GB", 60.0, &settings);
    let notes = folder.path().join("notes");
    python(&own, &notes);
    python(&configured, &notes);
    let estimated = |interpreter: &str, activated: bool| {
        let venv = folder.path().join("venv");
        let mut request = lab.shell("true");
        request.command = JobCommand::Program([interpreter, "train.py"].map(str::to_owned).to_vec());
        request.hints.dry_run = true;
        request.activation = activated.then_some(Activation::Venv(venv));
        let job = lab.submit(request);
        let event = until(|| lab.job(job).events.into_iter().find(|stored| stored.event.event.kind() == "estimated"));
        assert!(event.event.event.parts().1["notes"][0].as_str().unwrap().contains("the dry run of the script failed"), "{event:?}");
        let pid = fs::read_to_string(notes.with_extension("pid")).unwrap().trim().parse().unwrap();
        assert!(carma_gpu::process_started(pid).is_none(), "the dry run left a process");
        fs::remove_file(notes.with_extension("pid")).unwrap();
        (job, fs::read_to_string(&notes).unwrap())
    };
    let venv = folder.path().join("venv");
    let (job, who) = estimated("python3.99", true);
    assert_eq!(who, format!("{} {}\n", own.display(), venv.display()));
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "it runs without an estimate");
    // Without its environment it has no such Python, and the job fails; its estimate need not.
    assert_eq!(estimated("python3.99", false).1, format!("{} \n", configured.display()));
    // The Python of a launcher is beside it.
    let beside = venv.join("bin/python");
    python(&beside, &notes);
    assert_eq!(estimated("torchrun", true).1, format!("{} {}\n", beside.display(), venv.display()));
    assert_eq!(fs::read_dir(lab.folder().join("estimates")).unwrap().count(), 0);
}

const WORKLOAD: &str = "--workload efficientnet_cifar100_bs128_20e --seconds 60";

/// A job that declares this much memory and uses what its arguments say.
fn declaring(lab: &Lab, declared: u64, arguments: &str) -> JobRequest {
    let mut request = lab.train(arguments);
    request.resources.memory = Some(MiB(declared));
    request
}

/// The memory that the last attempt of a job had reserved.
fn reserved(lab: &Lab, job: JobId) -> MiB {
    lab.job(job).attempts.last().unwrap().placement.devices[0].reserved
}

#[test]
fn a_declaration_below_what_the_command_used_before_is_raised() {
    let mut lab = Lab::new("1xA100-40GB", 240.0, "");
    let arguments = format!("{WORKLOAD} --memory 12GiB");
    let first = lab.accepted(vec![declaring(&lab, 2048, &arguments)]).unwrap();
    assert!(first.notes.is_empty());
    assert_eq!(lab.outcome(first.jobs[0]), Outcome::Succeeded);
    assert!(reserved(&lab, first.jobs[0]) < MiB(4096));
    let again = lab.accepted(vec![declaring(&lab, 2048, &arguments)]).unwrap();
    assert!(again.notes[0].contains("declares 2.0 GiB, but an earlier run of this command used 1"), "{:?}", again.notes);
    assert_eq!(lab.outcome(again.jobs[0]), Outcome::Succeeded);
    assert!(reserved(&lab, again.jobs[0]) > MiB(8 * 1024), "{}", reserved(&lab, again.jobs[0]));
    // A declaration that was enough counts as it is.
    assert!(lab.accepted(vec![declaring(&lab, 20_480, &arguments)]).unwrap().notes.is_empty());
    lab.stop();
    lab.configure("[manager.estimates]\nraise_declared = false\n");
    lab.start();
    let off = lab.accepted(vec![declaring(&lab, 2048, &arguments)]).unwrap();
    assert!(off.notes.is_empty());
    assert_eq!(lab.outcome(off.jobs[0]), Outcome::Succeeded);
    assert!(reserved(&lab, off.jobs[0]) < MiB(4096));
}

#[test]
fn a_command_that_ran_out_of_memory_gets_more_next_time() {
    let lab = Lab::new("1xA100-40GB", 240.0, "");
    let arguments = format!("{WORKLOAD} --memory 60GiB");
    let hopeless = lab.submit(declaring(&lab, 2048, &arguments));
    assert_eq!(lab.outcome(hopeless), Outcome::OutOfMemory);
    let again = lab.accepted(vec![declaring(&lab, 2048, &arguments), declaring(&lab, 2048, &arguments)]).unwrap();
    let [note] = &again.notes[..] else { panic!("{:?}", again.notes) };
    assert!(note.contains(" and 1 more: it declares 2.0 GiB, but an earlier run of this command ran out of memory with "), "{note}");
    assert_eq!(lab.outcome(again.jobs[0]), Outcome::OutOfMemory);
    assert_eq!(lab.job(again.jobs[0]).attempts.len(), 1, "it has the whole GPU at once");
}

/// A stand-in for Python that records its processes, and does not end.
fn endless_python(path: &Path, pids: &Path) {
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = -m ] || exit 0\n\
         sleep 3600 &\n\
         echo $! >> {0}\necho $$ >> {0}\nwait\n",
        pids.display()
    );
    fs::write(path, script).unwrap();
    fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
}

/// The processes that it recorded.
fn recorded(pids: &Path) -> Vec<u32> {
    fs::read_to_string(pids).unwrap_or_default().lines().map(|line| line.parse().unwrap()).collect()
}

fn dry_run(lab: &Lab, python: &Path) -> JobRequest {
    let mut request = lab.shell("true");
    request.command = JobCommand::Program(vec![python.display().to_string(), "train.py".to_owned()]);
    request.hints.dry_run = true;
    request
}

fn cancel(lab: &Lab, job: JobId) {
    let acted = block_on(lab.handle().act(vec![job], JobAction::Cancel, "me".to_owned())).unwrap();
    assert_eq!(acted.done, [job]);
}

#[test]
fn a_cancelled_job_ends_its_dry_run_and_those_that_wait_for_a_turn() {
    let lab = Lab::new("1xA100-40GB", 60.0, "");
    let (python, pids) = (lab.folder().join("python3"), lab.folder().join("pids"));
    endless_python(&python, &pids);
    let jobs: Vec<JobId> = (0..4).map(|_| lab.submit(dry_run(&lab, &python))).collect();
    // Two run, and two wait.
    let begun = until(|| Some(recorded(&pids)).filter(|pids| pids.len() >= 4));
    assert!(begun.iter().all(|pid| carma_gpu::process_started(*pid).is_some()));
    // Those that wait first: the end of one that runs lets another begin.
    for job in jobs.iter().rev() {
        cancel(&lab, *job);
        assert_eq!(lab.outcome(*job), Outcome::Cancelled);
    }
    until(|| begun.iter().all(|pid| carma_gpu::process_started(*pid).is_none()).then_some(()));
    until(|| (fs::read_dir(lab.folder().join("estimates")).unwrap().count() == 0).then_some(()));
    assert_eq!(recorded(&pids), begun, "the others never began");
}

#[test]
fn slow_dry_runs_of_one_user_do_not_block_those_of_another() {
    need!(carma_testing::root());
    let lab = Lab::new("1xA100-40GB", 60.0, "");
    fs::set_permissions(lab.folder(), PermissionsExt::from_mode(0o755)).unwrap();
    let (python, pids) = (lab.folder().join("python3"), lab.folder().join("pids"));
    endless_python(&python, &pids);
    let slow: Vec<JobId> = (0..20).map(|_| lab.submit(dry_run(&lab, &python))).collect();
    until(|| Some(recorded(&pids)).filter(|pids| pids.len() >= 4));
    let quick = lab.folder().join("python3.99");
    fs::write(&quick, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&quick, PermissionsExt::from_mode(0o755)).unwrap();
    let nobody = Owner { uid: NOBODY, gid: NOBODY, name: "nobody".to_owned() };
    let jobs = ValidJobs::new(vec![JobRequest { directory: "/".into(), ..dry_run(&lab, &quick) }]).unwrap();
    let job = block_on(lab.handle().submit(nobody, jobs, None)).unwrap().jobs[0];
    until(|| lab.job(job).events.into_iter().find(|stored| stored.event.event.kind() == "estimated"));
    assert_eq!(recorded(&pids).len(), 4, "two of the slow ones run");
    for job in slow.into_iter().rev() {
        cancel(&lab, job);
    }
    until(|| recorded(&pids).iter().all(|pid| carma_gpu::process_started(*pid).is_none()).then_some(()));
}
