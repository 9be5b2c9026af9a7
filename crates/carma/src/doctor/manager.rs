//! The findings about the manager: whether it runs, answers in time, and is of this version. Pure.

use std::path::PathBuf;
use std::time::Duration;

use carma_core::ServerId;
use carma_format::{duration, quoted};
use carma_manager::api::GpuDetail;

use super::findings::{Finding, Health, finding};

/// An engine that takes longer for a short answer is behind.
const SLOW: Duration = Duration::from_millis(500);
/// GPUs are sampled every second, unless the configuration says otherwise.
const OLD_SAMPLE: Duration = Duration::from_secs(10);

/// What is known about the manager.
#[derive(Debug)]
pub(super) enum Manager {
    /// It answers.
    Runs(Running),
    /// Nothing listens at these sockets. A manager that was killed leaves its socket.
    Absent { sockets: Vec<PathBuf>, left_socket: Option<PathBuf>, state: Option<PathBuf> },
    /// It cannot be used.
    Unusable { error: String },
}

/// A manager that answers.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) address: String,
    pub(super) version: String,
    pub(super) pid: u32,
    pub(super) up: Duration,
    /// The time of an answer that needs the engine; or why there is none.
    pub(super) answer: Result<Duration, String>,
    /// The age of the latest sample of the GPU that was sampled last, if it has GPUs.
    pub(super) sample_age: Option<Duration>,
    /// Its program was replaced or removed on the disk.
    pub(super) program_replaced: bool,
    pub(super) observes: bool,
    pub(super) draining: bool,
    pub(super) problems: Vec<String>,
    /// Its GPUs, if it answered.
    pub(super) gpus: Vec<GpuDetail>,
}

/// All findings about the manager, as this version of the program sees it.
pub(super) fn findings(manager: &Manager, own_version: &str) -> Vec<Finding> {
    match manager {
        Manager::Runs(running) => about_running(running, own_version),
        Manager::Absent { sockets, left_socket, state } => {
            let places: Vec<String> = sockets.iter().map(|socket| socket.display().to_string()).collect();
            let says = match left_socket {
                Some(socket) => format!("no manager runs; one that was killed left {}. Its jobs continue", socket.display()),
                None => format!("no manager runs: nothing listens at {}", places.join(" or ")),
            };
            let fix = match state {
                Some(state) => format!("carma up --detach --state {}", quoted(&state.display().to_string())),
                None => "carma up --detach, or sudo carma service install to start it at every boot".to_owned(),
            };
            vec![finding(Health::Warning, says, Some(&fix))]
        }
        Manager::Unusable { error } => vec![finding(Health::Error, format!("the manager cannot be used: {error}"), None)],
    }
}

fn about_running(running: &Running, own_version: &str) -> Vec<Finding> {
    let Running { address, version, pid, up, .. } = running;
    let says = format!("the manager runs at {address}: version {version}, process {pid}, for {}", duration(up.as_secs_f64()));
    let mut all = vec![finding(Health::Ok, says, None)];
    if version != own_version {
        let says = format!("the manager has version {version}, this program {own_version}");
        all.push(finding(Health::Warning, says, Some(RESTART)));
    } else if running.program_replaced {
        let says = "the manager's program was replaced on the disk: the manager still runs the old one";
        all.push(finding(Health::Warning, says, Some(RESTART)));
    }
    all.push(about_answer(&running.answer));
    all.extend(running.sample_age.map(about_samples));
    if running.observes {
        all.push(finding(Health::Note, "the manager only observes: it starts no jobs", Some("restart it without --observe")));
    }
    if running.draining {
        all.push(finding(Health::Note, "the manager drains: it starts no more jobs, and ends with the last one", None));
    }
    all.extend(running.problems.iter().map(|problem| finding(Health::Warning, problem.as_str(), Some(&remedy(problem, &running.gpus)))));
    all
}

/// What to do about a problem. Those of a GPU begin with its name.
fn remedy(problem: &str, gpus: &[GpuDetail]) -> String {
    let of_gpu = |gpu: &&GpuDetail| problem.strip_prefix(&gpu.device.to_string()).is_some_and(|rest| rest.starts_with(' '));
    let Some(gpu) = gpus.iter().find(of_gpu) else { return "carma status shows the last errors".to_owned() };
    let name =
        if gpu.device.server() == ServerId(0) { gpu.device.label().trim_start_matches("gpu").to_owned() } else { gpu.device.to_string() };
    if gpu.lost {
        let resume = if gpu.drained {
            format!("then carma resume {name}")
        } else {
            format!("carma drain {name} before that keeps jobs away until carma resume {name}")
        };
        format!(
            "reset it (nvidia-smi -r) or restart the host: it is used again when it answers; {resume}. A removed GPU is forgotten when the manager restarts"
        )
    } else if gpu.drained && problem.contains("drained") {
        format!("carma resume {name}, when it may take jobs again")
    } else {
        format!("dmesg shows what the driver says; no job starts on it. Restart the host if it goes on, and carma drain {name} before")
    }
}

const RESTART: &str = "restart the manager: jobs continue (systemctl restart carma, or carma down and carma up --detach)";

fn about_answer(answer: &Result<Duration, String>) -> Finding {
    match answer {
        Ok(time) if *time < SLOW => finding(Health::Ok, format!("its engine answers in {:.0} ms", time.as_secs_f64() * 1000.0), None),
        Ok(time) => {
            let says = format!("its engine is behind: an answer takes {:.1} s", time.as_secs_f64());
            finding(Health::Warning, says, Some("look for a slow disk and for a host without free cores: carma status, and Disk below"))
        }
        Err(error) => {
            finding(Health::Error, format!("its engine does not answer: {error}"), Some("carma status names the part that is stuck"))
        }
    }
}

fn about_samples(age: Duration) -> Finding {
    let age_text = duration(age.as_secs_f64());
    if age < OLD_SAMPLE {
        return finding(Health::Ok, format!("the latest GPU sample is {age_text} old"), None);
    }
    let says = format!("no GPU has been sampled for {age_text}: no job starts on a GPU without samples");
    finding(Health::Error, says, Some("nvidia-smi tells whether the driver answers; carma gpus shows each GPU"))
}

#[cfg(test)]
mod tests {
    use carma_core::DeviceId;

    use super::*;
    use crate::what_if::sample_gpu;

    fn running() -> Running {
        Running {
            address: "/run/carma/carma.sock".to_owned(),
            version: "0.2.0".to_owned(),
            pid: 4711,
            up: Duration::from_secs(3600),
            answer: Ok(Duration::from_millis(2)),
            sample_age: Some(Duration::from_millis(700)),
            program_replaced: false,
            observes: false,
            draining: false,
            problems: Vec::new(),
            gpus: Vec::new(),
        }
    }

    fn healths(running: Running) -> Vec<Health> {
        findings(&Manager::Runs(running), "0.2.0").into_iter().map(|finding| finding.health).collect()
    }

    #[test]
    fn a_healthy_manager_has_no_remedy() {
        let all = findings(&Manager::Runs(running()), "0.2.0");
        assert!(all.iter().all(|finding| finding.health == Health::Ok && finding.fix.is_none()), "{all:?}");
    }

    #[test]
    fn another_version_and_a_replaced_program_are_restarts() {
        let other = findings(&Manager::Runs(running()), "0.3.0");
        assert_eq!((other[1].health, other[1].says.as_str()), (Health::Warning, "the manager has version 0.2.0, this program 0.3.0"));
        let replaced = findings(&Manager::Runs(Running { program_replaced: true, ..running() }), "0.2.0");
        assert!(replaced[1].says.contains("replaced on the disk") && replaced[1].fix.as_ref().is_some_and(|fix| fix.contains("restart")));
    }

    #[test]
    fn a_slow_engine_is_a_warning_and_a_silent_one_an_error() {
        let with = |answer| healths(Running { answer, sample_age: None, ..running() });
        assert_eq!(with(Ok(Duration::from_secs(2))), [Health::Ok, Health::Warning]);
        assert_eq!(with(Err("timed out".to_owned())), [Health::Ok, Health::Error]);
        let old = healths(Running { sample_age: Some(Duration::from_secs(60)), ..running() });
        assert_eq!(old, [Health::Ok, Health::Ok, Health::Error]);
    }

    #[test]
    fn remedies_of_lost_and_drained_gpus_name_the_command() {
        let gpu = |number: u16| GpuDetail { device: DeviceId::gpu(ServerId(0), number), ..sample_gpu(number, "NVIDIA A100-SXM4-40GB") };
        let gpus = vec![GpuDetail { lost: true, ..gpu(3) }, GpuDetail { drained: true, ..gpu(2) }, gpu(1)];
        let problems = ["s0/gpu3 is lost", "s0/gpu2 was drained by root 5 s ago", "s0/gpu1 has not answered for 5 s", "short"];
        let problems = problems.map(str::to_owned).to_vec();
        let all = findings(&Manager::Runs(Running { problems, gpus, ..running() }), "0.2.0");
        let fixes: Vec<String> = all.iter().rev().take(4).rev().map(|finding| finding.fix.clone().unwrap()).collect();
        assert!(fixes[0].contains("carma resume 3") && fixes[1].contains("carma resume 2"), "{fixes:?}");
        assert!(fixes[2].contains("carma drain 1") && fixes[3].contains("carma status"), "{fixes:?}");
    }

    #[test]
    fn a_manager_that_was_killed_left_its_socket() {
        let sockets = vec![PathBuf::from("/run/carma/carma.sock")];
        let absent = |left_socket| findings(&Manager::Absent { sockets: sockets.clone(), left_socket, state: None }, "0.2.0").remove(0);
        let other = Manager::Absent { sockets: sockets.clone(), left_socket: None, state: Some("/tmp/a b".into()) };
        assert_eq!(findings(&other, "0.2.0")[0].fix.as_deref(), Some("carma up --detach --state '/tmp/a b'"));
        assert_eq!(absent(None).says, "no manager runs: nothing listens at /run/carma/carma.sock");
        let killed = absent(Some(sockets[0].clone()));
        assert!(killed.health == Health::Warning && killed.says.contains("was killed left /run/carma/carma.sock"), "{killed:?}");
    }
}
