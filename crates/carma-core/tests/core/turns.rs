//! Orders of the queue, and turns between users.

use carma_core::*;

use crate::lab::{Lab, gpu, job, known, launches, secs};

/// Rules with this queue, where a job has its GPU for itself.
fn config(queue: QueueSettings) -> Config {
    Settings { policy: Some("exclusive".to_owned()), queue: Some(queue), ..Settings::default() }.check().unwrap()
}

fn ordered(order: QueueOrder) -> QueueSettings {
    QueueSettings { order: Some(order), ..QueueSettings::default() }
}

fn fair() -> QueueSettings {
    QueueSettings { fair_share: Some(true), fair_share_reserve: Some(0.0), ..QueueSettings::default() }
}

fn lasting(id: u64, seconds: u64) -> JobSpec {
    JobSpec { expected_duration: Some(secs(seconds)), ..job(id) }
}

fn of(user: u32, spec: JobSpec) -> JobSpec {
    JobSpec { user: UserId(user), group: GroupId(user / 10), ..spec }
}

fn queue(lab: &Lab) -> Vec<u64> {
    lab.scheduler.queue().map(|job| job.id().0).collect()
}

#[test]
fn the_shortest_goes_first_until_others_have_waited_long_enough() {
    let mut lab = Lab::new(config(ordered(QueueOrder::Shortest)), 1);
    lab.submit(job(1));
    lab.submit(lasting(2, 1000));
    lab.submit(lasting(3, 100));
    lab.submit(JobSpec { time_limit: Some(secs(200)), ..job(4) });
    lab.submit(job(5));
    assert_eq!(queue(&lab), [3, 4, 2, 5], "a job of which nothing is known should take an hour");
    lab.wait(901);
    lab.submit(lasting(6, 100));
    assert_eq!(queue(&lab), [3, 4, 2, 6, 5], "job 2 has waited for longer than job 6 is shorter");
}

#[test]
fn the_user_who_used_least_goes_first() {
    let mut lab = Lab::new(config(ordered(QueueOrder::LeastAttained)), 1);
    lab.submit(JobSpec { retries: RetryBudget { failure: 3, ..RetryBudget::default() }, ..job(1) });
    lab.submit(job(2));
    lab.wait(500);
    assert_eq!(launches(&lab.exit(1, Verdict::Failed { code: 1 })), [(2, vec![0])]);
    lab.wait(300);
    lab.submit(job(3));
    assert_eq!(queue(&lab), [1, 3], "500 s of work, 800 s of waiting");
    lab.event(Event::ConfigurationChanged(Box::new(Settings {
        policy: Some("exclusive".to_owned()),
        queue: Some(QueueSettings { ageing: Some(0.1), ..ordered(QueueOrder::LeastAttained) }),
        ..Settings::default()
    })));
    assert_eq!(queue(&lab), [3, 1], "other rules sort the queue again");
    assert_eq!(
        lab.scheduler.explain(JobId(1)).unwrap().reason.to_string(),
        "is number 2 in the queue; job 3 is next: it has used less GPU time, or has waited longer"
    );
}

#[test]
fn users_alternate_by_the_cost_of_their_jobs() {
    let mut lab = Lab::new(config(fair()), 1);
    lab.submit(of(3, lasting(100, 1)));
    for id in 1..=4 {
        lab.submit(of(1, lasting(id, 100)));
    }
    lab.submit(of(2, lasting(11, 200)));
    lab.submit(of(2, lasting(12, 200)));
    assert_eq!(queue(&lab), [1, 11, 2, 3, 12, 4], "however many one submits");
    lab.submit(JobSpec { priority: Priority(1), ..of(1, lasting(5, 100)) });
    assert_eq!(queue(&lab)[0], 5, "priorities go before fairness");
}

#[test]
fn a_user_who_used_more_waits_and_sees_the_reason() {
    let mut lab = Lab::new(config(fair()), 1);
    lab.submit(of(1, lasting(1, 100)));
    lab.submit(of(1, lasting(2, 100)));
    lab.wait(7200);
    lab.submit(of(2, lasting(3, 100)));
    assert_eq!(launches(&lab.exit(1, Verdict::Succeeded)), [(3, vec![0])]);
    lab.submit(of(2, lasting(4, 100)));
    let reason = lab.scheduler.explain(JobId(2)).unwrap().reason.to_string();
    assert_eq!(reason, "is number 2 in the queue; job 4 is next: its user has used less recently: 0.0 GPU hours; this job's user 2.0");
    let usage: Vec<(u32, bool)> =
        lab.scheduler.shares(lab.now).iter().map(|share| (share.past.user.0, share.past.gpu_seconds > 7000.0)).collect();
    assert_eq!(usage, [(2, false), (1, true)]);
    // A week later half of it counts; the order is the same.
    lab.exit(3, Verdict::Succeeded);
    lab.wait(7 * 86_400);
    lab.exit(4, Verdict::Succeeded);
    let left = lab.scheduler.shares(lab.now).into_iter().find(|share| share.past.user == UserId(1)).unwrap().past.gpu_seconds;
    assert!((3500.0..3700.0).contains(&left), "{left}");
}

#[test]
fn a_group_has_its_turn_before_its_users() {
    let shares = vec![ShareSettings { gid: Some(2), share: 2.0, uid: None }];
    let mut lab = Lab::new(config(QueueSettings { shares: Some(shares), ..fair() }), 1);
    lab.submit(of(99, lasting(100, 1)));
    for (id, user) in [(1, 11), (2, 12), (3, 13), (4, 21), (5, 21), (6, 21)] {
        lab.submit(of(user, lasting(id, 100)));
    }
    assert_eq!(queue(&lab), [1, 4, 5, 2, 6, 3], "three users of one group have half of what one of the other has");
}

#[test]
fn gpus_are_kept_for_users_below_their_share() {
    let queue = QueueSettings { fair_share: Some(true), ..QueueSettings::default() };
    let mut lab = Lab::new(Settings { queue: Some(queue), ..Settings::default() }.check().unwrap(), 5);
    let busy = |user, id| of(user, known(id, 30_000));
    for (user, id) in [(1, 1), (2, 2), (2, 3), (2, 4)] {
        assert_eq!(lab.submit(busy(user, id)).len(), 1, "as long as both have less than half, they start as they come");
    }
    assert_eq!(lab.submit(busy(2, 5)), [], "the fifth GPU is left to user 1");
    assert!(lab.obstacles(5, 4).contains(&Obstacle::ReservedForFairShare));
    assert!(lab.obstacles(5, 0).contains(&Obstacle::ReservedForFairShare), "where it runs it is not disturbed");
    assert_eq!(lab.submit(busy(1, 6)), [(6, vec![4])], "and it may have it");
    assert_eq!(launches(&lab.exit(2, Verdict::Succeeded)).len(), 1, "as soon as user 2 holds less than half, it goes on");
    let mut lab = Lab::new(config(QueueSettings { fair_share: Some(true), ..QueueSettings::default() }), 2);
    assert_eq!(lab.submit(busy(2, 1)).len() + lab.submit(busy(2, 2)).len(), 2, "as long as no user has less, nothing is kept");
}

#[test]
fn gpus_are_kept_for_an_absent_user_for_a_limited_time() {
    let mut lab = Lab::new(config(QueueSettings { fair_share: Some(true), ..QueueSettings::default() }), 2);
    assert_eq!(lab.submit(of(2, lasting(1, 100_000))), [(1, vec![0])]);
    lab.wait(1_000);
    assert_eq!(lab.submit(of(1, lasting(2, 60))), [(2, vec![1])]);
    lab.wait(60);
    lab.exit(2, Verdict::Succeeded);
    assert_eq!(lab.submit(of(2, lasting(3, 60))), [], "user 1 was here a moment ago");
    let reserve = lab.scheduler.config().queue.fair_share_reserve;
    assert_eq!(lab.scheduler.next_wakeup(), Some(lab.now + reserve + Seconds::TICK));
    lab.now = lab.now + reserve + Seconds::TICK;
    assert_eq!(launches(&lab.event(Event::Tick)), [(3, vec![1])], "and has been away for too long now");
}

#[test]
fn the_fair_share_reserve_is_not_reserved_for_a_head_of_another_user() {
    let mut lab = Lab::new(config(QueueSettings { fair_share: Some(true), backfill: Some(100.0), ..QueueSettings::default() }), 2);
    lab.submit(of(2, lasting(1, 100_000)));
    lab.wait(1_000);
    lab.submit(of(1, lasting(2, 60)));
    assert_eq!(lab.submit(JobSpec { priority: Priority(9), ..of(2, lasting(3, 60)) }), []);
    assert_eq!(lab.submit(of(1, lasting(4, 60))), []);
    let ended = lab.exit(2, Verdict::Succeeded);
    assert_eq!(launches(&ended), [(4, vec![1])], "job 3 is next by its priority, and the GPU is left to user 1");
}

#[test]
fn among_equally_long_jobs_the_first_is_next() {
    let mut lab = Lab::new(config(QueueSettings { critical: Some(1.0), ..ordered(QueueOrder::Shortest) }), 2);
    lab.event(Event::HostShort { server: ServerId(0) });
    (1..=3).for_each(|id| drop(lab.submit(job(id))));
    assert_eq!(launches(&lab.event(Event::HostRecovered { server: ServerId(0) })), [(1, vec![0]), (2, vec![1])]);
}

#[test]
fn an_overdue_job_does_not_reduce_the_work_of_others() {
    let queue = QueueSettings { critical: Some(1.0), reserve_after: Some(1e6), backfill: Some(100.0), ..ordered(QueueOrder::Shortest) };
    let mut lab = Lab::new(config(queue), 2);
    lab.submit(lasting(1, 100));
    lab.submit(lasting(2, 20_000));
    lab.wait(10_000);
    lab.submit(lasting(3, 5_000));
    lab.submit(lasting(4, 100));
    let head = |lab: &Lab| lab.scheduler.head_reservation().unwrap().head;
    assert_eq!(head(&lab), JobId(4), "10,000 s of job 2 and 100 s of job 4 are more than two times 5,000 s, however late job 1 is");
    lab.wait(200);
    lab.event(Event::Tick);
    assert_eq!(head(&lab), JobId(3));
    assert_eq!(lab.scheduler.queue_ids().collect::<Vec<_>>(), [JobId(3), JobId(4)], "lists show the head first");
    let why = lab.scheduler.explain(JobId(4)).unwrap().to_string();
    assert!(why.contains("is next: it is the longest job and would end last"), "{why}");
}

#[test]
fn a_user_is_limited_to_its_share_beside_a_user_who_used_less() {
    let queue = QueueSettings { fair_share: Some(true), ..QueueSettings::default() };
    let mut lab = Lab::new(Settings { queue: Some(queue), ..Settings::default() }.check().unwrap(), 4);
    assert_eq!(lab.submit(of(1, lasting(1, 36_000))).len(), 1);
    assert_eq!(lab.submit(of(1, lasting(2, 36_000))).len(), 1);
    assert_eq!(lab.submit(of(2, lasting(3, 60))).len(), 1);
    assert_eq!(lab.submit(of(1, lasting(4, 60))), [], "two of four GPUs are its share");
    for gpu in 0..4 {
        assert!(lab.obstacles(4, gpu).contains(&Obstacle::HostReservedForFairShare), "on no GPU of the server");
    }
    assert_eq!(lab.submit(of(2, lasting(5, 60))).len(), 1, "a user who used less is exempt");
    assert_eq!(launches(&lab.exit(3, Verdict::Succeeded)), []);
    assert_eq!(launches(&lab.exit(5, Verdict::Succeeded)).len(), 1, "alone again, it goes on");
}

#[test]
fn partitioning_a_gpu_does_not_make_the_longest_job_next() {
    let queue = QueueSettings { critical: Some(0.3), reserve_after: Some(1_000.0), backfill: Some(100.0), ..QueueSettings::default() };
    let mut lab = Lab::new(config(queue), 2);
    lab.event(Event::HostShort { server: ServerId(0) });
    lab.submit(lasting(1, 60));
    lab.submit(lasting(2, 99));
    let head = |lab: &Lab| lab.scheduler.head_reservation().unwrap().head;
    assert_eq!(head(&lab), JobId(1), "30 s of other work on each GPU are more than 0.3 of 99 s");
    (0..2).for_each(|half| lab.attach(DeviceSpec::new(gpu(1).instance(half), MiB(20_480))));
    assert_eq!(head(&lab), JobId(1), "it is one GPU still");
}
