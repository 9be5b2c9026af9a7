//! Memory limits of the driver in the simulator: who fails when a job takes more than it declared.

use carma_core::{EnforceSettings, Enforcement, GateSettings, JobId, JobSpec, MemoryNeed, MiB, Preset, Verdict};
use carma_sim::Run;

use crate::lab::Lab;

/// `large` declares 4 GiB and takes 32; `middle` declares the 16 GiB that it takes, two seconds later.
fn run(memory: Option<Enforcement>) -> Run {
    let mut lab = Lab::new("1xA100-40GB", "ff").job(0, "large").job(2, "middle");
    lab.settings.preset = Some(Preset::Standard);
    lab.settings.gate = Some(GateSettings { observe: Some(0.0), timeout: Some(1.0), ..GateSettings::default() });
    lab.settings.enforce = Some(EnforceSettings { memory, ..EnforceSettings::default() });
    for (workload, declared) in [("large", 4_096), ("middle", 16_384)] {
        let request = JobSpec { memory: MemoryNeed::known(MiB(declared)), ..JobSpec::new(JobId(0)) };
        lab.knowledge.requests.insert(lab.catalogue.find(workload).unwrap(), request);
    }
    lab.run()
}

/// The first verdicts of `large` and `middle`, when the first attempt of `large` ended, and how many victims there were.
fn first(run: &Run) -> ([Option<Verdict>; 2], f64, usize) {
    let verdict = |job: usize| run.jobs[job].attempts[0].verdict.clone();
    ([verdict(0), verdict(1)], run.jobs[0].attempts[0].ended.unwrap().get().round(), run.summary().oom_victims)
}

#[test]
fn without_limits_the_neighbour_that_kept_to_its_reservation_fails() {
    for memory in [None, Some(Enforcement::Off)] {
        let (verdicts, _, victims) = first(&run(memory));
        assert_eq!((verdicts, victims), ([Some(Verdict::Succeeded), Some(Verdict::OutOfMemory)], 1));
    }
}

#[test]
fn with_limits_the_job_that_took_too_much_fails_alone() {
    let wrong_one = [Some(Verdict::OutOfMemory), Some(Verdict::Succeeded)];
    assert_eq!(first(&run(Some(Enforcement::Soft))), (wrong_one.clone(), 12.0, 0), "when the other takes its memory");
    assert_eq!(first(&run(Some(Enforcement::Hard))), (wrong_one, 10.0, 0), "when it takes more than it declared");
}
