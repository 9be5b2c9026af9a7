//! The batch job of a pilot: arguments of `sbatch`, and the script.

use std::fs::{DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::cluster::PoolSettings;

/// Slurm announces the end this many seconds before, or up to a minute earlier.
const NOTICE: u64 = 120;

/// The paths that a pilot needs. All nodes must have them.
#[derive(Debug, Clone)]
pub(crate) struct PilotPaths {
    /// The folder for scripts and logs.
    pub(crate) folder: PathBuf,
    /// This program.
    pub(crate) program: PathBuf,
    /// Where the manager is.
    pub(crate) address: PathBuf,
    pub(crate) secret: PathBuf,
    /// The folder with the checkpoints of all jobs.
    pub(crate) checkpoints: PathBuf,
}

impl PilotPaths {
    pub(crate) fn script(&self, pilot: &str) -> PathBuf {
        self.folder.join(format!("{pilot}.sh"))
    }

    fn log(&self, pilot: &str) -> PathBuf {
        self.folder.join(format!("{pilot}.log"))
    }

    pub(super) fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder)?;
        OpenOptions::new().write(true).create(true).truncate(true).mode(0o700).open(path)?.write_all(text.as_bytes())
    }

    /// Removes the files of a pilot that is over. The log stays for a pilot that failed.
    pub(crate) fn remove(&self, pilot: &str, with_log: bool) {
        let _ = std::fs::remove_file(self.script(pilot));
        if with_log {
            let _ = std::fs::remove_file(self.log(pilot));
        }
    }

    /// The last lines of a pilot's log, which may say why it failed.
    pub(crate) fn last_lines(&self, pilot: &str) -> String {
        let text = std::fs::read(self.log(pilot)).unwrap_or_default();
        let text = String::from_utf8_lossy(&text[text.len().saturating_sub(2048)..]).into_owned();
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines[lines.len().saturating_sub(3)..].join("; ")
    }
}

/// The arguments of `sbatch`, without the script. Other users can see them, so there are no secrets.
pub(crate) fn arguments(pilot: &str, settings: &PoolSettings, paths: &PilotPaths) -> Vec<String> {
    let gpus = settings.gpu_type.as_ref().map_or_else(|| settings.gpus.to_string(), |kind| format!("{kind}:{}", settings.gpus));
    // The limit is in minutes, rounded up.
    let minutes = (settings.time.get() / 60.0).ceil().max(1.0) as u64;
    let notice = NOTICE.min(minutes * 60 / 4);
    let mut arguments = vec![
        format!("--job-name={pilot}"),
        // A requeued pilot would be a second one under the same name.
        "--no-requeue".to_owned(),
        "--nodes=1".to_owned(),
        "--ntasks=1".to_owned(),
        format!("--gres=gpu:{gpus}"),
        format!("--time={minutes}"),
        format!("--signal=B:USR1@{notice}"),
        format!("--output={}", paths.log(pilot).display()),
    ];
    let options = [
        ("partition", settings.partition.clone()),
        ("account", settings.account.clone()),
        ("qos", settings.qos.clone()),
        ("constraint", settings.constraint.clone()),
        ("cpus-per-task", settings.cpus.map(|cpus| cpus.to_string())),
        ("mem", settings.mem.map(|memory| format!("{}M", memory.0))),
    ];
    arguments.extend(options.into_iter().filter_map(|(name, value)| Some(format!("--{name}={}", value?))));
    arguments.extend(settings.extra.iter().cloned());
    arguments
}

/// The script. The agent replaces the shell, so that signals reach it; with a teardown the shell passes them on.
pub(crate) fn script(pilot: &str, settings: &PoolSettings, paths: &PilotPaths) -> String {
    let quoted = |path: &Path| quote(&path.to_string_lossy());
    let seconds = settings.time.get().ceil() as u64;
    let agent = format!(
        "{} agent --manager-file {} --secret {} --pilot {pilot} --checkpoints {} --ends-at $((begun + {seconds}))",
        quoted(&paths.program),
        quoted(&paths.address),
        quoted(&paths.secret),
        quoted(&paths.checkpoints),
    );
    let setup = settings.setup.as_ref().map(|setup| format!("{setup} || {{ echo \"the setup failed with code $?\" >&2; exit 1; }}\n"));
    let run = match &settings.teardown {
        None => format!("exec {agent}\n"),
        Some(teardown) => format!(
            "{agent} &\nagent=$!\ntrap 'kill -USR1 $agent' USR1\ntrap 'kill -TERM $agent' TERM\n\
             wait $agent; code=$?\nwhile kill -0 $agent 2>/dev/null; do wait $agent; code=$?; done\n{teardown}\nexit $code\n"
        ),
    };
    format!(
        "#!/bin/sh\n# A pilot of CARMA: its agent runs jobs on these GPUs until the manager returns them.\nbegun=$(date +%s)\n{}{run}",
        setup.unwrap_or_default()
    )
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use carma_core::{MiB, Seconds};

    use super::*;

    fn settings() -> PoolSettings {
        PoolSettings {
            partition: Some("gpu".to_owned()),
            gpus: 4,
            gpu_type: Some("a100".to_owned()),
            gpu_memory: None,
            time: Seconds::from_secs(8 * 3600),
            cpus: None,
            mem: Some(MiB(65_536)),
            max: 4,
            backlog: 1,
            idle: Seconds::from_secs(600),
            patience: Seconds::from_secs(300),
            account: None,
            qos: None,
            constraint: None,
            setup: Some("module load cuda".to_owned()),
            teardown: None,
            extra: vec!["--exclude=gn7".to_owned()],
        }
    }

    fn paths() -> PilotPaths {
        PilotPaths {
            folder: "/home/ada/state/pilots".into(),
            program: "/opt/it's/carma".into(),
            address: "/home/ada/state/agents.json".into(),
            secret: "/home/ada/state/agents.secret".into(),
            checkpoints: "/home/ada/state/attempts".into(),
        }
    }

    #[test]
    fn a_pilot_is_one_batch_job() {
        insta::assert_snapshot!(arguments("carma-ab12", &settings(), &paths()).join("\n"));
        insta::assert_snapshot!(script("carma-ab12", &settings(), &paths()));
        insta::assert_snapshot!(script(
            "carma-ab12",
            &PoolSettings { teardown: Some("rm -rf /scratch/ada".to_owned()), ..settings() },
            &paths()
        ));
    }
}
