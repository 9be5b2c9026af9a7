//! Made-up managers for tests: GPUs, jobs and events.

use std::time::Duration;

use carma_core::{AttemptId, CollocationMode, DeviceId, Fraction, JobId, Metric, MiB, Priority, Seconds, ServerId, Utilisation, Watts};
use carma_manager::api::{Counts, GpuDetail, GpuTenant, Me, Queue, QueueRow, RecentSamples, Status};
use carma_manager::event::JobEvent;
use carma_manager::store::{NewEvent, Phase, StoredEvent, UnixMillis};
use ratatui::crossterm::event::{KeyCode, KeyEvent};
use serde_json::json;

use super::model::{Answers, Message, Model, Request, Size};

/// The current user, unless a test sets another.
pub(super) const ADA: u32 = 1000;

pub(super) fn waiting(id: u64, name: &str, user: &str, gibibytes: u64) -> QueueRow {
    QueueRow {
        id: JobId(id),
        name: Some(name.to_owned()),
        user: user.to_owned(),
        uid: if user == "ada" { ADA } else { ADA + 1 },
        state: Phase::Queued,
        for_seconds: Seconds::from_secs(75),
        submitted: UnixMillis(1_800_000_000_000),
        priority: Priority(0),
        gpus: 1,
        attempts: 0,
        array: None,
        devices: Vec::new(),
        memory: Some(MiB(gibibytes * 1024)),
        used: None,
        progress: None,
        starts: None,
        ends: None,
        total_seconds: Seconds::ZERO,
        reason: Some("is number 3 in the queue; job 5 is next".to_owned()),
    }
}

pub(super) fn running(id: u64, name: &str, user: &str, gpus: &[u16], gibibytes: u64) -> QueueRow {
    let devices: Vec<DeviceId> = gpus.iter().map(|ordinal| DeviceId::gpu(ServerId(0), *ordinal)).collect();
    let state = Phase::Running;
    QueueRow { state, devices, attempts: 1, progress: Some(0.433), reason: None, ..waiting(id, name, user, gibibytes) }
}

pub(super) fn tenant(job: u64, name: &str, reserved: u64, used: Option<u64>) -> GpuTenant {
    GpuTenant {
        attempt: AttemptId { job: JobId(job), number: 1 },
        name: Some(name.to_owned()),
        array: None,
        user: "ada".to_owned(),
        reserved: MiB(reserved * 1024),
        memory: used.map(|used| MiB(used * 1024)),
        limit: None,
        borrowed: None,
        smact: Some(0.25),
        energy: None,
        launched: UnixMillis(1_800_000_000_000),
    }
}

/// A GPU of 40 GiB.
pub(super) fn gpu(ordinal: u16, tenants: Vec<GpuTenant>, used: u64) -> GpuDetail {
    let busy = if tenants.is_empty() { 0.0 } else { 0.6 + f64::from(ordinal % 4) / 10.0 };
    GpuDetail {
        device: DeviceId::gpu(ServerId(0), ordinal),
        node: None,
        uuid: format!("GPU-14f4143c-c002-8ef1-b65e-3de1a365{ordinal:04}").parse().unwrap(),
        name: "NVIDIA A100-SXM4-40GB".to_owned(),
        mode: CollocationMode::Streams,
        lost: false,
        drained: false,
        drained_for: None,
        drained_by: None,
        drained_since: None,
        silent_for: None,
        memory: MiB(40 * 1024),
        memory_used: Some(MiB(used * 1024)),
        reserved: MiB(tenants.iter().map(|tenant| tenant.reserved.0).sum()),
        available: MiB(0),
        utilisation: Utilisation::of([
            (Metric::Smact, busy),
            (Metric::Smocc, busy / 2.0),
            (Metric::Drama, busy / 3.0),
            (Metric::Utilisation, busy),
        ]),
        power: Some(Watts(60.0 + busy * 250.0)),
        energy: None,
        throttling: std::collections::BTreeSet::new(),
        temperature: Some(41),
        tenants,
        foreign: 0,
        obstacles: Vec::new(),
        closed: Vec::new(),
        counters: "dcgmi".to_owned(),
    }
}

pub(super) fn event(sequence: u64, kind: &str, body: serde_json::Value) -> StoredEvent {
    let at = UnixMillis(1_800_000_000_000 + sequence * 1000);
    StoredEvent::new(sequence, NewEvent { at, job: Some(JobId(sequence)), array: None, event: JobEvent::read(kind, body) })
}

fn status(gpus: &[GpuDetail]) -> Status {
    Status {
        version: "0.1.0".to_owned(),
        pid: 1,
        now: UnixMillis(1_800_000_100_000),
        started: UnixMillis(1_800_000_000_000),
        up: Seconds::from_secs(100),
        observes: false,
        draining: false,
        gpu_source: "4 GPUs".to_owned(),
        emulated: false,
        speed: 1.0,
        gpus: gpus.len() as u32,
        servers: 0,
        pools: 0,
        left_out: Vec::new(),
        metrics: Vec::new(),
        policy: "magm".to_owned(),
        jobs: Counts::default(),
        not_enforced: Vec::new(),
        errors: Vec::new(),
        problems: Vec::new(),
    }
}

/// One sample of each GPU.
fn samples_of(gpus: &[GpuDetail], now: UnixMillis) -> Vec<RecentSamples> {
    let look = |gpu: &GpuDetail| RecentSamples {
        device: gpu.device,
        at: vec![now],
        memory: vec![gpu.memory_used.unwrap_or_default()],
        utilisation: gpu.utilisation.map(|share| vec![share.map(Fraction::get)]),
        power: vec![gpu.power],
        tenants: Vec::new(),
    };
    gpus.iter().map(look).collect()
}

/// The answers of a manager with these GPUs and jobs to ada, who is no operator.
pub(super) fn answers(gpus: Vec<GpuDetail>, jobs: Vec<QueueRow>) -> Answers {
    let count = |fits: fn(&QueueRow) -> bool| jobs.iter().filter(|job| fits(job)).count() as u64;
    let held = count(|job| job.state == Phase::Held);
    let running = count(|job| !job.devices.is_empty());
    let counts = Counts { running, held, waiting: jobs.len() as u64 - running - held };
    let status = status(&gpus);
    Answers {
        me: Me { uid: ADA, name: "ada".to_owned(), operator: false },
        samples: samples_of(&gpus, status.now),
        status,
        gpus,
        queue: Queue { counts, jobs, ..Queue::default() },
        pools: Vec::new(),
    }
}

/// Four GPUs at work, and a queue.
pub(super) fn busy() -> Answers {
    let first = vec![tenant(1, "resnet50", 14, Some(12))];
    let second = vec![tenant(2, "inception", 19, Some(17)), tenant(12, "sweep", 5, Some(5)), tenant(13, "sweep", 5, None)];
    let gpus = vec![gpu(0, first, 15), gpu(1, second, 22), gpu(2, vec![tenant(3, "bert", 36, Some(33))], 33), gpu(3, Vec::new(), 0)];
    let held = QueueRow { state: Phase::Held, reason: Some("is held until it is released".to_owned()), ..waiting(9, "later", "ada", 2) };
    let next = QueueRow {
        state: Phase::Recovering,
        attempts: 1,
        reason: Some("is next in the queue: no GPU has room".to_owned()),
        ..waiting(5, "gpt2-xl", "ada", 34)
    };
    let jobs = vec![
        running(1, "resnet50", "ada", &[0], 14),
        running(2, "inception", "bob", &[1], 19),
        running(12, "sweep", "ada", &[1], 5),
        running(13, "sweep", "ada", &[1], 5),
        QueueRow { attempts: 2, ..running(3, "bert", "bob", &[2], 36) },
        next,
        waiting(6, "maskrcnn", "bob", 31),
        held,
    ];
    answers(gpus, jobs)
}

/// A model with these answers and some events.
pub(super) fn model_of(answers: Answers) -> Model {
    let mut model = Model::new("/run/carma/carma.sock".to_owned(), Size { columns: 80, rows: 24 });
    let mut send = |message| assert_eq!(model.update(message, Duration::from_secs(1)), []);
    for (sequence, kind, body) in [
        (1, "launched", json!({"attempt": 1, "placement": {"devices": [{"device": "s0/gpu0"}]}})),
        (2, "finished", json!({"outcome": carma_core::Outcome::Failed { code: 1 }, "text": "failed with exit code 1"})),
        (4, "ended", json!({"attempt": 1, "verdict": "out_of_memory", "reason": "GPU memory ran out: it requested 3.3 GiB more"})),
        (5, "requeued", json!({"floor": 29_011, "reason": {"after": "out_of_memory"}})),
    ] {
        send(Message::Event(event(sequence, kind, body)));
    }
    // A few samples for the chart.
    for share in [0.1, 0.4, 0.8] {
        let mut earlier = answers.clone();
        for samples in &mut earlier.samples {
            samples.utilisation[Metric::Smact] = vec![Some(share)];
        }
        send(Message::Answers(Box::new(earlier)));
    }
    send(Message::Answers(Box::new(answers)));
    model
}

/// Types these keys, a letter each; `\n` is Enter, `\t` Tab, `\x1b` Esc.
pub(super) fn press(model: &mut Model, keys: &str) -> Vec<Request> {
    let code = |letter| match letter {
        '\n' => KeyCode::Enter,
        '\t' => KeyCode::Tab,
        '\x1b' => KeyCode::Esc,
        letter => KeyCode::Char(letter),
    };
    keys.chars().flat_map(|letter| model.update(Message::Key(KeyEvent::from(code(letter))), Duration::from_secs(2))).collect()
}
