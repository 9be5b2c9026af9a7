//! Time slices in the simulator: a preempted job continues from its checkpoint.

use carma_core::{Seconds, TimeSliceSettings, Verdict};
use carma_sim::Run;

use crate::lab::{Lab, spans};

fn with_time_slices(lab: Lab, length: f64) -> Lab {
    let mut lab = lab;
    lab.settings.time_slices = Some(TimeSliceSettings { length: Some(length) });
    lab.knowledge.checkpoint = 1.0;
    lab
}

#[test]
fn two_jobs_alternate_without_loss() {
    // Time slices of 400 s: 10 s of start-up and 390 s of training, then 10 s to write the checkpoint. Both have trained 780 s after two
    // time slices; the rest takes 10 s and 210 s.
    let run = with_time_slices(Lab::new("1xA100-40GB", "exclusive").job(0, "small").job(5, "small"), 400.0).run();
    assert_eq!(spans(&run), [(1640, 1860), (1860, 2080)]);
    for job in &run.jobs {
        assert_eq!((job.attempts.len(), job.attempts[0].verdict.clone()), (3, Some(Verdict::Failed { code: 143 })));
        assert!((job.execution() - 1040.0).abs() < 0.1, "its 1,000 s, and twice 10 s to write and 10 s to start again");
    }
}

#[test]
fn jobs_that_cannot_checkpoint_keep_their_gpus() {
    let mut lab = with_time_slices(Lab::new("1xA100-40GB", "exclusive").job(0, "small").job(5, "small"), 400.0);
    lab.knowledge.checkpoint = 0.0;
    assert_eq!(spans(&lab.run()), [(0, 1000), (1000, 2000)]);
}

#[test]
fn short_jobs_do_not_wait_for_long_ones() {
    let mean = |run: &Run| run.summary().mean_jct;
    let jobs = || {
        let mut lab = Lab::new("2xA100-40GB", "exclusive").job(0, "small").job(0, "small");
        for second in [10, 20, 30, 40, 50, 60] {
            lab = lab.job(second, "small");
        }
        for (place, job) in lab.trace.jobs.iter_mut().enumerate() {
            job.duration = Some(Seconds::from_secs(if place < 2 { 20_000 } else { 300 }));
        }
        lab
    };
    let (blocked, sliced) = (jobs().run(), with_time_slices(jobs(), 1000.0).run());
    assert_eq!((blocked.summary().failed, sliced.summary().failed), (0, 0));
    assert!(mean(&sliced) < 0.4 * mean(&blocked), "{} against {}", mean(&sliced), mean(&blocked));
    assert!(sliced.summary().makespan < 1.1 * blocked.summary().makespan);
}
