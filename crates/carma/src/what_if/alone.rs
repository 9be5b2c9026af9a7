//! Attempts converted to their time alone: by the speed that the interference model predicts beside the jobs on the same GPUs.

use carma_core::{CollocationMode, Fraction};
use carma_sim::{InterferenceModel, Neighbours, Physics, RankInterference, RankProfile};

/// Slowed jobs have lower counters than alone, and the model predicts slowdown from counters: this many iterations.
const ROUNDS: usize = 4;

/// An attempt on its GPUs, in seconds.
#[derive(Debug, Clone)]
pub(super) struct Stay {
    pub(super) from: f64,
    pub(super) to: f64,
    /// GPU index and measurement of each rank.
    pub(super) ranks: Vec<(usize, RankProfile)>,
}

/// An attempt as it would have been alone on the same GPUs.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SoloRun {
    /// Its total duration alone, and the training part of it.
    pub(super) seconds: f64,
    pub(super) training: f64,
    /// The measurements of its ranks alone.
    pub(super) ranks: Vec<RankProfile>,
}

/// How GPUs are shared, and the assumptions about it.
#[derive(Debug)]
pub(super) struct Sharing<'a> {
    pub(super) model: &'a InterferenceModel,
    pub(super) physics: &'a Physics,
    pub(super) mode: CollocationMode,
    pub(super) gpus: usize,
}

impl Stay {
    fn duration(&self) -> f64 {
        (self.to - self.from).max(0.001)
    }

    /// Time outside training, before and after, as in the simulator.
    fn outside_training(&self, physics: &Physics) -> [f64; 3] {
        [physics.start_up.0, physics.loading.0, physics.winding_down.0].map(|span| span.min(self.duration() / 4.0))
    }

    /// The time span in which it trains, slows others down and is slowed down.
    fn training(&self, physics: &Physics) -> (f64, f64) {
        let [start_up, loading, winding_down] = self.outside_training(physics);
        (self.from + start_up + loading, self.from + self.duration() - winding_down)
    }

    /// Average activity relative to training alone.
    fn activity(&self, trained: f64, physics: &Physics) -> f64 {
        let [_, loading, winding_down] = self.outside_training(physics);
        ((trained + physics.quiet * (loading + winding_down)) / self.duration()).clamp(0.01, 1.0)
    }
}

impl Sharing<'_> {
    /// All attempts as they would have been alone.
    pub(super) fn without_interference(&self, stays: &[Stay]) -> Vec<SoloRun> {
        let mut trained = vec![0.0; stays.len()];
        let mut profiles = vec![Vec::new(); stays.len()];
        for round in 0..ROUNDS {
            for ((stay, trained), profiles) in stays.iter().zip(&trained).zip(&mut profiles) {
                let activity = if round == 0 { 1.0 } else { stay.activity(*trained, self.physics) };
                *profiles = stay.ranks.iter().map(|(_, rank)| self.training_profile(rank, activity)).collect();
            }
            trained = self.trained(stays, &profiles);
        }
        let alone = |((stay, training), ranks): ((&Stay, f64), Vec<RankProfile>)| {
            let outside_training: f64 = stay.outside_training(self.physics).iter().sum();
            SoloRun { seconds: outside_training + training, training, ranks }
        };
        stays.iter().zip(trained).zip(profiles).map(alone).collect()
    }

    /// A rank's profile while it trains alone, from its measured average.
    fn training_profile(&self, measured: &RankProfile, activity: f64) -> RankProfile {
        let counter = |value: Fraction, reading: f64| Fraction::clamped(value.get() / activity / reading);
        RankProfile {
            smact: counter(measured.smact, self.physics.reading),
            smocc: counter(measured.smocc, self.physics.reading),
            drama: counter(measured.drama, 1.0),
            utilisation: counter(measured.utilisation, 1.0),
            ..*measured
        }
    }

    /// Seconds of training that each did, in time alone.
    fn trained(&self, stays: &[Stay], profiles: &[Vec<RankProfile>]) -> Vec<f64> {
        let interference = |profiles: &Vec<RankProfile>| profiles.iter().map(|rank| self.model.rank_interference(None, rank)).collect();
        let ranks: Vec<Vec<RankInterference>> = profiles.iter().map(interference).collect();
        let spans = stays.iter().map(|stay| stay.training(self.physics));
        let mut turns: Vec<(f64, bool, usize)> =
            spans.enumerate().flat_map(|(stay, (begins, ends))| [(begins, true, stay), (ends, false, stay)]).collect();
        turns.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        let mut trained = vec![0.0; stays.len()];
        let mut on_gpus: Vec<Vec<(usize, f64)>> = vec![Vec::new(); self.gpus];
        let mut training: Vec<usize> = Vec::new();
        let mut now = f64::NEG_INFINITY;
        for (at, begins, stay) in turns {
            if at > now {
                let host = self.physics.host_slowdown(on_gpus.iter().map(Vec::len).sum(), self.gpus.max(1) as f64);
                for other in &training {
                    trained[*other] += (at - now) / (host * self.slowdown(*other, &stays[*other], &ranks[*other], &on_gpus));
                }
                now = at;
            }
            if begins {
                training.push(stay);
            } else {
                training.retain(|other| *other != stay);
            }
            for ((gpu, _), interference) in stays[stay].ranks.iter().zip(&ranks[stay]) {
                on_gpus[*gpu].retain(|(other, _)| *other != stay);
                if begins {
                    on_gpus[*gpu].push((stay, interference.pressure));
                }
            }
        }
        trained
    }

    /// A job is as slow as its slowest rank.
    fn slowdown(&self, place: usize, stay: &Stay, ranks: &[RankInterference], on_gpus: &[Vec<(usize, f64)>]) -> f64 {
        let of_rank = |((gpu, _), interference): (&(usize, RankProfile), &RankInterference)| {
            let mut neighbours = Neighbours::default();
            on_gpus[*gpu].iter().filter(|(other, _)| *other != place).for_each(|(_, pressure)| neighbours.add(*pressure));
            self.model.slowdown(interference.sensitivity, neighbours, self.mode)
        };
        stay.ranks.iter().zip(ranks).map(of_rank).fold(1.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use carma_core::{MiB, Seconds};
    use carma_sim::{Catalogue, Knowledge, Servers, Simulation, Trace, TraceJob};

    use super::*;

    fn sharing<'a>(model: &'a InterferenceModel, physics: &'a Physics) -> Sharing<'a> {
        Sharing { model, physics, mode: CollocationMode::Streams, gpus: 1 }
    }

    fn rank(smact: f64) -> RankProfile {
        let share = Fraction::clamped(smact);
        RankProfile { peak: MiB(4096), smact: share, smocc: share, drama: share, utilisation: share, power: None }
    }

    #[test]
    fn an_attempt_alone_keeps_its_duration() {
        let (model, physics) = (InterferenceModel::shipped(), Physics::default());
        let stays = [(0.0, 1000.0), (1000.0, 1010.0)].map(|(from, to)| Stay { from, to, ranks: vec![(0, rank(0.5))] });
        let alone = sharing(&model, &physics).without_interference(&stays);
        assert!((alone[0].seconds - 1000.0).abs() < 1e-6 && (alone[1].seconds - 10.0).abs() < 1e-6, "{alone:?}");
        assert!(alone[0].ranks[0].smact.get() > 0.5, "the monitor reads less than there is");
    }

    #[test]
    fn the_time_alone_of_two_simulated_jobs_is_recovered() {
        let (model, physics) = (InterferenceModel { pair_deviation: 0.0, ..InterferenceModel::shipped() }, Physics::default());
        let profiles = [rank(0.6), rank(0.4)];
        let workload = |(place, rank): (usize, &RankProfile)| carma_sim::Workload {
            name: place.to_string(),
            model: String::new(),
            dataset: String::new(),
            batch: None,
            epochs: None,
            family: String::new(),
            seconds: Seconds::from_secs(1000),
            ranks: vec![*rank],
            aliases: Vec::new(),
            source: String::new(),
            note: None,
        };
        let catalogue = Catalogue::measured_by("here", profiles.iter().enumerate().map(workload)).unwrap();
        let job =
            |(id, _)| TraceJob { name: String::new(), submitted: Seconds::ZERO, gpus: 1, workload: Some(id), duration: None, owner: None };
        let trace = Trace { jobs: catalogue.iter().map(job).collect(), ..Trace::default() };
        let servers: Servers = "1xA100-40GB".parse().unwrap();
        let settings = toml::from_str("policy = \"or-magm\"\n").unwrap();
        let knowledge = Knowledge::default();
        let simulation = Simulation::new((&catalogue, &model), &trace, &servers, &settings, &knowledge);
        let run = Simulation { physics: physics.clone(), ..simulation }.run().unwrap();
        let stays: Vec<Stay> = run
            .jobs
            .iter()
            .zip(&profiles)
            .map(|(job, rank)| {
                let (from, to) = (job.attempts[0].launched.get(), job.ended.unwrap().get());
                // As a monitor would have read it, on average over its time.
                let activity = 1000.0 / (to - from);
                let seen = |value: Fraction, reading: f64| Fraction::clamped(value.get() * reading * activity);
                let measured = RankProfile {
                    smact: seen(rank.smact, physics.reading),
                    smocc: seen(rank.smocc, physics.reading),
                    drama: seen(rank.drama, 1.0),
                    utilisation: seen(rank.utilisation, 1.0),
                    ..*rank
                };
                Stay { from, to, ranks: vec![(0, measured)] }
            })
            .collect();
        assert!(stays.iter().all(|stay| stay.duration() > 1100.0), "they slowed each other down: {stays:?}");
        let alone = sharing(&model, &physics).without_interference(&stays);
        for (alone, record) in alone.iter().zip(&run.jobs) {
            assert!((alone.seconds / record.alone - 1.0).abs() < 0.04, "{alone:?} for {}", record.alone);
        }
    }
}
