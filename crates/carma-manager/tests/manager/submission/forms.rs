//! What each form comes to.

use std::path::{Path, PathBuf};

use carma_core::{Condition, MiB, Priority, RequestedMode, Seconds};
use carma_manager::request::{Activation, ContainerEngine, HIDDEN, JobCommand};
use carma_manager::submission::{KEYS, Source, check};

use super::{ask, command, only, requests, text};

#[test]
fn every_flag_arrives() {
    let said = [
        ("gpus", "2"),
        ("mem", "40MiB"),
        ("cpus", "8"),
        ("host-mem", "64GiB"),
        ("time", "1:30:00"),
        ("exclusive", ""),
        ("mode", "mps"),
        ("name", "large"),
        ("priority", "-5"),
        ("after", "12,@data:any"),
        ("begin", "16:00"),
        ("hold", ""),
        ("wait-for-hardware", ""),
        ("workdir", "runs"),
        ("env", "A=1"),
        ("venv", "venv"),
        ("image", "pytorch:2"),
        ("engine", "podman"),
        ("snapshot", ""),
        ("output", "logs/%x-%j.out"),
        ("error", "/var/log/%u.err"),
        ("array", "3"),
        ("at-most", "1"),
        ("model", "net.txt"),
        ("batch", "64"),
        ("estimate", "dry-run"),
        ("retries", "2"),
        ("oom-retries", "1"),
        ("checkpoint", ""),
        ("on-hang", "restart"),
    ];
    let unsaid = KEYS.iter().map(|key| key.name).filter(|name| !said.iter().any(|(said, _)| said == name));
    assert_eq!(unsaid.collect::<Vec<_>>(), ["interactive", "idle", "conda", "param"], "those that go with no array or venv");
    let request = only(command(&["python", "train.py"]), &said);
    insta::assert_snapshot!("every_flag", serde_json::to_string_pretty(&request).unwrap());
}

#[test]
fn the_default_is_one_gpu_in_this_folder_with_the_callers_environment() {
    let request = only(command(&["true"]), &[]);
    assert_eq!((request.resources.gpus, request.directory.as_path(), request.name.as_deref()), (1, Path::new("/project"), None));
    assert_eq!(request.environment["HF_TOKEN"], "hf_1");
    let shown = request.without_secrets().environment;
    assert_eq!((shown["HF_TOKEN"].as_str(), shown["HOME"].as_str()), (HIDDEN, "/home/ada"));
}

#[test]
fn an_interactive_job_without_a_command_is_a_shell() {
    let run = |source, said: &[_]| only(source, said).command;
    let program = |word: &str| JobCommand::Program(vec![word.to_owned()]);
    assert_eq!(run(command(&[]), &[("interactive", "")]), program("/bin/sh"));
    assert_eq!(run(command(&[]), &[("interactive", ""), ("env", "SHELL=/bin/zsh")]), program("/bin/zsh"));
    assert_eq!(run(command(&["jupyter"]), &[("interactive", "")]), program("jupyter"));
    let limit = |idle| only(command(&[]), &[("interactive", ""), ("idle", idle)]).resources.idle_limit;
    assert_eq!([limit("2h"), limit("unlimited")], [Some(Seconds::from_secs(7200)), None]);
}

const SCRIPT: &str = "\
#!/bin/bash
# Trains.
#CARMA --gpus 2 -J 'my job' --mem=20GiB # as measured
#CARMA -t30 --env A=1 --env B=2 --hold

#SBATCH --job-name=other --partition long
#SBATCH -c 4 --mem=32G --output=slurm-%s.out
python train.py \"$@\"
#SBATCH --time=5
";

#[test]
fn a_scripts_lines_are_flags_and_the_command_line_wins() {
    let source = Source::Text { name: "train.sh", text: SCRIPT, arguments: vec!["--lr".to_owned(), "$(id)".to_owned()] };
    let (submissions, notes) = ask(source, &[("gpus", "1"), ("env", "B=3")]).unwrap();
    let request = submissions[0].requests().next().unwrap();
    assert_eq!(request.name.as_deref(), Some("my job"), "what is said to us counts");
    assert_eq!((request.resources.gpus, request.resources.memory), (1, Some(MiB(20_480))));
    assert_eq!((request.resources.cpus, request.resources.host_memory), (Some(4), Some(MiB(32_768))));
    assert_eq!((request.resources.time_limit, request.schedule.hold), (Some(Seconds::from_secs(1800)), true));
    assert_eq!((request.environment["A"].as_str(), request.environment["B"].as_str()), ("1", "3"));
    assert_eq!(request.command, JobCommand::Script { text: SCRIPT.to_owned(), arguments: vec!["--lr".to_owned(), "$(id)".to_owned()] });
    insta::assert_snapshot!("script_notes", notes.join("\n"));
}

const JOBS: &str = r#"
gpus = 2
mem = "20GiB"
env = { A = "1,2", LIMIT = 5 }
command = ["python", "train.py"]

[[job]]
name = "first"
after = [12, "@data:any"]
hold = true

[[job]]
name = "second"
gpus = 0x1
host_mem = 4096
begin = 2027-01-31T08:00:00
exclusive = false
env = ["NONE", "B=3"]
command = ["sh", "-c", "echo $A"]
"#;

#[test]
fn jobs_of_a_file_share_the_keys_above_them() {
    let [first, second] = requests(text("jobs.toml", JOBS), &[("priority", "7")]).try_into().unwrap();
    assert_eq!((first.name.as_deref(), first.resources.gpus, first.resources.memory), (Some("first"), 2, Some(MiB(20_480))));
    assert_eq!((first.environment["A"].as_str(), first.environment["LIMIT"].as_str()), ("1,2", "5"));
    let after: Vec<_> = first.schedule.after.iter().map(|after| (after.job.as_str(), after.condition)).collect();
    assert_eq!((after, first.schedule.hold), (vec![("12", Condition::Ok), ("@data", Condition::Any)], true));
    assert_eq!(first.command, JobCommand::Program(["python", "train.py"].map(str::to_owned).to_vec()));
    assert_eq!((second.name.as_deref(), second.resources.gpus, second.resources.host_memory), (Some("second"), 1, Some(MiB(4096))));
    assert_eq!(second.environment.into_iter().collect::<Vec<_>>(), [("B".to_owned(), "3".to_owned())]);
    assert_eq!((second.schedule.begin.unwrap() - first_second(), second.resources.exclusive), (20 * 3600, false));
    assert_eq!([first.schedule.priority, second.schedule.priority], [Priority(7); 2]);
}

fn first_second() -> u64 {
    (super::caller().now)().timestamp().as_second().try_into().unwrap()
}

#[test]
fn a_task_file_sets_environment_and_measured_memory() {
    let task = "# ResNet\nconda activate torch\npython train.py --name 'a b'\nresnet50.model\nimagenet\n64\ntraining\n2\n7118\n40000\n";
    for name in ["resnet.rad", "-"] {
        let request = only(text(name, task), &[]);
        assert_eq!(request.command, JobCommand::Program(["python", "train.py", "--name", "a b"].map(str::to_owned).to_vec()));
        assert_eq!(request.activation, Some(Activation::Conda("torch".to_owned())));
        assert_eq!((request.resources.gpus, request.resources.memory), (2, Some(MiB(7118))));
        assert_eq!((request.hints.batch, request.hints.model), (Some(64), Some(PathBuf::from("/project/resnet50.model"))));
    }
    assert_eq!(only(text("a.rad", task), &[("venv", "/v"), ("mode", "mig")]).activation, Some(Activation::Venv("/v".into())), "flags win");
}

#[test]
fn the_form_of_standard_input_is_detected() {
    assert!(matches!(only(text("-", "#!/bin/sh\ntrue\n"), &[]).command, JobCommand::Script { .. }));
    assert_eq!(only(text("-", "command = ['a']\nmode = 'mig'\n"), &[]).resources.mode, RequestedMode::Mig);
}

#[test]
fn requests_survive_being_written_and_read_and_are_checked_again() {
    let request = only(command(&["a"]), &[("image", "x"), ("engine", "docker"), ("after", "last"), ("mem", "1.5g")]);
    assert_eq!(request.image.as_ref().unwrap().engine, Some(ContainerEngine::Docker));
    let written = serde_json::to_string(&request).unwrap();
    let mut read = serde_json::from_str(&written).unwrap();
    assert_eq!(request, read);
    check(&read).unwrap();
    read.name = Some("../x".to_owned());
    assert_eq!(check(&read).unwrap_err().key, "name");
}
