//! A job for tests.

use std::collections::BTreeMap;

use carma_core::{
    ArrayId, AttemptId, Condition, DeviceId, Granted, JobId, Limits, Metric, MiB, Outcome, Placement, Priority, Seconds, ServerId, State,
    Time, Utilisation, Verdict,
};
use carma_manager::api::{ArrayPlace, AttemptDetail, Ending, EstimateDetail, JobDetail, JobPrediction, MemoryPart};
use carma_manager::attempt::Exit;
use carma_manager::event::JobEvent;
use carma_manager::judge::Blame;
use carma_manager::request::{After, ArrayElement, JobCommand, JobRequest, Owner, Resources};
use carma_manager::store::{Joules, NewEvent, Phase, StoredEvent, UnixMillis};

fn part((name, memory): (&str, u64)) -> MemoryPart {
    MemoryPart { name: name.to_owned(), memory: MiB(memory) }
}

fn attempt(number: u32, verdict: Verdict, reason: &str) -> AttemptDetail {
    let device = DeviceId::gpu(ServerId(0), 3);
    let launched = UnixMillis(1_800_000_000_000 + u64::from(number) * 1_000_000);
    AttemptDetail {
        attempt: AttemptId { job: JobId(15), number },
        placement: Placement { server: ServerId(0), devices: vec![Granted { device, reserved: MiB(18_432), limits: Limits::Streams }] },
        launched,
        ended: Some(UnixMillis(launched.0 + 242_000)),
        ending: Some(Ending::from(&verdict)),
        verdict: Some(verdict),
        reason: Some(reason.to_owned()),
        blame: Some(Blame::Job),
        exit: Some(Exit::Code(1)),
        peaks: vec![MiB(17_000 + u64::from(number))],
        utilisation: Utilisation::of([(Metric::Smact, 0.63)]),
        energy: Some(Joules(43_210.0)),
    }
}

/// A job of an array that ran out of memory, and then failed.
pub(crate) fn sample() -> JobDetail {
    let command = JobCommand::Program(["python", "train.py", "--name", "a\x1b[2Jb"].map(str::to_owned).to_vec());
    let mut request = JobRequest { name: Some("resnet".to_owned()), ..JobRequest::new(command, "/home/ada/project") };
    request.resources =
        Resources { memory: Some(MiB(20_480)), cpus: Some(4), time_limit: Some(Seconds::from_secs(5400)), ..Resources::default() };
    request.schedule.priority = Priority(-5);
    request.schedule.after = vec![After { job: "9".to_owned(), condition: Condition::Any }];
    request.array = Some(ArrayElement { index: 3, array: None, parameters: BTreeMap::from([("lr".to_owned(), "0.1".to_owned())]) });
    let submitted = UnixMillis(1_800_000_000_000);
    let event = |sequence, after: u64, kind: &str, body| {
        let at = UnixMillis(submitted.0 + after);
        StoredEvent::new(sequence, NewEvent { at, job: Some(JobId(15)), array: None, event: JobEvent::read(kind, body) })
    };
    JobDetail {
        id: JobId(15),
        owner: Owner { uid: 1000, gid: 1000, name: "ada".to_owned() },
        request,
        state: State::Done { at: Time::ZERO, outcome: Outcome::Failed { code: 1 } },
        phase: Phase::Done,
        outcome: Some("failed with exit code 1".to_owned()),
        ending: Some(Ending::from(&Outcome::Failed { code: 1 })),
        held_by: None,
        cancelled: None,
        submitted,
        ended: Some(UnixMillis(submitted.0 + 2_242_000)),
        estimate: EstimateDetail {
            declared: Some(MiB(20_480)),
            expected: Some(MiB(15_000)),
            upper: Some(MiB(16_384)),
            duration: Some(Seconds::from_secs(300)),
            source: Some("history".to_owned()),
            notes: vec!["three runs alike".to_owned()],
            parts: [("weights", 2_100), ("optimizer", 4_200), ("activations", 8_200), ("context", 500)].map(part).into(),
            ..EstimateDetail::default()
        },
        array: Some(ArrayPlace { array: ArrayId(12), index: 3 }),
        attempts: vec![
            attempt(1, Verdict::OutOfMemory, "its log says: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB"),
            attempt(2, Verdict::Failed { code: 1 }, "it exited with 1"),
        ],
        events: vec![
            event(1, 0, "submitted", serde_json::json!({"user": "ada"})),
            event(
                2,
                1_000_000,
                "launched",
                serde_json::json!({"attempt": 1, "placement": {"server": 0, "devices": [{"device": "s0/gpu3", "reserved": 1, "limits": "streams"}]}, "reason": {}}),
            ),
        ],
        energy: Some(Joules(86_420.0)),
        prediction: JobPrediction::default(),
        declaration: Some("declared 20.0 GiB, used 7.1 GiB: with less, it may start sooner and share a GPU".to_owned()),
        last_output: None,
    }
}
