//! What people read.

use carma_core::*;

use crate::lab::{Lab, gpu, job, known, secs};

#[test]
fn the_reason_of_a_waiting_job_is_explained() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 5);
    lab.submit(JobSpec { exclusive: true, ..job(1) });
    lab.submit(known(2, 30_000));
    lab.seen(2, 20_000);
    lab.busy(2, 12_000, 0.95, 0.61, 0.30);
    let process = ProcessUse { owner: Owner::Foreign { pid: 1 }, memory: Some(MiB(12_000)) };
    lab.event(Event::ProcessesSeen { device: gpu(2), processes: vec![process] });
    lab.event(Event::GpuDrained { device: gpu(3) });
    lab.load(4, 39_000, 0.2);
    lab.submit(known(3, 20_000));
    insta::assert_snapshot!(lab.scheduler.explain(JobId(3)).unwrap());
}

#[test]
fn the_reason_of_the_queue_order_is_explained() {
    let mut lab = Lab::new(Config::from(Preset::Standard), 2);
    lab.submit(JobSpec { exclusive: true, time_limit: Some(secs(500)), ..job(1) });
    lab.submit(JobSpec { exclusive: true, gpus: 2, ..job(2) });
    lab.submit(known(3, 20_000));
    insta::assert_snapshot!(lab.scheduler.explain(JobId(3)).unwrap());
    insta::assert_snapshot!(lab.scheduler.explain(JobId(1)).unwrap());
}

#[test]
fn every_reason_is_readable_by_programs() {
    let mut lab = Lab::with_policy(Preset::Paper, "magm", 1);
    lab.busy(0, 30_000, 0.9, 0.5, 0.1);
    lab.submit(JobSpec { user: UserId(7), ..known(1, 20_000) });
    let explanation = serde_json::to_string_pretty(&lab.scheduler.explain(JobId(1)).unwrap()).unwrap();
    insta::assert_snapshot!(explanation);
}
