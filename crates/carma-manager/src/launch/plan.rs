//! The exact command line, variables and files of a job.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use carma_gpu::environment;
use carma_gpu::mps::ClientLimits;

use super::activation::activate;
use super::assignment::Assignment;
use super::checkpoints::CHECKPOINT_SIGNAL;
use super::container::Container;
use super::error::PlanError;
use super::host_facts::Lookup;
use super::slurm_variables::slurm_variables;
use crate::attempt::{Order, Terminal, TerminalSize};
use crate::request::{Image, JobCommand};
use crate::submission::is_for_slurm;

/// The command of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The order for the shim.
    pub order: Order,
    /// The script to write into the folder.
    pub script: Option<String>,
}

/// Plans the command.
pub fn plan(assignment: &Assignment<'_>, lookup: &Lookup) -> Result<Plan, PlanError> {
    let request = assignment.request;
    let mut variables = variables(assignment, lookup);
    let (mut command, script) = match &request.command {
        JobCommand::Program(words) => (words.clone(), None),
        JobCommand::Script { text, arguments } => {
            let words = interpreted(text, &assignment.folder.script()).into_iter().chain(arguments.iter().cloned());
            (words.collect(), Some(text.clone()))
        }
    };
    if let Some(activation) = request.activation.as_ref() {
        if request.image.is_some() {
            return Err(PlanError::ActivationInContainer);
        }
        command = activate(activation, lookup.conda.as_ref(), command, &mut variables)?;
    }
    let mut afterwards = None;
    if let Some(image) = &request.image {
        let container = container(assignment, image, lookup, &variables)?;
        afterwards = container.remove();
        command = container.run(command)?;
    }
    let output = request.output.as_deref().map(|pattern| file(assignment, lookup, pattern));
    let order = Order {
        attempt: assignment.attempt,
        command,
        directory: request.directory.clone(),
        environment: variables,
        umask: request.umask,
        user: assignment.user.cloned(),
        error: request.error.as_deref().map(|pattern| file(assignment, lookup, pattern)).or_else(|| output.clone()),
        output,
        log_limit: assignment.log_limit,
        limits: assignment.limits.clone(),
        group: None,
        checkpoint_folder: assignment.checkpoints.map(|_| assignment.checkpoint_folder.clone()),
        checkpoint_signal: CHECKPOINT_SIGNAL,
        afterwards,
        open_files: lookup.open_files,
        lease: None,
        terminal: request.interactive.then(|| Terminal { idle_limit: request.resources.idle_limit, size: TerminalSize::default() }),
    };
    Ok(Plan { order, script })
}

/// The user's variables, then those that describe the job and its devices.
fn variables(assignment: &Assignment<'_>, lookup: &Lookup) -> BTreeMap<String, String> {
    let mut variables = assignment.request.environment.clone();
    let mut set = |name: &str, value: String| variables.insert(name.to_owned(), value);
    if let Some(user) = assignment.user {
        set("HOME", user.home.to_string_lossy().into_owned());
        set("USER", user.name.clone());
        set("LOGNAME", user.name.clone());
    }
    set("CARMA_JOB_ID", assignment.attempt.job.0.to_string());
    set("CARMA_ATTEMPT", assignment.attempt.number.to_string());
    set("CARMA_PROGRESS", assignment.folder.progress().to_string_lossy().into_owned());
    for (name, value) in
        assignment.checkpoints.into_iter().flat_map(|terms| terms.variables(assignment.attempt, &assignment.checkpoint_folder))
    {
        set(name, value);
    }
    if let Some(element) = &assignment.request.array {
        set("CARMA_ARRAY_INDEX", element.index.to_string());
        if let Some(array) = element.array {
            set("CARMA_ARRAY_ID", array.0.to_string());
        }
    }
    if matches!(&assignment.request.command, JobCommand::Script { text, .. } if is_for_slurm(text)) {
        for (name, value) in slurm_variables(assignment, lookup) {
            set(name, value);
        }
    }
    for (name, value) in environment(assignment.devices) {
        set(name, value);
    }
    let limits = assignment.placement.devices.first().and_then(|granted| ClientLimits::of(granted.limits));
    for (name, value) in limits.zip(assignment.mps).into_iter().flat_map(|(limits, control)| limits.environment(control)) {
        set(name, value.to_string_lossy().into_owned());
    }
    variables
}

/// The command of a script: the interpreter in its first line, like the kernel, but also on a noexec disk.
fn interpreted(script: &str, path: &Path) -> Vec<String> {
    let first = script.lines().next().and_then(|line| line.strip_prefix("#!")).map(str::trim).filter(|line| !line.is_empty());
    let words = first.unwrap_or("/bin/sh").splitn(2, [' ', '\t']).map(|word| word.trim().to_owned());
    words.chain([path.to_string_lossy().into_owned()]).collect()
}

fn container<'a>(
    assignment: &'a Assignment<'a>,
    image: &'a Image,
    lookup: &Lookup,
    variables: &'a BTreeMap<String, String>,
) -> Result<Container<'a>, PlanError> {
    let script = matches!(assignment.request.command, JobCommand::Script { .. }).then(|| assignment.folder.script());
    let checkpoints = assignment.checkpoints.map(|_| assignment.checkpoint_folder.clone());
    let pipes = variables.get("CUDA_MPS_PIPE_DIRECTORY").map(PathBuf::from);
    Ok(Container {
        engine: lookup.engine.ok_or_else(|| PlanError::NoEngine(image.name.clone()))?,
        image: &image.name,
        attempt: assignment.attempt,
        user: assignment.user,
        devices: assignment.devices,
        limits: &assignment.limits,
        directory: &assignment.request.directory,
        mounts: lookup.home.iter().cloned().chain(script).chain(pipes).chain(checkpoints).chain([assignment.folder.progress()]).collect(),
        variables,
        name_file: assignment.folder.container(),
        terminal: assignment.request.interactive,
    })
}

/// A path with its placeholders filled in.
fn file(assignment: &Assignment<'_>, lookup: &Lookup, pattern: &Path) -> PathBuf {
    let job = assignment.attempt.job.0.to_string();
    let element = assignment.request.array.as_ref();
    let array = element.and_then(|element| element.array).map_or_else(|| job.clone(), |array| array.0.to_string());
    let index = element.map(|element| element.index.to_string()).unwrap_or_default();
    // A name is one component of a path.
    let name = assignment.request.name.as_deref().unwrap_or_default().replace('/', "_");
    let pattern = pattern.to_string_lossy();
    let mut parts = pattern.split('%');
    let mut path = parts.next().unwrap_or_default().to_owned();
    while let Some(part) = parts.next() {
        let (value, rest) = match part.chars().next() {
            Some('j') => (job.as_str(), &part[1..]),
            Some('A') => (array.as_str(), &part[1..]),
            Some('a') => (index.as_str(), &part[1..]),
            Some('N') => (lookup.node.as_str(), &part[1..]),
            Some('x') => (name.as_str(), &part[1..]),
            Some('u') => (assignment.owner, &part[1..]),
            // `%%` is a literal percent sign.
            None => ("%", parts.next().unwrap_or_default()),
            Some(_) => ("%", part),
        };
        path.push_str(value);
        path.push_str(rest);
    }
    assignment.request.directory.join(path)
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, AttemptId, DeviceId, Granted, JobId, Limits, MiB, Placement, Seconds, ServerId};
    use carma_gpu::DeviceUuid;
    use carma_gpu::mps::MpsControl;

    use super::super::checkpoints::CheckpointTerms;
    use super::*;
    use crate::attempt::{HostLimits, RunAs};
    use crate::request::{Activation, ArrayElement, ContainerEngine, JobRequest};
    use crate::supervise::AttemptFolder;

    fn request(command: JobCommand) -> JobRequest {
        let mut request = JobRequest::new(command, "/home/ada/my project");
        request.array = Some(ArrayElement { index: 7, array: Some(ArrayId(5)), parameters: BTreeMap::new() });
        request.environment = [("PATH", "/usr/bin:/bin"), ("CUDA_VISIBLE_DEVICES", "0"), ("TOKEN", "a b")]
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into();
        request
    }

    fn program(words: &[&str]) -> JobCommand {
        JobCommand::Program(words.iter().map(ToString::to_string).collect())
    }

    fn planned(request: &JobRequest, limits: &[Limits], lookup: &Lookup) -> Result<Plan, PlanError> {
        let granted = |(ordinal, limits)| Granted { device: DeviceId::gpu(ServerId(0), ordinal), reserved: MiB(1024), limits };
        let placement = Placement { server: ServerId(0), devices: (0..).zip(limits.iter().copied()).map(granted).collect() };
        let devices: Vec<DeviceUuid> = (0..limits.len()).map(|number| format!("GPU-{number}").parse().unwrap()).collect();
        let control = MpsControl::new("GPU-0".parse().unwrap(), "/run/mps/0", "/log/mps/0");
        let assignment = Assignment {
            attempt: AttemptId { job: JobId(12), number: 3 },
            request,
            owner: "ada",
            user: Some(&RunAs { uid: 1000, gid: 100, name: "ada".to_owned(), home: "/home/ada".into() }),
            placement: &placement,
            devices: &devices,
            mps: Some(&control),
            folder: &AttemptFolder::at("/state/attempts/12/3"),
            log_limit: 1 << 20,
            limits: HostLimits::default(),
            checkpoint_folder: "/state/attempts/12/checkpoint".into(),
            checkpoints: Some(CheckpointTerms { grace: Seconds::from_secs(30), slot: Some(Seconds::from_secs(43_200)) }),
        };
        plan(&assignment, lookup)
    }

    #[test]
    fn a_job_gets_variables_about_its_place_and_limits() {
        let mps = Limits::Mps { active_threads: Some(50), memory: Some(MiB(2048)) };
        let words = ["python", "-c", "print('a b')", "", "--lr", "-1\n"];
        let plan = planned(&request(program(&words)), &[mps], &Lookup::default()).unwrap();
        assert_eq!(plan.order.command, words);
        let variables: Vec<String> = plan.order.environment.iter().map(|(name, value)| format!("{name}={value}")).collect();
        insta::assert_snapshot!("variables", variables.join("\n"));
        let none = planned(&request(program(&["true"])), &[], &Lookup::default()).unwrap();
        assert_eq!(none.order.environment["CUDA_VISIBLE_DEVICES"], "", "a job without GPUs must not see any");
        let two = planned(&request(program(&["true"])), &[Limits::Streams; 2], &Lookup::default()).unwrap();
        assert_eq!(two.order.environment["CUDA_VISIBLE_DEVICES"], "GPU-0,GPU-1");
        assert!(!two.order.environment.contains_key("CUDA_MPS_PIPE_DIRECTORY"));
    }

    #[test]
    fn scripts_run_with_the_interpreter_of_their_first_line() {
        let command = |script: &str| interpreted(script, "/state/a b/script".as_ref()).join("|");
        assert_eq!(command("echo hello\n"), "/bin/sh|/state/a b/script");
        assert_eq!(command("#!/bin/bash\necho"), "/bin/bash|/state/a b/script");
        assert_eq!(command("#! /usr/bin/env -S python3 -u\r\nprint()"), "/usr/bin/env|-S python3 -u|/state/a b/script");
        assert_eq!(command("#!\n"), "/bin/sh|/state/a b/script");
        let plan =
            planned(&request(JobCommand::Script { text: "#!/bin/bash\n".to_owned(), arguments: Vec::new() }), &[], &Lookup::default())
                .unwrap();
        assert_eq!(plan.script.as_deref(), Some("#!/bin/bash\n"));
        assert!(plan.order.environment.keys().all(|name| !name.starts_with("SLURM_")));
    }

    #[test]
    fn scripts_for_slurm_find_its_variables() {
        let text = "#!/bin/bash\n#SBATCH --gres=gpu:1\n".to_owned();
        let mut job = JobRequest { name: Some("train".to_owned()), ..request(JobCommand::Script { text, arguments: Vec::new() }) };
        (job.resources.cpus, job.resources.host_memory) = (Some(4), Some(MiB(2048)));
        let lookup = Lookup { node: "gn1".to_owned(), ..Lookup::default() };
        let order = planned(&job, &[Limits::Streams], &lookup).unwrap().order;
        let variables = order.environment.iter().filter(|(name, _)| name.starts_with("SLURM_"));
        insta::assert_snapshot!("slurm-variables", variables.map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn output_files_are_named_after_the_job() {
        let named = |output: &str| {
            let job = JobRequest { output: Some(output.into()), name: Some("../../etc/a b".to_owned()), ..request(program(&["true"])) };
            let order = planned(&job, &[], &Lookup::default()).unwrap().order;
            assert_eq!(order.error, order.output);
            order.output.unwrap().display().to_string()
        };
        assert_eq!(named("logs/%j-%a.txt"), "/home/ada/my project/logs/12-7.txt");
        assert_eq!(named("%A_%a-%N.out"), "/home/ada/my project/5_7-.out");
        assert_eq!(named("/logs/%x"), "/logs/.._.._etc_a b");
        assert_eq!(named("/scratch/%u/%j"), "/scratch/ada/12");
        assert_eq!(named("100%%j %y%"), "/home/ada/my project/100%j %y%");
    }

    #[test]
    fn an_interactive_job_has_a_terminal() {
        let terminal = |interactive| {
            let job = JobRequest { interactive, ..request(program(&["bash"])) };
            planned(&job, &[], &Lookup::default()).unwrap().order.terminal
        };
        let half_an_hour = Some(Seconds::from_secs(1800));
        assert_eq!(terminal(true), Some(Terminal { idle_limit: half_an_hour, size: TerminalSize { rows: 24, columns: 80 } }));
        assert_eq!(terminal(false), None);
    }

    #[test]
    fn a_container_has_the_script_the_home_and_the_way_to_mps() {
        let image = |engine| Some(Image { name: "torch".to_owned(), engine });
        let job =
            JobRequest { image: image(None), ..request(JobCommand::Script { text: "#!/bin/bash\n".to_owned(), arguments: Vec::new() }) };
        let mps = Limits::Mps { active_threads: None, memory: None };
        let lookup = Lookup { engine: Some(ContainerEngine::Docker), home: Some("/home/ada".into()), ..Lookup::default() };
        let order = planned(&job, &[mps], &lookup).unwrap().order;
        for mounted in
            ["/home/ada", "/state/attempts/12/checkpoint", "/state/attempts/12/3/script", "/state/attempts/12/3/progress", "/run/mps/0"]
        {
            assert!(order.command.contains(&format!("type=bind,\"source={mounted}\",\"target={mounted}\"")), "{:?}", order.command);
        }
        assert!(order.command.ends_with(&["torch", "/bin/bash", "/state/attempts/12/3/script"].map(str::to_owned)));
        assert!(
            order.command.contains(&"host".to_owned()) && !order.command.concat().contains("a b"),
            "no value of a variable is to be seen"
        );
        assert_eq!(order.afterwards.unwrap().join(" "), "docker rm --force carma-12-3");
        assert_eq!(planned(&job, &[], &Lookup::default()), Err(PlanError::NoEngine("torch".to_owned())));
        let both = JobRequest { activation: Some(Activation::Conda("torch".to_owned())), ..job };
        assert_eq!(planned(&both, &[], &lookup), Err(PlanError::ActivationInContainer));
    }
}
