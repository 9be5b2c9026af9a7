//! Dry runs: in the job's own environment, and over when they are over.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use carma_core::Outcome;
use carma_manager::request::{Activation, JobCommand};

use super::lab::{Lab, until};

/// Stands in for Python: asked to record a script it says who it is, leaves somebody behind who has its output open, and fails.
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
fn a_dry_run_has_its_jobs_environment_and_nothing_of_it_stays() {
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
        let event = until(|| lab.job(job).events.into_iter().find(|stored| stored.event.kind == "estimated"));
        assert!(event.event.body["notes"][0].as_str().unwrap().contains("could not be dry-run"), "{event:?}");
        let pid = fs::read_to_string(notes.with_extension("pid")).unwrap().trim().parse().unwrap();
        assert!(carma_gpu::process_started(pid).is_none(), "somebody stayed");
        fs::remove_file(notes.with_extension("pid")).unwrap();
        (job, fs::read_to_string(&notes).unwrap())
    };
    let venv = folder.path().join("venv");
    let (job, who) = estimated("python3.99", true);
    assert_eq!(who, format!("{} {}\n", own.display(), venv.display()));
    assert_eq!(lab.outcome(job), Outcome::Succeeded, "it runs without an estimate");
    // Without its environment it has no such Python, and the job fails; its estimate need not.
    assert_eq!(estimated("python3.99", false).1, format!("{} \n", configured.display()));
    assert_eq!(fs::read_dir(lab.folder().join("estimates")).unwrap().count(), 0);
}
