//! The list of pilots, from `squeue`. Its format is stable over versions; its JSON is not.

use std::time::Duration;

/// How names of pilots begin.
pub(crate) const PREFIX: &str = "carma-";

/// Number, name, state, reason, time left, nodes.
pub(super) const FORMAT: &str = "%i|%j|%T|%r|%L|%N";

/// A pilot as the batch system lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ListedPilot {
    pub(crate) name: String,
    pub(crate) batch_job: String,
    pub(crate) state: String,
    pub(crate) reason: String,
    /// Time left; unset if it does not run, or without a limit.
    pub(crate) left: Option<Duration>,
    pub(crate) fate: PilotOutcome,
}

/// What the state means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PilotOutcome {
    Waits,
    Runs,
    /// It has ended, or is being ended.
    Over,
}

/// A line of the list; none if it is no pilot.
pub(super) fn parse(line: &str) -> Option<ListedPilot> {
    let [batch_job, name, state, reason, left, _nodes] = line.trim().split('|').collect::<Vec<_>>().try_into().ok()?;
    if !name.starts_with(PREFIX) {
        return None;
    }
    let fate = match state {
        "PENDING" | "CONFIGURING" | "REQUEUED" | "REQUEUE_HOLD" | "REQUEUE_FED" | "SPECIAL_EXIT" | "RESV_DEL_HOLD" => PilotOutcome::Waits,
        "RUNNING" | "SUSPENDED" | "STOPPED" | "SIGNALING" | "STAGE_OUT" | "RESIZING" => PilotOutcome::Runs,
        _ => PilotOutcome::Over,
    };
    let runs = fate == PilotOutcome::Runs;
    Some(ListedPilot {
        name: name.to_owned(),
        batch_job: batch_job.to_owned(),
        state: state.to_owned(),
        reason: if reason == "None" { String::new() } else { reason.to_owned() },
        left: time_left(left).filter(|_| runs),
        fate,
    })
}

/// `1-02:03:04`, `02:03:04`, `03:04`; `UNLIMITED` and `INVALID` are none.
fn time_left(text: &str) -> Option<Duration> {
    let (days, clock) = text.split_once('-').map_or(Some((0, text)), |(days, clock)| Some((days.parse::<u64>().ok()?, clock)))?;
    let parts = clock.split(':').map(|part| part.parse::<u64>().ok()).collect::<Option<Vec<_>>>()?;
    let seconds = match parts[..] {
        [hours, minutes, seconds] => hours * 3600 + minutes * 60 + seconds,
        [minutes, seconds] => minutes * 60 + seconds,
        _ => return None,
    };
    Some(Duration::from_secs(days * 86_400 + seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pilots_are_distinguished_from_other_jobs() {
        assert_eq!(parse("12|train|RUNNING|None|1:00|gn0"), None);
        assert_eq!(parse("slurm_load_jobs error: Unable to contact slurm controller"), None);
        let running = parse("13|carma-ab|RUNNING|None|1-02:03:04|gn0").unwrap();
        assert_eq!((running.fate, running.left, running.reason.as_str()), (PilotOutcome::Runs, Some(Duration::from_secs(93_784)), ""));
        let pending = parse("14|carma-cd|PENDING|Resources|8:00:00|").unwrap();
        assert_eq!((pending.fate, pending.left, pending.reason.as_str()), (PilotOutcome::Waits, None, "Resources"));
        for state in ["COMPLETING", "TIMEOUT", "PREEMPTED", "NODE_FAIL", "CANCELLED", "FAILED", "OUT_OF_MEMORY", "COMPLETED"] {
            assert_eq!(parse(&format!("15|carma-ef|{state}|x|INVALID|gn0")).unwrap().fate, PilotOutcome::Over, "{state}");
        }
        assert_eq!(["UNLIMITED", "INVALID", "05:06", "x:y"].map(time_left), [None, None, Some(Duration::from_secs(306)), None]);
    }
}
