//! The options of a job: one table for flags, `#CARMA` lines and job files.

use carma_core::Priority;
use serde::de::DeserializeOwned;
use serde::de::value::{Error, StrDeserializer};

use super::after::after;
use super::array::Array;
use super::begin::begin;
use super::draft::Draft;
use super::environment;
use super::error::{Place, Problem};
use super::values::{at_least, memory_with_unit, time_limit};
use crate::request::{Activation, Image, Parameter};

/// An option of a job.
#[derive(Debug)]
pub struct Key {
    /// Its heading in the help.
    pub topic: &'static str,
    /// The flag's long name, and the key of a job file.
    pub name: &'static str,
    /// The flag's letter, where Slurm has one for it.
    pub short: Option<char>,
    /// Other names.
    pub aliases: &'static [&'static str],
    /// What its value is called; unset for a switch.
    pub value: Option<&'static str>,
    /// Whether it may be given more than once.
    pub several: bool,
    /// What it means.
    pub help: &'static str,
    pub(super) apply: Apply,
}

/// The value of an option, and where it was given.
#[derive(Debug, Clone)]
pub struct OptionValue {
    /// Which option.
    pub key: &'static Key,
    /// Its value; empty for a switch.
    pub value: String,
    /// Where it was given.
    pub place: Place,
}

/// Applies the value of an option to a job.
type Apply = fn(&mut Draft<'_>, &str) -> Result<(), Problem>;

impl Key {
    const fn valued(topic: &'static str, name: &'static str, value: &'static str, help: &'static str, apply: Apply) -> Self {
        Self { topic, name, short: None, aliases: &[], value: Some(value), several: false, help, apply }
    }

    const fn switch(topic: &'static str, name: &'static str, help: &'static str, apply: Apply) -> Self {
        Self { topic, name, short: None, aliases: &[], value: None, several: false, help, apply }
    }

    const fn or(self, short: Option<char>, aliases: &'static [&'static str]) -> Self {
        Self { short, aliases, ..self }
    }

    const fn several(self) -> Self {
        Self { several: true, ..self }
    }

    /// The key of this name or other name.
    pub fn find(name: &str) -> Result<&'static Self, Problem> {
        let found = KEYS.iter().find(|key| key.name == name || key.aliases.contains(&name));
        found.ok_or_else(|| Problem::UnknownKey { name: name.to_owned(), nearest: nearest(name) })
    }

    /// What two options of one source must not share: a variable is set once, and one environment is activated.
    pub(super) fn subject<'a>(&self, value: &'a str) -> (&'static str, &'a str) {
        match self.name {
            "conda" | "venv" => ("conda or venv", ""),
            name if self.several => (name, value.split('=').next().unwrap_or_default()),
            name => (name, ""),
        }
    }
}

/// The key nearest to a wrong one, if one is near.
fn nearest(wrong: &str) -> Option<&'static str> {
    // No key is longer: the rest of a long text makes it no nearer.
    let wrong: String = wrong.chars().take(64).collect();
    let names = KEYS.iter().flat_map(|key| [key.name].into_iter().chain(key.aliases.iter().copied()));
    // A longer form of a name, as memory is of mem, is near however long.
    let far = |name: &str| if wrong.starts_with(name) { 1 } else { strsim::levenshtein(&wrong, name) };
    let (changes, name) = names.map(|name| (far(name), name)).min()?;
    (changes <= 1 + name.len() / 4).then_some(name)
}

/// A value of an enum, by its serialised name.
fn word<T: DeserializeOwned>(text: &str, expected: &'static str) -> Result<T, Problem> {
    T::deserialize(StrDeserializer::<Error>::new(text)).map_err(|_| Problem::invalid(text, expected))
}

const NEEDS: &str = "Resources";
const SCHEDULING: &str = "Scheduling";
const ENVIRONMENT: &str = "Environment";
const ARRAYS: &str = "Arrays and sweeps";
const RECOVERY: &str = "Estimates and recovery";

/// All options.
#[rustfmt::skip]
pub static KEYS: [Key; 34] = [
    Key::valued(NEEDS, "gpus", "N", "Number of GPUs; 0 for a job without GPUs [default: 1]",
        |draft, text| { draft.request.resources.gpus = at_least(0, text, "a number of GPUs: 0 or more")?; Ok(()) }).or(Some('G'), &[]),
    Key::valued(NEEDS, "mem", "SIZE", "GPU memory per GPU, with its unit, such as 40GiB",
        |draft, text| { draft.request.resources.memory = Some(memory_with_unit(text)?); Ok(()) }).or(None, &["gpu-mem"]),
    Key::valued(NEEDS, "cpus", "N", "CPU cores",
        |draft, text| { draft.request.resources.cpus = Some(at_least(1, text, "a number of cores: 1 or more")?); Ok(()) }).or(Some('c'), &["cpus-per-task"]),
    Key::valued(NEEDS, "host-mem", "SIZE", "Host memory, with its unit, such as 64GiB",
        |draft, text| { draft.request.resources.host_memory = Some(memory_with_unit(text)?); Ok(()) }),
    Key::valued(NEEDS, "time", "TIME", "Time limit of an attempt: minutes, or 90s, 30m, 12h, 1:30:00 (hours), 1-12:00:00 (days), unlimited",
        |draft, text| { draft.request.resources.time_limit = time_limit(text)?; Ok(()) }).or(Some('t'), &[]),
    Key::switch(NEEDS, "exclusive", "Do not share the GPUs with other jobs",
        |draft, _| { draft.request.resources.exclusive = true; Ok(()) }),
    Key::valued(NEEDS, "mode", "MODE", "How GPUs are shared: auto, streams, mps or mig [default: auto]",
        |draft, text| { draft.request.resources.mode = word(text, "a way to share GPUs: auto, streams, mps or mig")?; Ok(()) }),
    Key::valued(SCHEDULING, "name", "NAME", "Name of the job; other commands accept @NAME",
        |draft, text| { draft.request.name = Some(text.to_owned()); Ok(()) }).or(Some('J'), &["job-name"]),
    Key::valued(SCHEDULING, "priority", "N", "Priority; higher runs first [default: 0]",
        |draft, text| { draft.request.schedule.priority = Priority(at_least(i32::MIN, text, "a whole number")?); Ok(()) }),
    Key::valued(SCHEDULING, "after", "JOBS", "Start after these jobs have succeeded, such as 12,last,@name; 12:any also after a failure. The forms afterok:12:13 and afterany:12 of Slurm work too",
        |draft, text| { draft.request.schedule.after = after(text)?; Ok(()) }).or(Some('d'), &["dependency"]),
    Key::valued(SCHEDULING, "begin", "WHEN", "Start no earlier than this time: now+1hour, 16:00, 2027-01-31T08:00 (your time zone)",
        |draft, text| { draft.request.schedule.begin = Some(begin(text, &(draft.caller.now)())?); Ok(()) }).or(Some('b'), &[]),
    Key::switch(SCHEDULING, "hold", "Hold the job until `carma release`",
        |draft, _| { draft.request.schedule.hold = true; Ok(()) }).or(Some('H'), &[]),
    Key::switch(SCHEDULING, "wait-for-hardware", "Accept a job that cannot run on the present hardware; it waits for other hardware",
        |draft, _| { draft.request.schedule.wait_for_hardware = true; Ok(()) }),
    Key::switch(SCHEDULING, "interactive", "Connect the job to this terminal; without a command it runs your shell",
        |draft, _| { draft.request.interactive = true; Ok(()) }),
    Key::valued(SCHEDULING, "idle", "TIME", "End an interactive job after this time without input or output; or unlimited [default: 30m]",
        |draft, text| { draft.request.resources.idle_limit = time_limit(text)?; Ok(()) }),
    Key::valued(ENVIRONMENT, "workdir", "DIR", "Working folder [default: the present folder]",
        |draft, text| { draft.request.directory = draft.caller.directory.join(text); Ok(()) }).or(Some('D'), &["chdir"]),
    Key::valued(ENVIRONMENT, "env", "NAME[=VALUE]", "Set a variable, or pass your own. ALL (default) passes all variables, NONE passes none, also no PATH. Can be repeated; applies in order",
        |draft, text| environment::change(&mut draft.request.environment, text, &draft.caller.environment)).several(),
    Key::valued(ENVIRONMENT, "conda", "ENV", "Activate this Conda environment (name or folder)",
        |draft, text| { draft.request.activation = Some(Activation::Conda(text.to_owned())); Ok(()) }),
    Key::valued(ENVIRONMENT, "venv", "DIR", "Activate this virtual environment",
        |draft, text| { draft.request.activation = Some(Activation::Venv(draft.caller.directory.join(text))); Ok(()) }),
    Key::valued(ENVIRONMENT, "image", "NAME", "Run the job in a container of this image",
        |draft, text| { draft.request.image = Some(Image { name: text.to_owned(), engine: None }); Ok(()) }),
    Key::valued(ENVIRONMENT, "engine", "ENGINE", "Container engine: docker, podman or apptainer [default: the first that is installed]",
        |draft, text| { draft.engine = Some(word(text, "a container engine: docker, podman or apptainer")?); Ok(()) }),
    Key::switch(ENVIRONMENT, "snapshot", "Copy the git work tree now, and run the copy",
        |draft, _| { draft.request.snapshot = true; Ok(()) }),
    Key::valued(ENVIRONMENT, "output", "FILE", "Also write standard output to this file, relative to the working folder. %j, %A, %a, %x, %u and %N stand for job, array, array index, name, user and host; {lr} for a parameter. An existing file is continued",
        |draft, text| { draft.request.output = Some(text.into()); Ok(()) }).or(Some('o'), &[]),
    Key::valued(ENVIRONMENT, "error", "FILE", "Also write standard error to this file [default: the file of --output]",
        |draft, text| { draft.request.error = Some(text.into()); Ok(()) }).or(Some('e'), &[]),
    Key::valued(ARRAYS, "array", "INDICES", "Submit one job per index: 1-10, 0-15:4 (every fourth), 1,3,7; 1-10%3 runs at most 3 at a time. The index is in CARMA_ARRAY_INDEX",
        |draft, text| { draft.set_array(Array::parse(text)?); Ok(()) }).or(Some('a'), &[]),
    Key::valued(ARRAYS, "param", "NAME=VALUES", "Submit one job per value: lr=0.1,0.01 or seed=1..5; several parameters give all combinations. {lr} in the command is replaced; CARMA_PARAM_LR has the value too",
        |draft, text| { draft.set_parameter(Parameter::parse(text)?); Ok(()) }).several(),
    Key::valued(ARRAYS, "at-most", "N", "Run at most N jobs of the array or sweep at a time",
        |draft, text| { draft.request.schedule.at_most = Some(at_least(1, text, "a number of jobs: 1 or more")?); Ok(()) }),
    Key::valued(RECOVERY, "model", "FILE", "A description of the model, for the memory estimate",
        |draft, text| { draft.request.hints.model = Some(draft.caller.directory.join(text)); Ok(()) }),
    Key::valued(RECOVERY, "batch", "N", "Batch size, for the memory estimate",
        |draft, text| { draft.request.hints.batch = Some(at_least(1, text, "a number of samples: 1 or more")?); Ok(()) }),
    Key::valued(RECOVERY, "estimate", "HOW", "dry-run: run the script without a GPU first, and measure its allocations",
        |draft, text| { draft.request.hints.dry_run = true; if text == "dry-run" { Ok(()) } else { Err(Problem::invalid(text, "a way to estimate: dry-run")) } }),
    Key::valued(RECOVERY, "retries", "N", "Number of restarts after a failure [default: 0]",
        |draft, text| { draft.request.retries.failure = at_least(0, text, "a number of times: 0 or more")?; Ok(()) }),
    Key::valued(RECOVERY, "oom-retries", "N", "Number of restarts after an out-of-memory error [default: that of the recovery ladder]",
        |draft, text| { draft.request.retries.out_of_memory = Some(at_least(0, text, "a number of times: 0 or more")?); Ok(()) }),
    Key::switch(RECOVERY, "checkpoint", "The job writes a checkpoint on SIGTERM and resumes from it",
        |draft, _| { draft.request.may_checkpoint = true; Ok(()) }),
    Key::valued(RECOVERY, "on-hang", "WHAT", "When it hangs: report it, restart it (after a checkpoint if it can), fail it, or ignore it [default: report]",
        |draft, text| { draft.request.on_hang = word(text, "what to do when it hangs: report, restart, fail or ignore")?; Ok(()) }),
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{KEYS, Key, nearest};

    #[test]
    fn key_names_are_unique() {
        let names: Vec<&str> = KEYS.iter().flat_map(|key| key.aliases.iter().copied().chain([key.name])).collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        let letters: Vec<char> = KEYS.iter().filter_map(|key| key.short).collect();
        assert_eq!(letters.iter().collect::<BTreeSet<_>>().len(), letters.len());
        assert!(KEYS.iter().all(|key| Key::find(key.name).is_ok_and(|found| found.name == key.name)));
    }

    #[test]
    fn a_wrong_name_gets_a_suggestion() {
        assert_eq!(
            ["gpu", "memm", "oom_retries", "cput", "prioritty"].map(nearest),
            ["gpus", "mem", "oom-retries", "cpus", "priority"].map(Some)
        );
        assert_eq!((nearest("memory"), nearest("colour of the sky")), (Some("mem"), None));
    }
}
