//! What must hold after all kills.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use carma_core::{JobId, Outcome, Verdict};
use carma_emu::Machine;
use carma_manager::api::JobDetail;

use super::super::lab::Lab;
use super::load::{Asked, CODE, Kind, Record, records};

/// Command lines of processes that belong to agents of this cluster: all have the emulated GPUs of a node in their environment.
pub(super) fn left_processes(lab: &Lab) -> Vec<String> {
    let mark = format!("CARMA_EMU={}/emu-", lab.cluster.folder().display());
    let pids = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let read = |pid: u32, file: &str| String::from_utf8_lossy(&fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default()).into_owned();
    pids.filter(|pid| read(*pid, "environ").contains(&mark)).map(|pid| format!("{pid}: {}", read(pid, "cmdline"))).collect()
}

/// Whether no process uses a GPU of any node.
pub(super) fn free_gpus(lab: &Lab) -> bool {
    lab.cluster.nodes().iter().all(|node| {
        let machine = Machine::open(&lab.cluster.folder().join(format!("emu-{node}"))).unwrap();
        machine.with(|state| state.contexts().is_empty()).unwrap()
    })
}

/// Each job ended once, in a state that its own record bears out. Returns a summary.
pub(super) fn check_jobs(asked: &[Asked], details: &[JobDetail], struck: &BTreeSet<u64>, lab: &Lab) -> String {
    let known: BTreeMap<JobId, &JobDetail> = details.iter().map(|detail| (detail.id, detail)).collect();
    let kinds: BTreeMap<&str, Kind> = asked.iter().map(|asked| (asked.name.as_str(), asked.kind)).collect();
    let mut wrong = Vec::new();
    for job in asked.iter().filter_map(|asked| asked.acknowledged) {
        if !known.contains_key(&job) {
            wrong.push(format!("{job} is lost"));
        }
    }
    let (mut outcomes, mut verdicts, mut repeated) = (BTreeMap::new(), BTreeMap::new(), 0);
    for detail in details {
        let name = detail.request.name.as_deref().unwrap_or_default();
        let record = Record::read(&records(lab).join(name));
        let outcome = detail.outcome().unwrap();
        *outcomes.entry(outcome.to_string()).or_insert(0) += 1;
        for attempt in &detail.attempts {
            *verdicts.entry(attempt.verdict.as_ref().map_or_else(String::new, ToString::to_string)).or_insert(0) += 1;
        }
        match judge(detail, kinds[name], &record, struck.contains(&detail.id.0)) {
            Ok(lost_ends) => repeated += lost_ends,
            Err(why) => {
                wrong.push(format!("{name} ({}, {:?}): {outcome}: {why}\n{record:?}\n{:#?}", detail.id, kinds[name], detail.events));
            }
        }
    }
    let attempts: usize = details.iter().map(|detail| detail.attempts.len()).sum();
    let summary = format!(
        "{} jobs with {attempts} attempts: {outcomes:?}\nattempts: {verdicts:?}\n{repeated} attempts ended by themselves, but their agent was lost before \
         it could report that: these jobs ran again",
        details.len()
    );
    assert!(wrong.is_empty(), "{summary}\n{}", wrong.join("\n\n"));
    summary
}

/// Whether an outcome is right. Returns how many attempts ended by themselves and were lost with their agents.
fn judge(detail: &JobDetail, kind: Kind, record: &Record, struck: bool) -> Result<usize, String> {
    let finished = detail.events.iter().filter(|stored| stored.event.event.kind() == "finished").count();
    if finished != 1 {
        return Err(format!("it finished {finished} times"));
    }
    if record.twice {
        return Err("it ran twice at once".to_owned());
    }
    if record.starts.iter().collect::<BTreeSet<_>>().len() != record.starts.len() {
        return Err("an attempt ran twice".to_owned());
    }
    let lost = |number: u32| {
        detail.attempts.iter().any(|attempt| attempt.attempt.number == number && attempt.verdict == Some(Verdict::ServerLost))
    };
    let (given_up, ends): (Vec<(u32, i32)>, Vec<_>) = record.ends.iter().copied().partition(|(attempt, _)| lost(*attempt));
    let code = if kind == Kind::Fails { CODE } else { 0 };
    let final_attempt = detail.attempts.iter().map(|attempt| attempt.attempt.number).max().unwrap_or(0);
    let is_right = match detail.outcome() {
        Some(Outcome::Succeeded) => code == 0 && ends == [(final_attempt, 0)],
        Some(Outcome::Failed { code: failed }) => *failed == code && ends == [(final_attempt, code)],
        Some(Outcome::SupervisorLost) => struck && ends.is_empty(),
        _ => false,
    };
    if is_right { Ok(given_up.len()) } else { Err("its record says otherwise".to_owned()) }
}
