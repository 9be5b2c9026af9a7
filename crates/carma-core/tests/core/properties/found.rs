//! Counterexamples that random events found, each cut down by hand. The test checks every answer.

use carma_core::*;

use super::events::{Mode, Setup};
use super::world::World;

fn settings(json: &str) -> Settings {
    serde_json::from_str(json).unwrap()
}

fn submit(world: &mut World, spec: JobSpec) -> JobId {
    world.jobs += 1;
    let id = JobId(world.jobs);
    world.accepted(Event::JobSubmitted(Box::new(JobSpec { id, ..spec })));
    id
}

/// Job 1 passes the head, job 2. That puts job 4 of the other user at the head, which waits too. If job 3 then passed job 4 onto the GPUs kept for
/// job 2, its start would put job 2 at the head again, without its GPUs.
#[test]
fn a_reservation_remains_while_another_user_is_next() {
    let queue = r#""queue":{"order":"submission","fair_share":true,"fair_share_reserve":0,"backfill":100,"reserve_after":0,"critical":0}"#;
    let rules = format!(r#"{{"preset":"first","policy":"or-magm","admission":{{"reservations":false,"idle_first":false}},{queue}}}"#);
    let streams = |memory| (memory, Mode::Streams);
    let servers = vec![vec![streams(11); 2], vec![streams(40), (11, Mode::Mig), streams(80)], vec![streams(40)]];
    let mut world = World::new(&Setup { settings: settings(&rules), servers });
    let of = |user, gpus| JobSpec { user: UserId(user), group: GroupId(0), gpus, ..JobSpec::new(JobId(0)) };
    let urgent = |spec| JobSpec { host_memory: Some(MiB(1)), priority: Priority(1), ..spec };
    // Jobs 2 and 4 wait for memory of the host: only job 1 and job 3 claim none.
    for server in [0, 1, 2] {
        world.host_memory(ServerId(server), MiB(0));
    }
    let busy = DeviceId::gpu(ServerId(0), 0);
    world.accepted(Event::GpuSampled { device: busy, sample: Sample::new(world.now, MiB(1_025)) });
    let spanning = JobSpec { may_span_servers: true, awaits_estimate: true, expected_duration: Some(Seconds::from_secs(1)), ..of(1, 2) };
    let first = submit(&mut world, spanning);
    let head = submit(&mut world, urgent(of(1, 2)));
    let third = submit(&mut world, of(0, 2));
    submit(&mut world, urgent(JobSpec { mode: RequestedMode::Mig, ..of(0, 1) }));
    world.accepted(Event::EstimateReady { job: first, estimate: Box::default() });
    assert!(world.scheduler().job(first).unwrap().state.active().is_some());
    assert!(world.scheduler().job(third).unwrap().state.waits_since().is_some(), "job 3 has no other GPUs");
    let kept = world.scheduler().head_reservation().map(|kept| kept.head);
    assert!(kept.is_some_and(|now_next| now_next != head), "another user's job is next");
}
