//! Refused submissions with their messages, and harmless text that looks dangerous.

use std::fmt::Write;

use carma_manager::request::JobCommand;
use carma_manager::submission::Source;

use super::{ask, command, flags, only, text};

/// The error for each of these.
fn told<'a>(questions: impl IntoIterator<Item = (&'a str, Source<'a>, Vec<(&'a str, &'a str)>)>) -> String {
    questions.into_iter().fold(String::new(), |mut told, (what, source, said)| {
        let error = ask(source, &said).err().unwrap_or_else(|| panic!("{what}, {said:?} is accepted"));
        let flags: Vec<String> = said.iter().map(|(name, value)| format!("--{name} {value:?}")).collect();
        writeln!(told, "{what:?} {}\n    {error}", flags.join(" ")).unwrap();
        told
    })
}

#[test]
fn invalid_flags_are_refused() {
    let long = "x".repeat(101);
    let one = [
        ("gpus", "-1"),
        ("gpus", "99999"),
        ("mem", "40 cows"),
        ("mem", "0"),
        ("cpus", "0"),
        ("time", "soon"),
        ("time", "0"),
        ("name", "a/b"),
        ("name", "-rf"),
        ("name", ".."),
        ("name", "a\nb"),
        ("name", ""),
        ("name", &long),
        ("priority", "high"),
        ("after", "singleton"),
        ("after", "@a/b"),
        ("array", "5-1"),
        ("array", "0-100000"),
        ("array", "1,1"),
        ("env", "1A=2"),
        ("env", "MISSING"),
        ("env", "A=\0"),
        ("output", "%s.out"),
        ("output", "~/out"),
        ("begin", "yesterday"),
        ("begin", "2027-01-30T11:00"),
        ("mode", "fast"),
        ("image", "--privileged"),
        ("engine", "docker"),
        ("estimate", "guess"),
        ("param", "lr"),
        ("param", "lr=1,1"),
        ("param", "a=1..400,1..401"),
        ("at-most", "2"),
        ("batch", "0"),
        ("retries", "-1"),
        ("workdir", "a\nb"),
        ("conda", "-x"),
    ];
    let one = one.map(|said| vec![said]);
    let several: [Vec<(&str, &str)>; 10] = [
        vec![("gpus", "0"), ("mem", "1GiB")],
        vec![("gpus", "0"), ("exclusive", "")],
        vec![("conda", "a"), ("venv", "b")],
        vec![("env", "A=1"), ("env", "A=2")],
        vec![("array", "1-3"), ("param", "lr=1,2")],
        vec![("array", "1-3"), ("interactive", "")],
        vec![("idle", "2h")],
        vec![("interactive", ""), ("idle", "0")],
        vec![("param", "lr=1"), ("param", "LR=2")],
        vec![("param", "a=1..400"), ("param", "b=1..400")],
    ];
    insta::assert_snapshot!("flags", told(one.into_iter().chain(several).map(|said| ("a command", command(&["a"]), said))));
}

#[test]
fn invalid_commands_are_refused() {
    let long = "x".repeat(131_072);
    let commands: [&[&str]; 4] = [&[], &[""], &["a\0b"], &["a", &long]];
    let questions = commands.map(|words| ("a command", command(words), Vec::new()));
    insta::assert_snapshot!("commands", told(questions));
}

#[test]
fn invalid_scripts_are_refused() {
    let scripts = [
        "echo hello\n",
        "#!/bin/sh\n#CARMA --memm 40\n",
        "#!/bin/sh\n#CARMA --mem\n",
        "#!/bin/sh\n#CARMA --hold=yes\n",
        "#!/bin/sh\n\n#CARMA gpus 2\n",
        "#!/bin/sh\n#CARMA --name 'open\n",
        "#!/bin/sh\n#CARMA --gpus 1 --name ../x\n",
        "#!/bin/sh\n#CARMA -x 3\n",
        "#!/bin/sh\ntrue\n#CARMA --gpus 2\n",
        "#!/bin/sh\n#CARMA --gpus 1\n#CARMA --gpus 2\n",
        "#!/bin/sh\n#SBATCH --time=soon\n",
    ];
    insta::assert_snapshot!("scripts", told(scripts.map(|script| (script, text("train.sh", script), Vec::new()))));
}

#[test]
fn invalid_files_are_refused() {
    let files = [
        "gpus = \n",
        "command = ['a']\nmemory = 40\n",
        "command = ['a']\nprioritty = 1\n",
        "command = 'python train.py'\n",
        "command = ['a', 1]\n",
        "command = ['a']\nhold = 'yes'\n",
        "command = ['a']\ngpus = true\n",
        "command = ['a']\nmem = '40 cows'\n",
        "command = ['a']\nparam = { lr = ['a,b'] }\n",
        "gpus = 1\n",
        "job = 1\n",
        "[[job]]\ncommand = ['a']\n[[job]]\ncommand = ['a']\nname = '-x'\n",
    ];
    let tasks = [
        "# a\nsource activate torch\n",
        "# a\nconda activate t\npython a.py; rm x\nm\nd\n64\ntraining\n1\n",
        "# a\nconda activate -n x\na\nm\nd\n64\ntraining\n1\n",
    ];
    let files = files.map(|file| (file, text("jobs.toml", file), Vec::new()));
    let tasks = tasks.map(|task| (task, text("task.rad", task), Vec::new()));
    insta::assert_snapshot!("files", told(files.into_iter().chain(tasks)));
    let words = Source::Text { name: "jobs.toml", text: "command = ['a']", arguments: vec!["b".to_owned()] };
    assert_eq!(ask(words, &[]).unwrap_err(), "jobs.toml: contains its command: words after -- are only for scripts");
}

#[test]
fn a_missing_folder_is_reported_with_its_option() {
    let script = text("train.sh", "#!/bin/sh\n#CARMA --workdir /nonexistent\n");
    let (submissions, _) = script.submissions(&[], &super::caller()).unwrap();
    assert_eq!(submissions[0].check_files().unwrap_err().to_string(), "train.sh, line 2: --workdir: /nonexistent is not a folder");
    let scratch = tempfile::tempdir().unwrap();
    let here = scratch.path().to_str().unwrap();
    let wrong = |said: &[(&str, &str)]| {
        let (submissions, _) = command(&["a"]).submissions(&flags(said), &super::caller()).unwrap();
        submissions[0].check_files().map_err(|error| error.to_string().replace(here, "HERE"))
    };
    assert_eq!(wrong(&[("workdir", here)]), Ok(()));
    assert_eq!(wrong(&[("workdir", here), ("model", here)]), Err("--model: HERE is not a file".to_owned()));
    assert_eq!(
        wrong(&[("workdir", here), ("venv", here)]),
        Err("--venv: HERE is not a virtual environment: it has no bin/activate".to_owned())
    );
}

#[test]
fn text_that_looks_like_a_command_stays_data() {
    for evil in ["$(touch /tmp/x)", "`id`", "; rm -rf ~", "a\nb", "'\"", "| sh", "&& id", "--flag", "{lr}", "%n", "\u{1b}[31m"] {
        let words = JobCommand::Program(vec!["echo".to_owned(), evil.to_owned()]);
        let variable = format!("A={evil}");
        let request = only(command(&["echo", evil]), &[("env", &variable)]);
        assert_eq!((&request.command, request.environment["A"].as_str()), (&words, evil));
        let file = format!("command = [\"echo\", {0}]\nenv = {{ A = {0} }}\n", toml::Value::from(evil));
        let request = only(text("jobs.toml", &file), &[]);
        assert_eq!((request.command, request.environment["A"].as_str()), (words, evil));
        if !evil.contains(['\n', '\'']) {
            let script = format!("#!/bin/sh\n#CARMA --env 'A={evil}'\n");
            assert_eq!(only(text("a.sh", &script), &[]).environment["A"], evil);
        }
    }
    // A sweep's value is a word, or part of one, and never part of a script.
    let swept = super::requests(command(&["echo", "x={v}"]), &[("param", "v=$(id);ls,'a b'")]);
    let commands: Vec<_> = swept.into_iter().map(|request| request.command).collect();
    assert_eq!(commands, ["x=$(id);ls", "x='a b'"].map(|word| JobCommand::Program(vec!["echo".to_owned(), word.to_owned()])));
    let script = "#!/bin/sh\necho {v}\n";
    let request = super::requests(text("a.sh", script), &[("param", "v=$(id)")]).remove(0);
    assert_eq!(request.command, JobCommand::Script { text: script.to_owned(), arguments: Vec::new() });
    assert_eq!(request.environment["CARMA_PARAM_V"], "$(id)");
}
