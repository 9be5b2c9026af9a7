//! Workloads of round numbers and a world without chance, for schedules worked out by hand.

use carma_core::{Preset, Rung, Seconds, Settings};
use carma_sim::{
    Catalogue, Disturbance, Effect, Estimator, InterferenceModel, Knowledge, Physics, PressureExponents, Run, SensitivityExponents,
    Servers, Sharing, Simulation, Trace, TraceJob,
};

/// Each presses 0.5 on the others and suffers all of it; `small`, `middle` and `large` take 4, 16 and 32 GiB; `calm` does not run much.
const WORKLOADS: &str = r#"
[source]
lab = "made up"

[[workload]]
name = "small"
model = "m"
dataset = "d"
gpus = 1
seconds = 1000
peak_mib = [4096]
smact = [0.5]
smocc = [0.2]
drama = [0.1]
utilisation = [1]
power_w = [252]
source = "lab"

[[workload]]
name = "middle"
model = "m"
dataset = "d"
gpus = 1
seconds = 1000
peak_mib = [16384]
smact = [0.5]
smocc = [0.2]
drama = [0.1]
utilisation = [1]
power_w = [252]
source = "lab"

[[workload]]
name = "large"
model = "m"
dataset = "d"
gpus = 1
seconds = 1000
peak_mib = [32768]
smact = [0.5]
smocc = [0.2]
drama = [0.1]
utilisation = [1]
power_w = [252]
source = "lab"

[[workload]]
name = "twin"
model = "m"
dataset = "d"
gpus = 2
seconds = 1000
peak_mib = [4096, 4096]
smact = [0.5, 0.5]
smocc = [0.2, 0.2]
drama = [0.1, 0.1]
utilisation = [1, 1]
power_w = [252, 252]
source = "lab"
"#;

/// A world to run traces in, all of it open to change.
pub(crate) struct Lab {
    pub(crate) catalogue: Catalogue,
    pub(crate) interference: InterferenceModel,
    pub(crate) physics: Physics,
    pub(crate) servers: Servers,
    pub(crate) sharing: Sharing,
    pub(crate) settings: Settings,
    pub(crate) knowledge: Knowledge,
    pub(crate) disturbances: Vec<Disturbance>,
    pub(crate) trace: Trace,
    pub(crate) seed: u64,
}

impl Lab {
    /// On these servers, under the published rules with this policy: no chance, and 10 s of start-up.
    pub(crate) fn new(servers: &str, policy: &str) -> Self {
        let mut catalogue = Catalogue::default();
        catalogue.extend(WORKLOADS).unwrap();
        let mut settings = Settings { preset: Some(Preset::Aegis), policy: Some(policy.to_owned()), ..Settings::default() };
        settings.recovery.get_or_insert_default().ladder = Some(vec![Rung::WholeGpu]);
        settings.screen.get_or_insert_default().enabled = Some(false);
        let interference = InterferenceModel {
            level: 0.5_f64.ln(),
            crowd: 0.0,
            mps: 0.5,
            pair_deviation: 0.0,
            pressure: PressureExponents { smact_odds: 0.0, memory: 0.0 },
            sensitivity: SensitivityExponents { utilisation: 0.0, memory: 0.0 },
            families: std::collections::BTreeMap::from([("nobody".to_owned(), Effect::default())]),
            workloads: std::collections::BTreeMap::new(),
        };
        Self {
            catalogue,
            interference,
            physics: Physics::certain(10.0),
            servers: servers.parse().unwrap(),
            sharing: Sharing::Streams,
            settings,
            knowledge: Knowledge { memory: Estimator::Oracle, ..Knowledge::default() },
            disturbances: Vec::new(),
            trace: Trace::default(),
            seed: 0,
        }
    }

    /// A job submitted at a second.
    pub(crate) fn job(mut self, second: u64, workload: &str) -> Self {
        let id = self.catalogue.find(workload);
        let gpus = self.catalogue.get(id.unwrap()).gpus();
        let name = format!("{}", self.trace.jobs.len() + 1);
        self.trace.jobs.push(TraceJob { name, submitted: Seconds::from_secs(second), gpus, workload: id, duration: None, owner: None });
        self
    }

    pub(crate) fn simulation(&self) -> Simulation<'_> {
        Simulation {
            catalogue: &self.catalogue,
            interference: &self.interference,
            physics: self.physics.clone(),
            trace: &self.trace,
            servers: &self.servers,
            sharing: self.sharing,
            settings: &self.settings,
            knowledge: &self.knowledge,
            disturbances: &self.disturbances,
            seed: self.seed,
            timeline: true,
        }
    }

    pub(crate) fn run(&self) -> Run {
        self.simulation().run().unwrap()
    }
}

/// When each job began and ended, to the second: its last attempt.
pub(crate) fn spans(run: &Run) -> Vec<(u64, u64)> {
    let second = |time: carma_core::Time| time.get().round() as u64;
    let span = |job: &carma_sim::JobRecord| (second(job.attempts.last().unwrap().launched), second(job.ended.unwrap()));
    run.jobs.iter().map(span).collect()
}
