//! A synthetic job as changes of a store, in the order in which a manager writes them.

use carma_core::{
    AttemptId, DeviceId, Granted, Job, JobId, JobSpec, LadderPosition, Limits, MemoryEstimate, MemoryNeed, Metric, MiB, PerRank, Placement,
    ServerId, State, Time, UserId, Utilisation, Verdict,
};
use carma_manager::attempt::Exit;
use carma_manager::event::JobEvent;
use carma_manager::request::{JobCommand, JobRequest};
use carma_manager::store::{AttemptEnd, Change, Joules, Measured, MemoryStep, NewEvent, StoredJob, UnixMillis};
use serde_json::{Value, json};

use crate::schedule::{SeededAttempt, SeededJob};
use crate::workload::IDLE_WATTS;

/// Memory of a process with an empty CUDA context, in MiB.
const CONTEXT: u64 = 420;

/// All changes of a job. The manager's clock starts with this history.
pub(crate) fn changes(id: JobId, ran: &SeededJob, begin: UnixMillis) -> serde_json::Result<Vec<Change>> {
    let time = |at: UnixMillis| Time::from_secs((at.0 - begin.0) / 1000);
    let spec = JobSpec {
        user: UserId(ran.owner.uid),
        gpus: ran.gpus,
        memory: MemoryNeed { estimated: Some(PerRank::Same(expected(ran))), ..MemoryNeed::default() },
        ..JobSpec::new(id)
    };
    let job: Job = serde_json::from_value(json!({
        "spec": spec, "state": State::Queued { since: time(ran.submitted) }, "submitted_at": time(ran.submitted), "sequence": id.0, "attempts": 0,
        "climb": LadderPosition::default(), "failures": 0, "displacements": 0, "progress": null, "checkpointed_at": null,
    }))?;
    let event = |at: UnixMillis, kind: &str, body: Value| {
        Change::EventLogged(NewEvent { at, job: Some(id), array: None, event: JobEvent::read(kind, body) })
    };
    let estimate = json!({ "source": "static", "notes": [], "parts": parts(ran) });
    let accepted = StoredJob { request: request(ran), owner: ran.owner.clone(), job: job.clone(), submitted: ran.submitted, ended: None };
    let mut changes = vec![
        Change::JobAccepted(Box::new(accepted)),
        event(ran.submitted, "submitted", json!({ "user": ran.owner.name })),
        event(ran.submitted, "seeded", json!({ "text": "made up by seed-history: it never ran" })),
        event(ran.submitted, "estimated", estimate),
    ];
    for (number, tried) in (1..).zip(&ran.attempts) {
        let attempt = AttemptId { job: id, number };
        let placement = placement(tried);
        let reason = "it has the most room";
        changes.push(Change::AttemptStarted { attempt, placement: placement.clone(), at: tried.launched });
        changes.push(event(tried.launched, "launched", json!({ "attempt": number, "placement": placement, "reason": reason })));
        for granted in &placement.devices {
            changes.extend(steps(tried).map(|step| Change::MemoryChanged { attempt, device: granted.device, step }));
        }
        let end = end(ran, tried);
        let ended = json!({ "attempt": number, "verdict": end.verdict, "reason": end.reason, "blame": end.blame });
        changes.push(Change::AttemptEnded { attempt, end: Box::new(end) });
        changes.push(event(tried.ended, "ended", ended));
    }
    let state = State::Done { at: time(ran.ended), outcome: ran.outcome.clone() };
    let (mut done, attempts) = (job, ran.attempts.len() as u32);
    (done.state, done.attempts) = (state, attempts);
    changes.push(Change::JobChanged { job: Box::new(done), at: ran.ended });
    changes.push(event(ran.ended, "finished", json!({ "outcome": ran.outcome, "text": ran.outcome.to_string() })));
    Ok(changes)
}

fn request(ran: &SeededJob) -> JobRequest {
    let words = ["python", "train.py", "--model", ran.workload.name, "--run", &ran.run.to_string()];
    let mut request = JobRequest::new(JobCommand::Program(words.map(str::to_owned).to_vec()), format!("/seeded/{}", ran.owner.name));
    request.name = Some(format!("{}-{}", ran.workload.name, ran.run));
    request.resources.gpus = ran.gpus;
    request.environment = (0..40).map(|number| (format!("SEEDED_{number}"), "a value of ordinary length".to_owned())).collect();
    request
}

fn expected(ran: &SeededJob) -> MemoryEstimate {
    MemoryEstimate { expected: MiB(ran.workload.memory), upper: MiB(ran.workload.memory * 12 / 10) }
}

fn parts(ran: &SeededJob) -> Value {
    let parts = [("weights", 12), ("gradients", 12), ("optimizer", 24), ("activations", 44), ("workspace", 3), ("context", 5)];
    parts.iter().map(|(name, share)| json!({ "name": name, "memory": ran.workload.memory * share / 100 })).collect()
}

fn placement(tried: &SeededAttempt) -> Placement {
    let granted = |gpu: &u16| Granted { device: device(*gpu), reserved: MiB(tried.reserved), limits: Limits::Streams };
    Placement { server: ServerId(0), devices: tried.gpus.iter().map(granted).collect() }
}

pub(crate) fn device(gpu: u16) -> DeviceId {
    DeviceId::gpu(ServerId(0), gpu)
}

/// Memory while the job loads, warms up and trains.
fn steps(tried: &SeededAttempt) -> impl Iterator<Item = MemoryStep> {
    let (launched, length) = (tried.launched.0, tried.ended.0 - tried.launched.0);
    let step = move |after: u64, memory: u64| MemoryStep { at: UnixMillis(launched + after), memory: MiB(memory) };
    let rising = [step(2_000, CONTEXT), step(8_000, tried.memory * 6 / 10), step(20_000, tried.memory)];
    let evaluating = [step(length / 2, tried.memory * 7 / 10), step(length / 2 + 60_000, tried.memory)];
    rising.into_iter().chain(evaluating.into_iter().filter(move |_| length > 600_000))
}

fn end(ran: &SeededJob, tried: &SeededAttempt) -> AttemptEnd {
    let seconds = (tried.ended.0 - tried.launched.0) as f64 / 1000.0;
    let share = |part: f64| ran.workload.smact * part;
    let code = match tried.verdict {
        Verdict::Succeeded => 0,
        _ => 1,
    };
    let reason = if tried.verdict == Verdict::OutOfMemory { "its log says: CUDA out of memory" } else { "so it was drawn" };
    AttemptEnd {
        at: tried.ended,
        exit: Some(Exit::Code(code)),
        verdict: tried.verdict.clone(),
        reason: Some(reason.to_owned()),
        blame: None,
        measured: Measured {
            peaks: tried.gpus.iter().map(|_| MiB(tried.memory)).collect(),
            utilisation: Utilisation::of([
                (Metric::Smact, share(1.0)),
                (Metric::Smocc, share(0.45)),
                (Metric::Drama, share(0.35)),
                (Metric::Utilisation, share(1.2)),
            ]),
            energy: Some(Joules((ran.workload.watts + IDLE_WATTS / 2.0) * seconds * f64::from(ran.gpus))),
        },
        log_bytes: 0,
    }
}
