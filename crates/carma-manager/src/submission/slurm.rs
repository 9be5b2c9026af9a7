//! `#SBATCH` lines: the flags that mean the same here.

use std::path::Path;

use super::check::check_pattern;
use super::values::digits;

/// A Slurm flag as options of ours.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Translated {
    /// Keys and their values.
    pub(super) options: Vec<(&'static str, String)>,
    /// What differs here.
    pub(super) note: Option<String>,
}

/// Flags that mean the same here: long name, letter, key.
const SAME: [(&str, &str, &str); 14] = [
    ("--job-name", "-J", "name"),
    ("--time", "-t", "time"),
    ("--array", "-a", "array"),
    ("--cpus-per-task", "-c", "cpus"),
    ("--chdir", "-D", "workdir"),
    ("--begin", "-b", "begin"),
    ("--dependency", "-d", "after"),
    ("--output", "-o", "output"),
    ("--error", "-e", "error"),
    ("--mem", "", "host-mem"),
    ("--hold", "-H", "hold"),
    ("--gpus", "-G", "gpus"),
    ("--gpus-per-node", "", "gpus"),
    ("--gres", "", "gpus"),
];

/// Whether a flag has a value; unset for an unknown flag.
pub(super) fn takes_value(option: &str) -> Option<bool> {
    match option {
        "-H" | "--hold" | "--exclusive" | "--requeue" | "--no-requeue" | "--contiguous" | "--overcommit" => Some(false),
        "--export" | "--nodes" | "-N" => Some(true),
        _ => SAME.iter().any(|(long, short, _)| [*long, *short].contains(&option)).then_some(true),
    }
}

/// Translates a flag.
pub(super) fn translate(option: &str, value: &str) -> Translated {
    let one = |key, value: &str| Translated { options: vec![(key, value.to_owned())], note: None };
    let left_out = |why: &str| Translated { options: Vec::new(), note: Some(format!("ignored: {why}")) };
    if option == "--export" {
        return export(value);
    }
    match SAME.iter().find(|(long, short, _)| [*long, *short].contains(&option)) {
        Some(&(_, _, "gpus")) => gpus(option, value).unwrap_or_else(|| left_out("only a number of GPUs is supported, as in gpu:2")),
        Some(&(_, _, "after")) if ["afterok:", "afterany:"].iter().any(|kind| value.starts_with(kind)) && !value.contains('?') => {
            one("after", value)
        }
        Some(&(_, _, "after")) => left_out("only afterok and afterany are supported"),
        Some(&(_, _, key @ ("output" | "error"))) if check_pattern(Path::new(value)).is_err() => {
            let why = format!("only the patterns %j, %A, %a, %x, %u and %N are supported; give #CARMA --{key}");
            left_out(&why)
        }
        // Slurm writes 0 for no limit.
        Some(&(_, _, "time")) if value == "0" => one("time", "unlimited"),
        Some(&(_, _, "host-mem")) if value == "0" => left_out("one job cannot have all memory of the host"),
        // Slurm counts in MiB.
        Some(&(_, _, "host-mem")) if digits(value).is_some() => one("host-mem", &format!("{value}MiB")),
        Some(&(_, _, key)) => one(key, value),
        // A job has one node anyway.
        None if matches!(option, "--nodes" | "-N") && value == "1" => Translated::default(),
        None if matches!(option, "--nodes" | "-N") => left_out("a job runs on one server"),
        None if option == "--exclusive" => left_out("it means a whole server in Slurm; give #CARMA --exclusive for exclusive GPUs"),
        None => left_out("it is not supported"),
    }
}

/// `2` or `a100:2`; in a list of resources `gpu`, `gpu:2` or `gpu:a100:2`.
fn gpus(option: &str, value: &str) -> Option<Translated> {
    let parts: Vec<&str> = value.split(':').collect();
    let (kind, count) = match (option, parts.as_slice()) {
        ("--gres", ["gpu"]) => (None, "1"),
        ("--gres", ["gpu", kind]) if digits(kind).is_none() => (Some(kind), "1"),
        ("--gres", ["gpu", kind, count]) => (Some(kind), *count),
        ("--gres", ["gpu", count]) => (None, *count),
        ("--gres", _) => return None,
        (_, [count]) => (None, *count),
        (_, [kind, count]) => (Some(kind), *count),
        _ => return None,
    };
    digits(count)?;
    let note = kind.map(|kind| format!("the GPU type {kind} is ignored"));
    Some(Translated { options: vec![("gpus", count.to_owned())], note })
}

/// Slurm's list is complete; ours adds to the caller's environment.
fn export(value: &str) -> Translated {
    let items: Vec<&str> = value.split(',').filter(|item| !item.is_empty()).collect();
    let only = (!items.contains(&"ALL") && !items.contains(&"NONE")).then_some("NONE");
    let options = only.into_iter().chain(items).map(|item| ("env", item.to_owned()));
    Translated { options: options.collect(), note: None }
}

#[cfg(test)]
mod tests {
    use super::translate;

    fn translated(option: &str, value: &str) -> (String, Option<String>) {
        let found = translate(option, value);
        let options: Vec<String> = found.options.into_iter().map(|(key, value)| format!("{key}={value}")).collect();
        (options.join(" "), found.note)
    }

    #[test]
    fn equivalent_slurm_options_are_accepted() {
        for (option, value, expected) in [
            ("--gres", "gpu:2", "gpus=2"),
            ("--gres", "gpu", "gpus=1"),
            ("-G", "4", "gpus=4"),
            ("--mem", "64G", "host-mem=64G"),
            ("--mem", "500", "host-mem=500MiB"),
            ("-t", "0", "time=unlimited"),
            ("--dependency", "afterok:12:13", "after=afterok:12:13"),
            ("--export", "ALL,A=1", "env=ALL env=A=1"),
            ("--export", "A,B", "env=NONE env=A env=B"),
            ("--nodes", "1", ""),
            ("-N", "1", ""),
            ("-o", "logs/%x-%j.out", "output=logs/%x-%j.out"),
            ("--output", "slurm-%A_%a.out", "output=slurm-%A_%a.out"),
        ] {
            assert_eq!(translated(option, value), (expected.to_owned(), None), "{option} {value}");
        }
    }

    #[test]
    fn other_slurm_options_are_noted() {
        for (option, value, expected) in [
            ("--gres", "gpu:a100:2", "gpus=2"),
            ("--gres", "gpu:a100", "gpus=1"),
            ("--gpus", "a100:2", "gpus=2"),
            ("--gres", "tape:1,gpu:2", ""),
            ("--gres", "tape:1", ""),
            ("--gpus", "a100:2,h100:1", ""),
            ("--output", "slurm-%s.out", ""),
            ("--dependency", "singleton", ""),
            ("--exclusive", "", ""),
            ("--partition", "long", ""),
            ("--mem", "0", ""),
            ("--nodes", "2", ""),
        ] {
            let (options, note) = translated(option, value);
            assert_eq!((options.as_str(), note.is_some()), (expected, true), "{option} {value}");
        }
    }
}
