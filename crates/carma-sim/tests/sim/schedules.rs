//! Schedules that were worked out by hand.

use carma_core::{Outcome, Verdict};
use carma_sim::{Disturbance, Estimator, Physics, Sharing};

use crate::lab::{Lab, spans};

#[test]
fn exclusive_jobs_follow_each_other() {
    let run = Lab::new("1xA100-40GB", "exclusive").job(0, "small").job(5, "small").job(3000, "small").run();
    assert_eq!(spans(&run), [(0, 1000), (1000, 2000), (3000, 4000)]);
    let summary = run.summary();
    assert_eq!((summary.makespan, summary.mean_wait, summary.mean_jct, summary.p50_jct), (4000.0, 995.0 / 3.0, 3995.0 / 3.0, 1000.0));
}

#[test]
fn two_on_one_gpu_slow_each_other_down_while_both_train() {
    // The second is let in when the first has been seen for more than 30 s: launched at 0, seen at 10, gate open at 40.001.
    // Both train from 50.001 on, at 1 / 1.5. The first has trained 40.001 s by then and has 949.999 s left: it ends after 1.5 times
    // that, at 1475 s. The second has done 949.999 of its 990 s of training, and does the rest alone.
    let run = Lab::new("1xA100-40GB", "magm").job(0, "small").job(0, "small").run();
    assert_eq!(spans(&run), [(0, 1475), (40, 1515)]);
    let slowdowns: Vec<f64> = run.jobs.iter().map(|job| job.slowdown().unwrap()).collect();
    assert!((slowdowns[0] - 1.475).abs() < 1e-3 && (slowdowns[1] - 1.475).abs() < 1e-3, "{slowdowns:?}");
}

#[test]
fn mps_halves_interference_as_configured() {
    // As above with 1.25 instead of 1.5: 50 + 950 x 1.25 = 1237.5.
    let lab = Lab { sharing: Sharing::Mps, ..Lab::new("1xA100-40GB", "magm").job(0, "small").job(0, "small") };
    assert_eq!(spans(&lab.run()), [(0, 1238), (40, 1278)]);
}

#[test]
fn instances_isolate_jobs_with_their_slices() {
    // On 3 of 7 slices a job that keeps half of the SMs busy takes 7/6 as long for its 990 s of training.
    let lab = Lab { sharing: Sharing::Mig(3), ..Lab::new("1xA100-40GB", "exclusive").job(0, "small").job(0, "small").job(0, "small") };
    assert_eq!(spans(&lab.run()), [(0, 1165), (0, 1165), (1165, 2330)]);
}

#[test]
fn a_job_of_two_gpus_is_as_slow_as_its_slower_rank() {
    // The single goes to GPU 0 and is alone until the twin is let in; then both are slowed by half, the twin on GPU 0 only.
    let run = Lab::new("2xA100-40GB", "magm").job(0, "small").job(0, "twin").run();
    assert_eq!(spans(&run), [(0, 1475), (40, 1515)]);
    assert_eq!(run.jobs[1].attempts[0].gpus.len(), 2);
    let [one, other] = &run.gpus[..] else { panic!("two GPUs") };
    assert!(one.totals.smact > other.totals.smact, "the first GPU did two jobs' work");
    // The twin's work is the same on both GPUs, however long it takes: 990 s at SMACT 0.5.
    assert!((other.totals.smact - 495.0).abs() < 0.1, "{}", other.totals.smact);
}

#[test]
fn a_job_without_enough_memory_fails_and_restarts_alone() {
    // The needs of jobs are unknown: 32 GiB are in use, 5 GiB are free, and 16 GiB are requested.
    let lab = Lab { knowledge: carma_sim::Knowledge::default(), ..Lab::new("1xA100-40GB", "or-magm").job(0, "large").job(0, "middle") };
    let run = lab.run();
    assert_eq!(run.jobs[1].attempts.len(), 2);
    assert_eq!(run.jobs[1].attempts[0].verdict, Some(Verdict::OutOfMemory));
    assert_eq!(run.jobs[0].attempts.len(), 1, "the one that was there is not touched");
    // Let in at 40, dead at 50; again when the GPU is idle, at 1000.
    assert_eq!(spans(&run), [(0, 1000), (1000, 2000)]);
    assert_eq!((run.jobs[1].execution(), run.jobs[1].waiting()), (1010.0, Some(990.0)), "the failed attempt counts as run");
    assert_eq!(run.summary().oom_attempts, 1);
}

#[test]
fn a_job_with_a_known_need_waits() {
    let run = Lab::new("1xA100-40GB", "magm").job(0, "large").job(0, "middle").run();
    assert_eq!(spans(&run), [(0, 1000), (1000, 2000)]);
    assert_eq!(run.summary().oom_attempts, 0);
}

#[test]
fn late_growth_fails_the_requesting_job() {
    // Half of the memory at once, the rest in two steps of 30 s. The first has 16 GiB at 10 s and 24 at 40 s, when the second is let in;
    // that takes 8 GiB at 50 s. At 70 s the first requests its last 8 GiB: 40 GiB would be more than processes can have.
    let mut lab = Lab::new("1xA100-40GB", "or-magm").job(0, "large").job(0, "middle");
    lab.knowledge.memory = Estimator::None;
    lab.physics = Physics { first_memory: 0.5, growth: (60.0, 0.0), ..lab.physics };
    let run = lab.run();
    let first = &run.jobs[0].attempts[0];
    assert_eq!((first.verdict.clone(), first.ended.unwrap().get()), (Some(Verdict::OutOfMemory), 70.0));
    assert_eq!(run.jobs[1].attempts.len(), 1, "the later one got what it requested");
    // The second trained beside the first for 20 s, so it ends 20 / 3 s late; then the first has the GPU to itself.
    assert_eq!(spans(&run), [(1047, 2047), (40, 1047)]);
}

#[test]
fn a_foreign_process_slows_jobs_and_takes_memory() {
    let foreign = |text| Disturbance::foreign(text).unwrap();
    let slowed = Lab { disturbances: vec![foreign("gpu=0,memory=2000,smact=0.5")], ..Lab::new("1xA100-40GB", "magm").job(100, "small") };
    // 10 s of start-up, 990 s of training at 1 / 1.5.
    assert_eq!(spans(&slowed.run()), [(100, 1595)]);
    let full = foreign("gpu=0,until=500,memory=39000");
    let waits = Lab { disturbances: vec![full], ..Lab::new("1xA100-40GB", "magm").job(100, "small") };
    assert_eq!(spans(&waits.run()), [(500, 1500)]);
}

#[test]
fn jobs_of_a_lost_gpu_restart_elsewhere() {
    let loss = Disturbance::loss("gpu=0,from=300,until=5000").unwrap();
    let lab = Lab { disturbances: vec![loss], ..Lab::new("2xA100-40GB", "exclusive").job(0, "small").job(0, "small") };
    let run = lab.run();
    assert_eq!(run.jobs[0].attempts[0].verdict, Some(Verdict::GpuLost));
    assert_eq!(spans(&run), [(1000, 2000), (0, 1000)]);
}

#[test]
fn a_job_that_fits_no_gpu_ends_and_blocks_no_job() {
    let run = Lab::new("1xA100-40GB", "magm").job(0, "twin").job(0, "small").run();
    assert!(run.jobs[0].attempts.is_empty());
    assert_ne!(run.jobs[0].outcome, Some(Outcome::Succeeded));
    assert_eq!((run.jobs[1].outcome.clone(), run.summary().failed), (Some(Outcome::Succeeded), 1));
}

#[test]
fn a_slower_gpu_takes_longer_for_what_runs_on_it() {
    // 1555 / 900 as long for kernels, and this job is nothing but kernels once it has started.
    let run = Lab::new("1xV100-32GB", "exclusive").job(0, "small").run();
    assert_eq!(spans(&run), [(0, (10.0 + 990.0 * 1555.0 / 900.0_f64).round() as u64)]);
}

#[test]
fn more_processes_than_gpus_weigh_on_the_host() {
    let mut lab = Lab::new("1xA100-40GB", "magm").job(0, "small").job(0, "small");
    lab.physics.host_contention = 0.1;
    // As for two on one GPU, with 1.5 x 1.1.
    assert_eq!(spans(&lab.run())[0], (0, 1617));
}
