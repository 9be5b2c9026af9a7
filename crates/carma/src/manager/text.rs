//! Jobs, GPUs and times as text.

use carma_core::{DeviceId, JobLabel, Utilisation};
use carma_manager::api::EstimateDetail;
use carma_manager::request::JobCommand;
use carma_manager::store::UnixMillis;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use carma_format::{duration, memory, printable, quoted};

/// A command as a shell reads it, without control sequences.
pub(crate) fn command_text(command: &JobCommand) -> String {
    match command {
        JobCommand::Program(words) => printable(&words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")),
        JobCommand::Script { text, .. } => format!("a script of {} lines", text.lines().count()),
    }
}

/// Names of jobs in this order, with ranges: `12-21, 30, 32_1-6`.
pub(crate) fn names(jobs: &[JobLabel]) -> String {
    // What stays the same in a row, and what counts up.
    let parts = |label: &JobLabel| label.member.map_or((None, label.job.0), |(array, index)| (Some(array), u64::from(index)));
    let follows = |one: &JobLabel, next: &JobLabel| {
        let (one, next) = (parts(one), parts(next));
        one.0 == next.0 && one.1 + 1 == next.1
    };
    let run = |run: &[JobLabel]| match run {
        [first, .., last] => format!("{}-{}", first.short(), parts(last).1),
        _ => run.iter().map(|label| label.short()).collect(),
    };
    jobs.chunk_by(follows).map(run).collect::<Vec<_>>().join(", ")
}

/// `job 12`, or `jobs 12-21`.
pub(super) fn jobs(jobs: &[JobLabel]) -> String {
    format!("job{} {}", if jobs.len() == 1 { "" } else { "s" }, names(jobs))
}

/// Short names of devices: servers are named if there are several.
pub(crate) fn devices(devices: impl IntoIterator<Item = DeviceId>) -> String {
    let short = |device: DeviceId| {
        let name = device.to_string();
        name.strip_prefix("s0/gpu").map(str::to_owned).unwrap_or(name)
    };
    devices.into_iter().map(short).collect::<Vec<_>>().join(",")
}

/// A moment as clocks here show it.
pub(crate) fn moment(UnixMillis(at): UnixMillis, zone: &TimeZone) -> String {
    let moment = i64::try_from(at).ok().and_then(|at| Timestamp::from_millisecond(at).ok()).unwrap_or_default();
    moment.to_zoned(zone.clone()).strftime("%Y-%m-%d %H:%M:%S").to_string()
}

/// Seconds from one moment to another.
pub(crate) fn span(from: UnixMillis, to: UnixMillis) -> f64 {
    to.0.saturating_sub(from.0) as f64 / 1000.0
}

/// The estimate of a job, and its source; unset without one.
pub(crate) fn estimate(estimate: &EstimateDetail) -> Option<String> {
    let sizes = [
        estimate.expected.map(|size| format!("{} expected", memory(size))),
        estimate.upper.map(|size| format!("{} at most", memory(size))),
        estimate.declared.map(|size| format!("{} declared", memory(size))),
    ];
    let duration = estimate.duration.map(|span| format!("{} alone", duration(span.get())));
    let parts: Vec<String> = sizes.into_iter().chain([utilisation(&estimate.utilisation), duration]).flatten().collect();
    let source = estimate.source.as_ref().map_or(String::new(), |source| format!(" (from: {source})"));
    (!parts.is_empty()).then(|| format!("{}{source}", parts.join(", ")))
}

/// GPU utilisation, where it was measured.
pub(super) fn utilisation(utilisation: &Utilisation) -> Option<String> {
    let known = utilisation.iter().filter_map(|(metric, share)| Some(format!("{} {}", metric.name(), (*share)?)));
    let known: Vec<String> = known.collect();
    (!known.is_empty()).then(|| known.join(", "))
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, JobId, ServerId};

    use super::*;

    #[test]
    fn consecutive_numbers_form_a_range() {
        let list = |numbers: &[u64]| numbers.iter().copied().map(|number| JobId(number).into()).collect::<Vec<JobLabel>>();
        assert_eq!(names(&list(&[1, 2, 3, 5, 7, 8])), "1-3, 5, 7-8");
        let member = |array: u64, index| JobLabel { job: JobId(array + u64::from(index)), member: Some((ArrayId(array), index)) };
        let mixed = [JobId(31).into(), member(32, 0), member(32, 1), member(32, 5), member(40, 6)];
        assert_eq!(jobs(&mixed), "jobs 31, 32_0-1, 32_5, 40_6");
        assert_eq!([jobs(&list(&[4])), jobs(&list(&[4, 5])), jobs(&list(&[]))], ["job 4", "jobs 4-5", "jobs "]);
    }

    #[test]
    fn devices_of_other_servers_keep_their_names() {
        let gpu = |server, ordinal| DeviceId::gpu(ServerId(server), ordinal);
        assert_eq!(devices([gpu(0, 3), gpu(0, 1).instance(2), gpu(1, 0)]), "3,1/mig2,s1/gpu0");
    }
}
