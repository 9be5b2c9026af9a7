//! `carma status`: how the manager is.

use std::io::Write;

use anyhow::Result;
use carma_manager::api::Status;
use carma_manager::client::Address;
use jiff::tz::TimeZone;

use super::common::{AnswerArguments, write_json};
use super::text::moment;
use carma_format::printable;
use carma_format::{count, duration, wrapped};

pub(super) fn run(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let mut client = arguments.manager.connect()?;
    let status = client.status()?;
    if arguments.json { write_json(&status, output) } else { Ok(write!(output, "{}", text(&status, client.address()))?) }
}

/// The state of a manager in a few lines.
pub(crate) fn text(status: &Status, address: &Address) -> String {
    let Status { version, pid, up, gpu_source, speed, policy, jobs, .. } = status;
    let faster = if (speed - 1.0).abs() < f64::EPSILON { String::new() } else { format!(", time {speed}x as fast") };
    let mode = match (status.observes, status.draining) {
        (true, _) => " It only observes, and starts no jobs.",
        (false, true) => " It is draining: it starts no jobs, and ends after the last one.",
        (false, false) => "",
    };
    let lines = [
        format!("carma {version}, process {pid}, up for {}, at {address}.{mode}", duration(up.get())),
        format!("{} ({gpu_source}{faster}), policy {policy}.", count(status.gpus as usize, "GPU")),
        format!("{} running, {} waiting, {} held.", jobs.running, jobs.waiting, jobs.held),
    ];
    let left_out = status.left_out.iter().map(|reason| format!("{reason}."));
    let not_enforced = status.not_enforced.join(", ");
    let not_enforced = (!not_enforced.is_empty()).then(|| format!("Limits of jobs that are not enforced here: {not_enforced}."));
    let problems = status.problems.iter().map(|problem| format!("! {problem}"));
    let zone = TimeZone::system();
    let errors = status.errors.iter().map(|error| format!("{} {}", moment(error.at, &zone), error.text));
    let title = (!status.errors.is_empty()).then(|| "Last warnings and errors:".to_owned());
    let problems = problems.chain(title).chain(errors);
    lines.into_iter().chain(left_out).chain(not_enforced).chain(problems).map(|line| wrapped(&printable(&line)) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use carma_core::Seconds;
    use carma_manager::api::Counts;
    use carma_manager::store::UnixMillis;

    use super::*;

    #[test]
    fn the_status_shows_address_mode_and_problems() {
        let status = Status {
            version: "0.1.0".to_owned(),
            pid: 4711,
            now: UnixMillis(0),
            started: UnixMillis(0),
            up: Seconds::from_secs(3725),
            observes: true,
            draining: false,
            gpu_source: "emulated in /tmp/emu".to_owned(),
            emulated: true,
            speed: 60.0,
            gpus: 4,
            servers: 0,
            pools: 0,
            left_out: vec!["GPUs 4 and 5 are not used: not in CUDA_VISIBLE_DEVICES".to_owned()],
            metrics: Vec::new(),
            policy: "lug".to_owned(),
            jobs: Counts { running: 3, waiting: 12, held: 1 },
            not_enforced: vec!["cores (--cpus)".to_owned(), "number of processes".to_owned()],
            problems: vec!["s0/gpu3 is lost".to_owned()],
            errors: Vec::new(),
        };
        insta::assert_snapshot!("status", text(&status, &Address::Socket("/run/carma/carma.sock".into())));
    }
}
