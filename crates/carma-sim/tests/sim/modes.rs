//! GPUs that are switched between streams, MPS and MIG during a run.

use carma_core::{ModeSettings, SharingMode};

use crate::lab::{Lab, spans};

fn allowing(mut lab: Lab, allowed: &[SharingMode]) -> Lab {
    lab.settings.modes = Some(ModeSettings { allowed: Some(allowed.to_vec()), ..ModeSettings::default() });
    lab
}

/// Bursts of small jobs of one user, with time between them for GPUs to fall idle.
fn bursts() -> Lab {
    let bursts = (0..4).flat_map(|burst| std::iter::repeat_n(burst * 6_000, 8));
    bursts.fold(Lab::new("2xA100-40GB", "magm"), |lab, second| lab.job(second, "small"))
}

#[test]
fn many_small_jobs_gain_from_a_switch_to_mps() {
    let mean = |lab: &Lab| {
        let run = lab.run();
        let taken = run.jobs.iter().map(|job| (job.ended.unwrap() - job.submitted).get());
        taken.sum::<f64>() / run.jobs.len() as f64
    };
    let streams = mean(&allowing(bursts(), &[]));
    let switched = mean(&allowing(bursts(), &[SharingMode::Streams, SharingMode::Mps]));
    assert!(switched < 0.95 * streams, "{switched:.0} s on average, {streams:.0} s with streams alone");
}

/// Four small jobs wait behind one that has the GPU for itself.
fn behind_a_large_job(gpu: &str) -> Lab {
    let lab = Lab::new(gpu, "exclusive").job(0, "large");
    [1, 2, 3, 4].into_iter().fold(lab, |lab, second| lab.job(second, "small"))
}

#[test]
fn a_gpu_is_partitioned_for_small_jobs_and_joined_for_a_large_one() {
    // Cut in 20 s into 4 and 3 slices: 990 s of training take as long on 4 of 7, and 7/6 as long on 3. Made whole in another 20 s when both are free.
    let lab = behind_a_large_job("1xA100-40GB").job(1_500, "large");
    let run = allowing(lab, &[SharingMode::Streams, SharingMode::Mig]).run();
    assert_eq!(spans(&run), [(0, 1000), (1020, 2020), (1020, 2185), (2020, 3020), (2185, 3350), (3370, 4370)]);
    let [gpu] = &run.gpus[..] else { panic!("one GPU") };
    // What was done on instances is counted as their GPU's: six jobs of 990 s at half of its SMs.
    assert!((gpu.totals.smact - 6.0 * 495.0).abs() < 1.0, "{}", gpu.totals.smact);
}

#[test]
fn a_gpu_that_cannot_be_partitioned_continues() {
    let [plain, refused] =
        [&[][..], &[SharingMode::Streams, SharingMode::Mig]].map(|allowed| allowing(behind_a_large_job("1xV100-32GB"), allowed).run());
    // It is tried once, which takes 20 s, and not again.
    let later: Vec<_> = spans(&plain).into_iter().skip(1).map(|(start, end)| (start + 20, end + 20)).collect();
    assert_eq!(spans(&refused)[1..], later);
}
