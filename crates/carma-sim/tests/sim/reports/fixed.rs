//! A small comparison made by hand, so that expected files do not change with the simulator's constants.

use carma_core::{MiB, Outcome, Time, Verdict};
use carma_sim::{
    AttemptRecord, Comparison, Contender, Curve, CurvePoint, GpuRecord, GpuTotals, GpuType, Input, JobRecord, LowerBounds, Moment, Origin,
    PolicyOrigin, Run,
};

pub(super) fn at(seconds: u64) -> Time {
    Time::from_secs(seconds)
}

pub(super) fn attempt(launched: u64, ended: u64, gpus: &[usize], verdict: Verdict) -> AttemptRecord {
    AttemptRecord { launched: at(launched), ended: Some(at(ended)), gpus: gpus.to_vec(), verdict: Some(verdict), victim: false }
}

pub(super) fn job(submitted: u64, alone: f64, attempts: Vec<AttemptRecord>) -> JobRecord {
    let ended = attempts.last().and_then(|attempt| attempt.ended);
    JobRecord { submitted: at(submitted), alone, attempts, ended, outcome: Some(Outcome::Succeeded), waits_for: None }
}

fn gpu(joules: f64, moments: &[(u64, f64, u64, f64)]) -> GpuRecord {
    let moment = |(since, smact, gibibytes, watts): &(u64, f64, u64, f64)| Moment {
        since: at(*since),
        smact: *smact,
        smocc: smact / 2.0,
        drama: smact / 4.0,
        memory: MiB(gibibytes * 1024),
        watts: *watts,
        processes: usize::from(*smact > 0.0),
    };
    let totals = GpuTotals { joules, active: 3600.0, smact: 1800.0, smocc: 900.0, drama: 400.0, memory: 3.0e7 };
    GpuRecord { kind: GpuType::reference(), memory: GpuType::reference().memory, totals, moments: moments.iter().map(moment).collect() }
}

fn exclusive() -> Run {
    let done = || Verdict::Succeeded;
    Run {
        jobs: vec![
            job(0, 3600.0, vec![attempt(0, 3600, &[0], done())]),
            job(300, 5000.0, vec![attempt(300, 5300, &[1], done())]),
            job(600, 1800.0, vec![attempt(3600, 5400, &[0], done())]),
            job(900, 1700.0, vec![attempt(5400, 7200, &[0, 1], done())]),
        ],
        gpus: vec![
            gpu(1.5e6, &[(0, 0.7, 12, 250.0), (3600, 0.3, 6, 140.0), (5400, 0.9, 30, 330.0), (7200, 0.0, 0, 52.0)]),
            gpu(1.1e6, &[(0, 0.0, 0, 52.0), (300, 0.4, 20, 180.0), (5300, 0.0, 0, 52.0), (5400, 0.9, 30, 330.0), (7200, 0.0, 0, 52.0)]),
        ],
        ended: at(7200),
        events: 20,
    }
}

fn shared() -> Run {
    let done = || Verdict::Succeeded;
    Run {
        jobs: vec![
            job(0, 3600.0, vec![attempt(0, 4000, &[0], done())]),
            job(300, 5000.0, vec![attempt(300, 5500, &[1], done())]),
            job(600, 1800.0, vec![attempt(600, 900, &[0], Verdict::OutOfMemory), attempt(1000, 3100, &[1], done())]),
            job(900, 1700.0, vec![attempt(4000, 6000, &[0, 1], done())]),
        ],
        gpus: vec![
            gpu(1.2e6, &[(0, 0.7, 12, 250.0), (600, 0.8, 39, 290.0), (900, 0.7, 12, 250.0), (4000, 0.9, 30, 330.0), (6000, 0.0, 0, 52.0)]),
            gpu(1.0e6, &[(0, 0.0, 0, 52.0), (300, 0.4, 20, 180.0), (1000, 0.6, 26, 230.0), (3100, 0.4, 20, 180.0), (6000, 0.0, 0, 52.0)]),
        ],
        ended: at(6000),
        events: 24,
    }
}

pub(super) fn contender(name: &str, example: Run) -> Contender {
    let summary = example.summary();
    let second = carma_sim::RunSummary { makespan: summary.makespan * 1.1, energy: summary.energy * 1.05, ..summary };
    Contender { name: name.to_owned(), summaries: vec![summary, second], example }
}

/// Two policies, one with a name that needs escaping, and a sweep of each.
pub(super) fn comparison() -> Comparison {
    let point = |value: f64, ratio: f64, oom_attempts: f64| CurvePoint {
        value,
        makespan_ratio: ratio,
        mean_jct_ratio: ratio * 0.9,
        energy_ratio: f64::midpoint(1.0, ratio),
        oom_attempts,
    };
    let curve = |policy: &str, points: Vec<CurvePoint>| Curve { policy: policy.to_owned(), setting: "smact".to_owned(), points };
    Comparison {
        trace: "four <jobs> & more".to_owned(),
        jobs: 4,
        servers: "2xA100-40GB".to_owned(),
        seeds: 2,
        contenders: vec![contender("exclusive", exclusive()), contender("or-magm <\"80 %\" & 'so'>", shared())],
        bounds: LowerBounds { critical_path: 5300.0, work_over_capacity: 5450.0 },
        curves: vec![
            curve("or-magm", vec![point(0.6, 0.95, 0.0), point(0.8, 0.85, 1.0), point(1.0, 0.8, 4.5)]),
            curve("magm", vec![point(0.6, 0.97, 0.0), point(0.8, 0.9, 2.0), point(1.0, 0.92, 9.0)]),
        ],
        caveats: vec!["Interference between jobs was measured on <one> GPU type & scaled.".to_owned()],
        origin: Origin {
            carma: "0.2.0".to_owned(),
            command: "carma compare 'four <jobs> & more' --policies or-magm".to_owned(),
            inputs: vec![Input { role: "trace".to_owned(), file: "four <jobs> & more".to_owned(), sha256: Some("0a1b".to_owned()) }],
            seeds: "0 to 1".to_owned(),
            policies: ["exclusive", "or-magm"]
                .map(|name| PolicyOrigin {
                    name: name.to_owned(),
                    estimator: "oracle".to_owned(),
                    settings: r#"{"preset":"carma"}"#.to_owned(),
                })
                .into(),
        },
    }
}

/// A run of many jobs on many GPUs, all at once and one after the other.
pub(super) fn crowded(jobs: u64, gpus: u64) -> Run {
    let mut ended = 0;
    let mut one = |place: u64| {
        let from = place / gpus * 40;
        let to = from + 30 + place * 7 % 90;
        ended = ended.max(to);
        let verdict = if place.is_multiple_of(3) { Verdict::OutOfMemory } else { Verdict::Succeeded };
        job(from / 2, 30.0, vec![attempt(from, to, &[(place % gpus) as usize], verdict)])
    };
    let jobs: Vec<JobRecord> = (0..jobs).map(&mut one).collect();
    let moments: Vec<(u64, f64, u64, f64)> =
        (0..20_000).map(|step| (step * ended / 20_000, 0.5, step % 40, 100.0 + (step % 300) as f64)).collect();
    Run { jobs, gpus: (0..gpus).map(|_| gpu(1.0e6, &moments)).collect(), ended: at(ended), events: 1 }
}
