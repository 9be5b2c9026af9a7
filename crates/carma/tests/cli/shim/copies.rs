//! Copies of the output in files of the user (`--output`).

use std::fs::{self, File};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use carma_manager::attempt::{Exit, Order, RunAs};
use carma_manager::supervise::AttemptFolder;
use carma_testing::{need, root};

use super::{ended, launch, shell, until};

/// The processes that write copies of an attempt: those of its guard that are not the shim.
fn writers(folder: &AttemptFolder) -> Vec<i32> {
    let supervisor: serde_json::Value = serde_json::from_slice(&fs::read(folder.path().join("shim.pid")).unwrap()).unwrap();
    let [guard, shim] = ["guard", "shim"].map(|name| supervisor[name]["pid"].as_i64().unwrap());
    let children = fs::read_to_string(format!("/proc/{guard}/task/{guard}/children")).unwrap();
    children.split_whitespace().map(|pid| pid.parse().unwrap()).filter(|pid| i64::from(*pid) != shim).collect()
}

fn status(pid: i32, field: &str) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
    line.trim_start_matches(':').split_whitespace().next().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn a_copy_is_written_with_the_users_rights_and_without_capabilities() {
    need!(root());
    let state = tempfile::tempdir().unwrap();
    fs::set_permissions(state.path(), PermissionsExt::from_mode(0o711)).unwrap();
    let theirs = state.path().join("theirs");
    fs::create_dir(&theirs).unwrap();
    chown(&theirs, Some(65534), Some(65534)).unwrap();
    let user = RunAs { uid: 65534, gid: 65534, name: "nobody".to_owned(), home: "/nonexistent".into() };
    let job = "echo out; echo err >&2; until test -e go; do sleep 0.01; done; echo end";
    let order = Order { user: Some(user), directory: theirs.clone(), output: Some(theirs.join("out")), ..shell(1, job) };
    let folder = launch(&state, Order { error: Some(theirs.join("err")), ..order });
    until(|| (writers(&folder).len() == 2 && theirs.join("err").exists()).then_some(()));
    for pid in writers(&folder) {
        assert_eq!(
            ["Uid", "Gid", "CapEff", "CapPrm"].map(|field| status(pid, field)),
            ["65534", "65534", "0000000000000000", "0000000000000000"]
        );
        let files = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
        let ours: Vec<_> = files.filter(|file| file.starts_with(folder.path()) && !file.ends_with("shim.log")).collect();
        assert_eq!(ours, Vec::<std::path::PathBuf>::new(), "it has no file of the supervisor");
    }
    fs::write(theirs.join("go"), "").unwrap();
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert_eq!([read(&theirs.join("out")), read(&theirs.join("err"))], ["out\nend\n", "err\n"]);
    assert_eq!([read(&folder.output()), read(&folder.errors())], ["out\nend\n", "err\n"]);
    // The manager owns the logs.
    for log in [folder.output(), folder.errors()] {
        let data = fs::metadata(log).unwrap();
        assert_eq!((data.uid(), data.mode() & 0o777), (0, 0o600));
    }
}

#[test]
fn both_streams_may_go_to_one_file() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("all");
    fs::write(&file, "before\n").unwrap();
    let order = Order { output: Some(file.clone()), error: Some(file.clone()), ..shell(1, "echo out; sleep 0.1; echo err >&2") };
    let folder = launch(&state, order);
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert_eq!(read(&file), "before\nout\nerr\n");
}

#[test]
fn a_copy_is_complete_when_the_job_has_ended() {
    let state = tempfile::tempdir().unwrap();
    let file = state.path().join("all");
    let folder = launch(&state, Order { output: Some(file.clone()), ..shell(1, "head -c 20000000 /dev/zero | tr '\\0' x") });
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert_eq!(fs::metadata(&file).unwrap().len(), 20_000_000);
}

#[test]
fn a_full_disk_ends_the_copy_and_the_log_says_so() {
    let state = tempfile::tempdir().unwrap();
    let folder = launch(&state, Order { output: Some("/dev/full".into()), ..shell(1, "echo out; sleep 0.2; echo end") });
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let note = "\n[carma: the copy in /dev/full is incomplete: No space left on device (os error 28)]\n";
    assert_eq!(read(&folder.output()), format!("out\nend\n{note}"));
}

#[test]
fn a_killed_writer_ends_the_copy_and_not_the_job() {
    let state = tempfile::tempdir().unwrap();
    let (file, gate) = (state.path().join("out"), state.path().join("gate"));
    let job = format!("echo out; until test -e {}; do sleep 0.01; done; echo more; sleep 0.2; echo end", gate.display());
    let folder = launch(&state, Order { output: Some(file.clone()), ..shell(1, &job) });
    let writer = until(|| fs::metadata(&file).is_ok_and(|data| data.len() == 4).then(|| writers(&folder)[0]));
    assert!(Command::new("kill").args(["-9", &writer.to_string()]).status().unwrap().success());
    fs::write(&gate, "").unwrap();
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    let text = read(&folder.output());
    assert!(text.starts_with("out\nmore\nend\n\n[carma: the copy in ") && text.contains("its writer process was killed"), "{text}");
}

#[test]
fn an_unread_pipe_delays_a_job_for_a_bounded_time() {
    let state = tempfile::tempdir().unwrap();
    let fifo = state.path().join("fifo");
    rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    let words = |order| match ended(&launch(&state, order)).exit {
        Exit::NotStarted(words) => words,
        other => panic!("{other:?}"),
    };
    let order = |job| Order { output: Some(fifo.clone()), ..shell(job, "head -c 1000000 /dev/zero | tr '\\0' x; echo; echo end") };
    let refused = words(order(1));
    assert!(refused.starts_with("cannot write to ") && refused.ends_with("No such device or address (os error 6)"), "{refused}");
    // A reader that opens it and does not read.
    let _reader = File::options().read(true).write(true).open(&fifo).unwrap();
    let begin = Instant::now();
    let folder = launch(&state, order(2));
    let writer = until(|| writers(&folder).first().copied());
    assert_eq!(ended(&folder).exit, Exit::Code(0));
    assert!((10..60).contains(&begin.elapsed().as_secs()), "{:?}", begin.elapsed());
    let text = read(&folder.output());
    assert!(text.contains("x\nend\n\n[carma: the copy in ") && text.ends_with("is incomplete: it accepts no data for 10 s]\n"));
    // Nothing of it is left.
    until(|| (!Path::new(&format!("/proc/{writer}")).exists()).then_some(()));
}
