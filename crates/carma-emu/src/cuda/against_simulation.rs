//! The same jobs here and in the simulator end at the same time, having drawn the same energy and shown the same counters.

use std::process::{Child, Command, Stdio};

use bytemuck::Zeroable;
use carma_core::{Preset, Seconds, Settings};
use carma_sim::{
    Catalogue, Draw, Estimator, GpuType, InterferenceModel, Knowledge, Physics, Run, Sharing, Simulation, Trace, TraceJob, Workload,
};

use super::program::{Rank, context};
use crate::profile::Profile;
use crate::state::{ContextKind, ContextRecord, GpuRecord, Place, SharedState, State, started};

/// A job in its phases, in a process that only has to exist.
struct Job<'a> {
    workload: &'a Workload,
    draw: Draw,
    training: f64,
    process: Child,
    phase: Phase,
    /// When the phase ends; for training that depends on the others.
    until: f64,
}

#[derive(Clone, Copy, PartialEq)]
enum Phase {
    StartingUp,
    Loading,
    Training,
    WindingDown,
    Over,
}

impl Job<'_> {
    /// Time of its next action.
    fn due(&self, state: &State<'_>, now: f64) -> f64 {
        match self.phase {
            Phase::Training => {
                let context = state.contexts().iter().find(|context| context.pid == self.process.id()).unwrap();
                now + (self.training - context.work) / context.speed
            }
            Phase::Over => f64::INFINITY,
            _ => self.until,
        }
    }

    fn enter(&mut self, state: &mut State<'_>, now: f64, kind: ContextKind) {
        let pid = self.process.id();
        let mut run = |busy| state.contexts_mut().iter_mut().filter(|context| context.pid == pid).for_each(|context| context.busy = busy);
        (self.phase, self.until) = match self.phase {
            Phase::StartingUp => {
                let rank = Rank { profile: &self.workload.ranks[0], workload: Some(self.workload) };
                let context = context(state, Place::gpu(0), &rank, (0, None), pid).unwrap();
                state.attach(ContextRecord { kind: kind as u32, ..context }, started(pid).unwrap()).unwrap();
                (Phase::Loading, now + self.draw.loading)
            }
            Phase::Loading => {
                run(1);
                (Phase::Training, f64::NAN)
            }
            Phase::Training => {
                run(0);
                (Phase::WindingDown, now + self.draw.winding_down)
            }
            Phase::WindingDown | Phase::Over => {
                state.detach(|context| context.pid == pid);
                (Phase::Over, now)
            }
        };
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

const SEED: u64 = 7;

fn simulated(catalogue: &Catalogue, jobs: &[(&str, u64)], sharing: Sharing, limit: Option<f64>) -> Run {
    let model = InterferenceModel { pair_deviation: 0.0, ..InterferenceModel::shipped() };
    let job = |(name, second): &(&str, u64)| TraceJob {
        name: format!("{name} at {second}"),
        submitted: Seconds::from_secs(*second),
        gpus: 1,
        workload: catalogue.find(name),
        duration: Some(Seconds::from_secs(1500)),
        owner: None,
    };
    let trace = Trace { jobs: jobs.iter().map(job).collect(), ..Trace::default() };
    let mut settings = Settings { preset: Some(Preset::Aegis), policy: Some("or-rr".to_owned()), ..Settings::default() };
    settings.screen.get_or_insert_default().enabled = Some(false);
    settings.power.get_or_insert_default().cap = limit;
    let (servers, knowledge) = ("1xA100-40GB".parse().unwrap(), Knowledge { memory: Estimator::Oracle, ..Knowledge::default() });
    let simulation = Simulation::new((catalogue, &model), &trace, &servers, &settings, &knowledge);
    Simulation { sharing, seed: SEED, ..simulation }.run().unwrap()
}

/// When each job ends, and the energy, SMACT and DRAMA times seconds of the GPU up to the last end.
fn emulated(catalogue: &Catalogue, jobs: &[(&str, u64)], run: &Run, as_kind: ContextKind, limit: Option<f64>) -> (Vec<f64>, [f64; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let kind = GpuType::find("A100-40GB").unwrap();
    let power_limit = (limit.unwrap_or(kind.limit_watts) * 1000.0) as u32;
    let gpu = GpuRecord { profile: Profile::place(kind) as u32, power_limit, ..GpuRecord::zeroed() };
    let machine = SharedState::create(&folder.path().join("state"), &[gpu], 1.0).unwrap();
    let begin = |(place, (name, _)): (usize, &(&str, u64))| {
        let launched = run.jobs[place].attempts[0].launched.get();
        let (draw, training) = Draw::new(&Physics::default(), SEED, place, 1).for_job(1500.0);
        let process = Command::new("sleep").arg("1000").stdin(Stdio::null()).spawn().unwrap();
        let workload = catalogue.get(catalogue.find(name).unwrap());
        Job { workload, draw, training, process, phase: Phase::StartingUp, until: launched + draw.start_up }
    };
    let mut jobs: Vec<Job<'_>> = jobs.iter().enumerate().map(begin).collect();
    let run_all = |state: &mut State<'_>| {
        let (zero, before) = (state.header.now, state.gpus[0].engine);
        let mut now = 0.0;
        while let Some((due, job)) =
            jobs.iter_mut().map(|job| (job.due(state, now), job)).filter(|(due, _)| due.is_finite()).min_by(|a, b| a.0.total_cmp(&b.0))
        {
            now = due;
            state.catch_up(state.header.born + zero + now);
            job.enter(state, now, as_kind);
            state.settle();
        }
        let gained = |index: usize| state.gpus[0].engine.level_seconds[index] - before.level_seconds[index];
        [state.gpus[0].engine.joules - before.joules, gained(0), gained(2)]
    };
    let totals = machine.with(run_all).unwrap();
    (jobs.iter().map(|job| job.until).collect(), totals)
}

#[test]
fn jobs_take_as_long_and_draw_as_much_as_in_the_simulator() {
    let catalogue = Catalogue::shipped();
    let two = [("resnet50_imagenet_bs64", 0), ("bert_base_wiki_bs32", 10)];
    let three = [two[0], two[1], ("unet_voc", 200)];
    for (jobs, sharing, kind, limit) in [
        (&two[..1], Sharing::Streams, ContextKind::Compute, None),
        (&two, Sharing::Streams, ContextKind::Compute, None),
        (&three, Sharing::Streams, ContextKind::Compute, None),
        (&three, Sharing::Mps, ContextKind::MpsClient, None),
        (&two[..1], Sharing::Streams, ContextKind::Compute, Some(150.0)),
        (&three, Sharing::Streams, ContextKind::Compute, Some(200.0)),
    ] {
        let run = simulated(&catalogue, jobs, sharing, limit);
        let ends: Vec<f64> = run.jobs.iter().map(|job| job.ended.unwrap().get()).collect();
        let totals = run.gpus[0].totals;
        let (emulated_ends, emulated_totals) = emulated(&catalogue, jobs, &run, kind, limit);
        for (simulated, emulated) in
            ends.iter().zip(&emulated_ends).chain([totals.joules, totals.smact, totals.drama].iter().zip(&emulated_totals))
        {
            // The simulator counts whole milliseconds.
            assert!(
                (emulated / simulated - 1.0).abs() < 1e-4,
                "{jobs:?} {sharing:?} {limit:?}: {ends:?} {totals:?} but {emulated_ends:?} {emulated_totals:?}"
            );
        }
    }
}
