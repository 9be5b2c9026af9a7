//! A job in blocks of labelled lines: the request, the expectation, the events.

use std::io::{self, Write};

use carma_core::{Condition, Limits, MiB, OnHang, RequestedMode};
use carma_manager::api::{AttemptDetail, CancelCause, JobDetail, JobPrediction, LogStream, explained};
use carma_manager::request::{Activation, Resources, Schedule};
use carma_manager::store::{Phase, StoredEvent, UnixMillis};
use jiff::tz::TimeZone;

use super::super::queue::identity;
use super::super::text::{command_text, estimate, moment, span, utilisation};
use carma_format::{Terminal, WIDTH, count, duration, energy, fitted, labelled, memory, printable, wrapped, wrapped_to};

/// Letters of a label, with the space before and after it.
const LABEL: usize = 13;

/// Writes all blocks.
pub(crate) fn write(job: &JobDetail, now: UnixMillis, zone: &TimeZone, output: &mut impl Write) -> io::Result<()> {
    let name = job.request.name.as_ref().map_or(String::new(), |name| format!(" {name:?}"));
    let state = match (&job.outcome, &job.held_by) {
        _ if job.phase == Phase::Estimating => "being estimated".to_owned(),
        (Some(outcome), _) => format!("{outcome}{}", job.cancelled.as_ref().map_or(String::new(), cancelled)),
        (None, Some(by)) if job.phase == Phase::Held => format!("{} by {by}", job.state),
        (None, _) => match job.state.active().and_then(|active| active.stall) {
            Some(stall) => format!("{}, and {stall}", job.state),
            None => format!("{}{}", job.state, unused(job, now)),
        },
    };
    let head = format!("job {}{name} of {}: {state}", identity(job.id, job.array), job.owner.name);
    writeln!(output, "{}", wrapped(&printable(&head)))?;
    block("", request(job, zone), output)?;
    block("estimate", expected(job), output)?;
    block("prediction", predicted(&job.prediction), output)?;
    for attempt in &job.attempts {
        let ended = attempt.ended.unwrap_or(now);
        let from = moment(attempt.launched, zone);
        block(
            &format!("attempt {}: {from}, {}", attempt.attempt.number, duration(span(attempt.launched, ended))),
            measured(attempt),
            output,
        )?;
    }
    if let Some(last) = &job.last_output {
        let stream = if last.stream == LogStream::Stderr { " --stderr" } else { "" };
        writeln!(output, "\nlast lines (carma logs{stream} {})", identity(job.id, job.array))?;
        last.lines.iter().try_for_each(|line| writeln!(output, "  {}", printable(line)))?;
    }
    if !job.events.is_empty() {
        writeln!(output, "\ntimeline")?;
    }
    for StoredEvent { event, text, .. } in &job.events {
        writeln!(output, "{}", fitted(&labelled(&format!("  {}", moment(event.at, zone)), 23, &printable(text))))?;
    }
    Ok(())
}

/// A job that was never seen on its GPUs for this long is remarked on, in milliseconds.
const UNUSED_AFTER: u64 = 600_000;

/// That a job was started long ago and has not used its GPUs.
fn unused(job: &JobDetail, now: UnixMillis) -> String {
    let attempt = job.attempts.last().filter(|attempt| job.phase == Phase::Starting && !attempt.placement.devices.is_empty());
    let is_flagged = job.state.active().is_some_and(|active| active.idle.is_some());
    match attempt.map(|attempt| attempt.launched) {
        Some(launched) if is_flagged || now.0.saturating_sub(launched.0) >= UNUSED_AFTER => {
            format!(", and has not used its GPU for {}", duration(span(launched, now)))
        }
        _ => String::new(),
    }
}

/// The cause of a cancellation.
fn cancelled(cause: &CancelCause) -> String {
    match cause {
        CancelCause::User(by) => format!(" by {by}"),
        CancelCause::OverLimit(limit) => format!(": {limit}"),
    }
}

type Line = (&'static str, Option<String>);

/// The nonempty lines under a title; no output without any.
fn block(title: &str, lines: Vec<Line>, output: &mut impl Write) -> io::Result<()> {
    if lines.iter().all(|(_, text)| text.is_none()) {
        return Ok(());
    }
    if !title.is_empty() {
        writeln!(output, "\n{title}")?;
    }
    for (label, text) in lines {
        let Some(text) = text else { continue };
        if Terminal::current().plain {
            writeln!(output, "{}", labelled(label, LABEL, &printable(&text)))?;
            continue;
        }
        let rows = wrapped_to(&printable(&text), WIDTH - LABEL);
        for (place, row) in rows.lines().enumerate() {
            let label = if place == 0 { label } else { "" };
            // A long path is for copying, and not cut.
            writeln!(output, "  {label:<width$}{row}", width = LABEL - 2)?;
        }
    }
    Ok(())
}

fn request(job: &JobDetail, zone: &TimeZone) -> Vec<Line> {
    let request = &job.request;
    let path = |path: &std::path::Path| Some(path.display().to_string()).filter(|path| !path.is_empty());
    let activation = request.activation.as_ref().map(|activation| match activation {
        Activation::Conda(name) => format!("conda {name}"),
        Activation::Venv(folder) => format!("venv {}", folder.display()),
    });
    let parameters = request.array.iter().flat_map(|element| &element.parameters).map(|(name, value)| format!("{name}={value}"));
    vec![
        ("command", Some(command_text(&request.command)).filter(|command| !command.is_empty())),
        ("parameters", listed(parameters)),
        ("folder", path(&request.directory)),
        ("activates", activation),
        ("image", request.image.as_ref().map(|image| image.name.clone())),
        ("output", request.output.as_deref().and_then(path)),
        ("errors", request.error.as_deref().and_then(path)),
        ("needs", Some(needs(&request.resources))),
        ("if hanging", (request.on_hang != OnHang::Report).then(|| on_hang(request.on_hang).to_owned())),
        ("schedule", schedule(&request.schedule, zone)),
        ("submitted", Some(moment(job.submitted, zone))),
        ("ended", job.ended.map(|at| format!("{}, {} later", moment(at, zone), duration(span(job.submitted, at))))),
        ("memory", job.declaration.clone()),
        ("energy", job.energy.map(|joules| energy(joules.0))),
    ]
}

const fn on_hang(action: OnHang) -> &'static str {
    match action {
        OnHang::Report => "it is reported",
        OnHang::Restart => "it is restarted",
        OnHang::Fail => "it fails",
        OnHang::Ignore => "nothing: it is not watched",
    }
}

fn needs(resources: &Resources) -> String {
    let Resources { gpus, memory: size, cpus, host_memory, time_limit, exclusive, mode, .. } = resources;
    let mode = match mode {
        RequestedMode::Auto => None,
        wish => serde_json::to_value(wish).ok().and_then(|wish| wish.as_str().map(|wish| format!("shared by {wish}"))),
    };
    let parts = [
        Some(count(*gpus as usize, "GPU")),
        size.map(|size| format!("{} on each", memory(size))),
        exclusive.then(|| "alone".to_owned()),
        mode,
        cpus.map(|cores| count(cores as usize, "core")),
        host_memory.map(|size| format!("{} of the host", memory(size))),
        time_limit.map(|limit| format!("{} at most", duration(limit.get()))),
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn schedule(schedule: &Schedule, zone: &TimeZone) -> Option<String> {
    let after = schedule.after.iter().map(|after| match after.condition {
        Condition::Ok => format!("after {} succeeded", after.job),
        Condition::Any => format!("after {} ended", after.job),
    });
    let others = [
        (schedule.priority.0 != 0).then(|| format!("priority {}", schedule.priority.0)),
        schedule.begin.map(|begin| format!("not before {}", moment(UnixMillis(begin.saturating_mul(1000)), zone))),
        schedule.at_most.map(|most| format!("at most {most} of its array at once")),
    ];
    listed(others.into_iter().flatten().chain(after))
}

/// The expectation against the measurement.
fn expected(job: &JobDetail) -> Vec<Line> {
    let peak = job.attempts.iter().flat_map(|attempt| &attempt.peaks).filter(|peak| **peak > MiB(0)).max();
    vec![
        ("beforehand", estimate(&job.estimate)),
        ("made of", listed(job.estimate.parts.iter().map(|part| format!("{} {}", part.name, memory(part.memory))))),
        ("measured", peak.map(|peak| format!("{} at most{}", memory(*peak), compared(*peak, job.estimate.upper)))),
        ("notes", (!job.estimate.notes.is_empty()).then(|| job.estimate.notes.join("; "))),
    ]
}

fn predicted(prediction: &JobPrediction) -> Vec<Line> {
    let basis = prediction.basis.as_ref().map_or(String::new(), |basis| format!(", by {basis}"));
    vec![
        ("progress", prediction.progress.map(|share| format!("{:.0} %", share * 100.0))),
        ("starts", prediction.starts.map(|starts| starts.text())),
        ("ends", prediction.ends.map(|ends| format!("{}{basis}", ends.text()))),
    ]
}

fn compared(MiB(peak): MiB, upper: Option<MiB>) -> String {
    match upper {
        Some(MiB(upper)) if upper > 0 => format!(", {:.0} % of its upper bound", peak as f64 / upper as f64 * 100.0),
        _ => String::new(),
    }
}

fn measured(attempt: &AttemptDetail) -> Vec<Line> {
    let granted = attempt.placement.devices.iter().map(|granted| {
        let most = match granted.limits {
            Limits::Driver { memory: most } | Limits::Mps { memory: Some(most), .. } => format!(", {} at most", memory(most)),
            Limits::Mps { memory: None, .. } | Limits::Streams | Limits::Mig { .. } => String::new(),
        };
        format!("{} ({} reserved{most})", granted.device, memory(granted.reserved))
    });
    vec![
        ("on", listed(granted)),
        ("ended", attempt.verdict.as_ref().map(|end| explained(end, attempt.reason.as_deref()))),
        // A job that ended before the first sample has none.
        ("peak", listed(attempt.peaks.iter().filter(|peak| **peak > MiB(0)).map(|peak| memory(*peak)))),
        ("busy", utilisation(&attempt.utilisation)),
        ("energy", attempt.energy.map(|joules| energy(joules.0))),
    ]
}

fn listed(parts: impl Iterator<Item = String>) -> Option<String> {
    let parts: Vec<String> = parts.collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

#[cfg(test)]
mod tests {
    use carma_core::{Seconds, State, Time};
    use carma_manager::api::{EstimateDetail, PredictedTime};
    use carma_manager::request::{JobCommand, JobRequest};

    use super::super::fixtures::sample;
    use super::*;

    fn between(earliest: u64, latest: u64) -> PredictedTime {
        let [earliest, likely, latest] = [earliest, u64::midpoint(earliest, latest), latest].map(Seconds::from_secs);
        PredictedTime { earliest, likely, latest }
    }

    fn shown(job: &JobDetail) -> String {
        let mut output = Vec::new();
        write(job, UnixMillis(1_800_003_000_000), &TimeZone::UTC, &mut output).unwrap();
        let text = String::from_utf8(output).unwrap();
        assert_eq!(text.lines().find(|line| line.chars().count() > 80), None, "too wide");
        text
    }

    #[test]
    fn a_job_is_shown_in_blocks_and_what_is_not_known_is_left_out() {
        let waiting = JobDetail {
            request: JobRequest::new(JobCommand::Program(Vec::new()), ""),
            state: State::Queued { since: Time::ZERO },
            phase: Phase::Queued,
            outcome: None,
            ended: None,
            estimate: EstimateDetail::default(),
            array: None,
            attempts: Vec::new(),
            events: Vec::new(),
            energy: None,
            prediction: JobPrediction {
                starts: Some(between(130, 345)),
                ends: Some(between(2000, 3000)),
                basis: Some("3 earlier runs of this command".to_owned()),
                ..JobPrediction::default()
            },
            ..sample()
        };
        insta::assert_snapshot!("show", format!("{}\n{}", shown(&sample()), shown(&waiting)));
    }

    #[test]
    fn plain_text_has_a_fact_per_line() {
        let plain = Terminal { plain: true, ..Terminal::UNKNOWN };
        let mut output = Vec::new();
        plain.replaced(|| write(&sample(), UnixMillis(1_800_003_000_000), &TimeZone::UTC, &mut output)).unwrap();
        insta::assert_snapshot!("show-plain", String::from_utf8(output).unwrap());
    }

    #[test]
    fn a_job_that_has_not_used_its_gpu_says_so_after_ten_minutes() {
        let attempt = AttemptDetail { launched: UnixMillis(1_800_003_000_000 - 1_680_000), ended: None, ..sample().attempts[0].clone() };
        let starting = |launched: u64| {
            let attempts = vec![AttemptDetail { launched: UnixMillis(launched), ..attempt.clone() }];
            let job = JobDetail { phase: Phase::Starting, outcome: None, attempts, ..sample() };
            unused(&job, UnixMillis(1_800_003_000_000))
        };
        assert_eq!(starting(attempt.launched.0), ", and has not used its GPU for 28 min");
        assert_eq!(starting(1_800_003_000_000 - 599_000), "");
    }

    #[test]
    fn the_first_line_says_who_holds_or_cancelled_a_job() {
        let first = |job: JobDetail| shown(&job).lines().next().unwrap_or_default().to_owned();
        let held = State::Held { since: Time::ZERO, resumes: carma_core::Resumes::Estimating };
        let held = JobDetail { state: held, phase: Phase::Held, outcome: None, held_by: Some("root".to_owned()), ..sample() };
        assert_eq!(first(held), "job 12_3 \"resnet\" of ada: held by root");
        let cancelled = |cause| JobDetail { outcome: Some("cancelled".to_owned()), cancelled: Some(cause), ..sample() };
        assert_eq!(first(cancelled(CancelCause::User("root".to_owned()))), "job 12_3 \"resnet\" of ada: cancelled by root");
        let over = cancelled(CancelCause::OverLimit("it needs 90 GiB".to_owned()));
        assert_eq!(first(over), "job 12_3 \"resnet\" of ada: cancelled: it needs 90 GiB");
    }
}
