//! An array as a whole: how many of its jobs are in each state.

use std::io::{self, Write};

use carma_core::JobLabel;
use carma_format::{WIDTH, count, printable, wrapped_to};
use carma_manager::api::JobSummary;

use super::super::text::names;

/// Writes a line for each state, with the jobs in it.
pub(super) fn write(jobs: &[JobSummary], output: &mut impl Write) -> io::Result<()> {
    let Some(first) = jobs.first() else { return Ok(()) };
    let name = first.name.as_ref().map_or_else(String::new, |name| format!(" {name:?}"));
    let array = first.array.map_or(first.id.0, |place| place.array.0);
    let head = format!("array {array}{name} of {}: {}", first.user_name, count(jobs.len(), "job"));
    writeln!(output, "{}", wrapped_to(&printable(&head), WIDTH))?;
    let mut states: Vec<(String, Vec<JobLabel>)> = Vec::new();
    for job in jobs {
        let state = job.ending.as_ref().map_or_else(|| job.phase.to_string(), |ending| ending.text.clone());
        match states.iter_mut().find(|(known, _)| *known == state) {
            Some((_, labels)) => labels.push(job.label()),
            None => states.push((state, vec![job.label()])),
        }
    }
    for (state, labels) in &states {
        let text = wrapped_to(&printable(&format!("{} {state}: {}", labels.len(), names(labels))), WIDTH - 2);
        text.lines().try_for_each(|line| writeln!(output, "  {line}"))?;
    }
    writeln!(output, "carma show {} shows one of them", first.label().short())
}

#[cfg(test)]
mod tests {
    use carma_core::{ArrayId, JobId, Outcome, Priority, UserId};
    use carma_manager::api::{ArrayPlace, Ending};
    use carma_manager::store::{Phase, UnixMillis};

    use super::*;

    fn job(index: u32, outcome: Option<Outcome>) -> JobSummary {
        JobSummary {
            id: JobId(6 + u64::from(index)),
            name: Some("same".to_owned()),
            user: UserId(7),
            user_name: "ada".to_owned(),
            phase: if outcome.is_some() { Phase::Done } else { Phase::Running },
            since: UnixMillis(0),
            priority: Priority(0),
            gpus: 1,
            attempts: 1,
            array: Some(ArrayPlace { array: ArrayId(6), index }),
            submitted: UnixMillis(0),
            ended: None,
            ending: outcome.as_ref().map(Ending::from),
            outcome,
            ran: None,
            peak: None,
            energy: None,
        }
    }

    #[test]
    fn jobs_of_an_array_are_counted_by_state() {
        let failed = || Some(Outcome::Failed { code: 1 });
        let mut output = Vec::new();
        write(&[job(0, Some(Outcome::Succeeded)), job(1, failed()), job(2, failed()), job(3, None)], &mut output).unwrap();
        let expected = "array 6 \"same\" of ada: 4 jobs\n  1 succeeded: 6_0\n  2 failed with exit code 1: 6_1-2\n  1 running: 6_3\n\
                        carma show 6_0 shows one of them\n";
        assert_eq!(String::from_utf8(output).unwrap(), expected);
    }
}
