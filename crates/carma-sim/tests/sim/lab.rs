//! Workloads of round numbers and a simulation without randomness, for schedules computed by hand.

use carma_core::{Preset, Rung, Seconds, Settings};
use carma_sim::{
    Catalogue, Disturbance, Effect, Estimator, InterferenceModel, Knowledge, Physics, PressureExponents, Run, SensitivityExponents,
    Servers, Sharing, Simulation, Trace, TraceJob,
};

/// Workloads that keep half of each of their GPUs busy: `small`, `middle` and `large` take 4, 16 and 32 GiB, `twin` 4 on each of two.
fn workloads() -> String {
    let workload = |(name, mebibytes, gpus): (&str, u32, usize)| {
        let each = |value: &str| vec![value; gpus].join(", ");
        let counters = [("smact", "0.5"), ("smocc", "0.2"), ("drama", "0.1"), ("utilisation", "1"), ("power_w", "252")];
        let counters: Vec<String> = counters.iter().map(|(key, value)| format!("{key} = [{}]", each(value))).collect();
        let memory = each(&mebibytes.to_string());
        let head =
            format!("[[workload]]\nname = \"{name}\"\nmodel = \"m\"\ndataset = \"d\"\nsource = \"lab\"\ngpus = {gpus}\nseconds = 1000");
        format!("{head}\npeak_mib = [{memory}]\n{}\n", counters.join("\n"))
    };
    let all = [("small", 4096, 1), ("middle", 16_384, 1), ("large", 32_768, 1), ("twin", 4096, 2)];
    format!("[source]\nlab = \"made up\"\n{}", all.map(workload).concat())
}

/// Everything that a simulation needs, with public fields.
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
    /// On these servers, under the published rules with this policy: no chance, 10 s of start-up, and every co-runner adds half to a job's time.
    pub(crate) fn new(servers: &str, policy: &str) -> Self {
        let mut catalogue = Catalogue::default();
        catalogue.extend(&workloads()).unwrap();
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
            families: std::collections::BTreeMap::from([("none".to_owned(), Effect::default())]),
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
            physics: self.physics.clone(),
            sharing: self.sharing,
            disturbances: &self.disturbances,
            seed: self.seed,
            timeline: true,
            ..Simulation::new((&self.catalogue, &self.interference), &self.trace, &self.servers, &self.settings, &self.knowledge)
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
