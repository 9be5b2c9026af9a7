//! From recorded jobs to jobs that can be simulated: which ones, how long each takes alone, and the scheduler's knowledge of it.

use std::collections::HashMap;

use anyhow::{Result, ensure};
use carma_core::{
    ArrayMember, Dependency, GroupId, JobId, JobSpec, MemoryEstimate, MemoryNeed, Metric, Outcome, PerRank, Seconds, Time, UserId, Verdict,
};
use carma_manager::api::{AttemptDetail, JobDetail};
use carma_manager::store::UnixMillis;
use carma_sim::{Catalogue, InterferenceModel, JobRecord, Knowledge, Physics, RankProfile, Trace, TraceJob, Workload};

use super::alone::{Sharing, SoloRun, Stay};
use super::defaults::Defaults;
use super::machine::Machine;
use crate::replay::record;
use carma_format::count;

/// Jobs that can be simulated, with their measurements, in order of submission.
#[derive(Debug)]
pub(super) struct Replayed {
    pub(super) trace: Trace,
    pub(super) catalogue: Catalogue,
    pub(super) knowledge: Knowledge,
    pub(super) measured: Vec<JobRecord>,
    /// From the first submission to the last end.
    pub(super) span: (UnixMillis, UnixMillis),
    /// Jobs that are left out, and assumptions about the others.
    pub(super) notes: Vec<String>,
}

/// Why a job is not replayed.
const NO_GPU: &str = "requested no GPU";
const NEVER_RAN: &str = "never ran";
const UNFINISHED: &str = "not finished yet";
const OUT_OF_MEMORY: &str = Outcome::OutOfMemory.kind();

impl Replayed {
    /// Replays jobs in order of submission, at this time.
    pub(super) fn of(jobs: &[&JobDetail], machine: &Machine, model: &InterferenceModel, now: UnixMillis) -> Result<Self> {
        let (replayed, mut notes) = choose(jobs);
        ensure!(!replayed.is_empty(), "{}", nothing(&notes));
        let defaults = Defaults::new();
        let mut stays = Vec::new();
        let mut places: HashMap<(JobId, u32), usize> = HashMap::new();
        // All jobs that ran beside them count, replayed or not.
        for job in jobs {
            for attempt in &job.attempts {
                places.insert((job.id, attempt.attempt.number), stays.len());
                stays.push(defaults.stay(job, attempt, machine, now));
            }
        }
        let physics = Physics::default();
        let sharing = Sharing { model, physics: &physics, mode: machine.sharing.mode(), gpus: machine.gpus() };
        let alone = sharing.without_interference(&stays);
        let (first, mut last) = (replayed[0].submitted, UnixMillis::default());
        let mut trace = Trace::default();
        let mut workloads = Vec::new();
        for job in &replayed {
            let work: Vec<usize> = work(job).filter_map(|attempt| places.get(&(job.id, attempt.attempt.number)).copied()).collect();
            workloads.push(workload(job, &work, (&stays, &alone), machine));
            last = last.max(job.ended.unwrap_or_default());
            let submitted = Seconds::new((job.submitted.0 - first.0) as f64 / 1000.0)?;
            let owner = Some(job.owner.name.clone());
            trace.jobs.push(TraceJob { name: job.id.to_string(), submitted, gpus: gpus(job), workload: None, duration: None, owner });
        }
        let catalogue = Catalogue::measured_by("this server", workloads)?;
        let mut knowledge = Knowledge::default();
        let ids: HashMap<JobId, JobId> = (1..).map(JobId).zip(&replayed).map(|(here, job)| (job.id, here)).collect();
        for (((id, _), traced), job) in catalogue.iter().zip(&mut trace.jobs).zip(&replayed) {
            traced.workload = Some(id);
            knowledge.requests.insert(id, request(job, &ids, first));
        }
        let assumed = replayed.iter().filter(|job| work(job).any(|attempt| attempt.utilisation[Metric::Smact].is_none())).count();
        if assumed > 0 {
            notes.push(format!(
                "{} have no measured counters: the estimate is used, or else the mean of known workloads.",
                count(assumed, "job")
            ));
        }
        let measured = replayed.iter().map(|job| record(job)).collect();
        Ok(Self { trace, catalogue, knowledge, measured, span: (first, last), notes })
    }
}

impl Replayed {
    /// What the scheduler knew of each job.
    pub(super) fn requests(&self) -> impl Iterator<Item = &JobSpec> {
        self.knowledge.requests.values()
    }
}

fn nothing(notes: &[String]) -> String {
    let why = if notes.is_empty() { "no job was submitted in this period".to_owned() } else { notes.join("; ") };
    format!("there is nothing to replay: {why}")
}

/// The jobs that can be replayed, and the number of others.
fn choose<'a>(jobs: &[&'a JobDetail]) -> (Vec<&'a JobDetail>, Vec<String>) {
    let obstacle = |job: &JobDetail| match () {
        () if job.request.resources.gpus == 0 => Some(NO_GPU),
        () if job.ended.is_none() => Some(UNFINISHED),
        () if work(job).next().is_some() => None,
        () if job.attempts.iter().any(|attempt| attempt.verdict == Some(Verdict::OutOfMemory)) => Some(OUT_OF_MEMORY),
        () => Some(NEVER_RAN),
    };
    let replayed = jobs.iter().copied().filter(|job| obstacle(job).is_none()).collect();
    let left_out = |why: &str| {
        let many = jobs.iter().filter(|job| obstacle(job) == Some(why)).count();
        (many > 0).then(|| format!("{} left out: {why}", count(many, "job")))
    };
    (replayed, [NO_GPU, NEVER_RAN, UNFINISHED, OUT_OF_MEMORY].into_iter().filter_map(left_out).collect())
}

/// The attempts that did a job's work. Running out of memory is not work; a job without checkpoints did it in its last attempt; one that
/// failed by itself, or was cancelled, did its work until then.
fn work(job: &JobDetail) -> impl Iterator<Item = &AttemptDetail> {
    let ran = |attempt: &&AttemptDetail| {
        let lost = matches!(attempt.verdict, Some(Verdict::OutOfMemory | Verdict::CouldNotStart { .. }));
        !lost && attempt.ended.is_some() && !attempt.placement.devices.is_empty()
    };
    let attempts = if job.request.may_checkpoint { usize::MAX } else { 1 };
    job.attempts.iter().rev().filter(ran).take(attempts)
}

fn gpus(job: &JobDetail) -> u32 {
    job.request.resources.gpus
}

/// A job as its own workload, as it would be alone on the simulator's reference GPU.
fn workload(job: &JobDetail, work: &[usize], (stays, alone): (&[Stay], &[SoloRun]), machine: &Machine) -> Workload {
    let mut seconds = 0.0;
    let mut ranks: Vec<RankProfile> = Vec::new();
    for place in work {
        let SoloRun { seconds: took, training, ranks: here } = &alone[*place];
        let there = stays[*place].ranks.iter().zip(here).map(|((gpu, _), rank)| machine.kind(*gpu).unstretch(rank));
        let (times, profiles): (Vec<f64>, Vec<RankProfile>) = there.unzip();
        let slowest = times.into_iter().fold(f64::MIN_POSITIVE, f64::max);
        seconds += took - training + training / slowest;
        // The latest attempt comes first.
        if ranks.is_empty() {
            ranks = profiles;
        }
    }
    Workload {
        name: job.id.to_string(),
        model: String::new(),
        dataset: String::new(),
        batch: None,
        epochs: None,
        family: String::new(),
        seconds: Seconds::new(seconds).unwrap_or_default().max(Seconds::TICK),
        ranks,
        aliases: Vec::new(),
        source: String::new(),
        note: None,
    }
}

/// The job's request in the core, without those parts that the simulator does not model: holds, the host, and ways of sharing.
fn request(job: &JobDetail, ids: &HashMap<JobId, JobId>, first: UnixMillis) -> JobSpec {
    let (request, estimate) = (&job.request, &job.estimate);
    let after = |after: &carma_manager::request::After| {
        let job = ids.get(&JobId(after.job.parse().ok()?))?;
        Some(Dependency { job: *job, condition: after.condition })
    };
    let begin = request.schedule.begin.map(|second| Seconds::from_secs(second.saturating_sub(first.0 / 1000)));
    let expected = estimate.expected.map(|expected| MemoryEstimate { expected, upper: estimate.upper.unwrap_or(expected).max(expected) });
    JobSpec {
        user: UserId(job.owner.uid),
        group: GroupId(job.owner.gid),
        gpus: gpus(job),
        memory: MemoryNeed { known: estimate.declared.map(PerRank::Same), estimated: expected.map(PerRank::Same) },
        utilisation: estimate.utilisation,
        expected_duration: estimate.duration,
        time_limit: request.resources.time_limit,
        priority: request.schedule.priority,
        dependencies: request.schedule.after.iter().filter_map(after).collect(),
        array: job.array.map(|place| ArrayMember { array: place.array, index: place.index, at_most: request.schedule.at_most }),
        begin: begin.map(|begin| Time::ZERO + begin),
        exclusive: request.resources.exclusive,
        may_checkpoint: request.may_checkpoint,
        retries: request.retries,
        ..JobSpec::new(job.id)
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{MiB, State};

    use super::super::machine::tests::gpu;
    use super::*;
    use crate::manager::sample;

    #[test]
    fn replayed_jobs_keep_their_run_time_and_others_are_counted() {
        // It ran out of memory, and then failed by itself.
        let failed = sample();
        let never = JobDetail { id: JobId(16), attempts: Vec::new(), ..sample() };
        let runs = JobDetail { id: JobId(17), ended: None, state: State::Queued { since: Time::ZERO }, ..sample() };
        let mut plain = JobDetail { id: JobId(18), ..sample() };
        plain.request.resources.gpus = 0;
        let mut burst = JobDetail { id: JobId(19), ..sample() };
        burst.attempts.pop();
        let jobs = [&burst, &plain, &runs, &never, &failed];
        let machine = Machine::of(&[gpu(3, "NVIDIA A100-SXM4-40GB")]).unwrap();
        let model = InterferenceModel::shipped();
        let replayed = Replayed::of(&jobs[3..], &machine, &model, UnixMillis(1_800_003_000_000)).unwrap();
        let [job] = replayed.trace.jobs.as_slice() else { panic!("{:?}", replayed.trace) };
        let workload = replayed.catalogue.get(job.workload.unwrap());
        assert!((workload.seconds.get() - 242.0).abs() < 0.01, "its last attempt, alone on its GPU: {workload:?}");
        assert_eq!(workload.ranks[0].peak, MiB(17_002));
        let request = &replayed.knowledge.requests[&job.workload.unwrap()];
        assert_eq!(request.memory.known, Some(PerRank::Same(MiB(20_480))));
        assert_eq!(replayed.notes, ["1 job left out: never ran"]);
        let Err(nothing) = Replayed::of(&jobs[..4], &machine, &model, UnixMillis(1_800_003_000_000)) else { panic!() };
        insta::assert_snapshot!(nothing, @"there is nothing to replay: 1 job left out: requested no GPU; 1 job left out: never ran; 1 job left out: not finished yet; 1 job left out: out of memory");
    }
}
