//! Samples of GPUs and their jobs: now, in the last minutes, and over time.

use carma_core::Metric;
use carma_manager::api::{JobAction, RecentQuery, SampleQuery};

use super::lab::{Lab, block_on, program, until};
use super::served::Served;

#[test]
fn jobs_that_share_a_gpu_are_attributed_separately_now_and_over_time() {
    let served = Served::start("1xA100-40GB", 60.0, "[window]\nperiod = 5\n[manager.gpus]\nperiod = 5\n");
    let train = ["emu", "train", "--workload", "dlrm_criteo_bs32768", "--seconds", "100000"];
    for (name, memory) in [("small", "3000"), ("large", "9000")] {
        let submit = ["submit", "--name", name, "--mem", "12GiB", "--", program().to_str().unwrap()];
        assert!(served.carma(&[&submit[..], &train[..], &["--memory", memory]].concat()).status.success());
    }
    let client = &mut served.client();
    let tenants = until(|| {
        let tenants = client.gpus().unwrap().remove(0).tenants;
        let seen = tenants.iter().filter(|tenant| tenant.memory.is_some_and(|memory| memory.0 > 2500) && tenant.smact > Some(0.0));
        (seen.count() == 2).then_some(tenants)
    });
    let now = client.status().unwrap().now;
    assert!(tenants.iter().all(|tenant| tenant.energy.unwrap().0 > 0.0 && tenant.launched < now), "{tenants:?}");

    let [looks] = client.recent(&RecentQuery { gpu: Some("gpu0".to_owned()), ..RecentQuery::default() }).unwrap().try_into().unwrap();
    let columns = [
        looks.memory.len(),
        looks.utilisation[Metric::Smact].len(),
        looks.power.len(),
        looks.tenants[0].memory.len(),
        looks.tenants[1].memory.len(),
    ];
    assert_eq!(columns, [looks.at.len(); 5]);
    assert!(looks.tenants.iter().all(|tenant| tenant.memory.last().unwrap().is_some()), "{looks:?}");
    assert!(looks.at.is_sorted() && looks.at.last().unwrap().0 + 60_000 > now.0, "by the manager's clock: {now:?} {looks:?}");
    let fewer = &client.recent(&RecentQuery { points: Some(2), ..RecentQuery::default() }).unwrap()[0];
    assert_eq!(fewer.at.len(), 2);

    let timeline = client.timeline("0", &SampleQuery::default()).unwrap();
    assert!(timeline.until >= now && timeline.until.0 - timeline.since.0 == 3_600_000);
    assert_eq!(timeline.minutes.last().unwrap().minute, timeline.until.minute(), "the minute that is under way is there");
    let stays: Vec<_> = timeline.stays.iter().map(|stay| (stay.name.as_deref().unwrap(), stay.launched, stay.ended)).collect();
    assert_eq!(stays, [("small", tenants[0].launched, None), ("large", tenants[1].launched, None)]);
    until(|| {
        let stays = client.timeline("0", &SampleQuery::default()).unwrap().stays;
        let most = |place: usize| stays[place].memory.iter().map(|step| step.memory.0).max();
        (most(0) > Some(2500) && most(1) > Some(8500)).then_some(())
    });

    client.act("@large", &JobAction::Cancel).unwrap();
    let ended = until(|| client.timeline("0", &SampleQuery::default()).unwrap().stays.pop().filter(|stay| stay.ended.is_some()));
    assert_eq!(ended.ending.as_ref().map(|ending| ending.brief.as_str()), Some("cancelled"));
    // A job's part of the utilisation is known while it runs, and kept when it has ended.
    let parts = [client.utilisation("@large").unwrap(), client.utilisation("@small").unwrap()];
    for part in parts {
        let [part] = part.try_into().unwrap();
        assert!(part.utilisation[Metric::Smact].iter().flatten().any(|share| *share > 0.0), "{part:?}");
        assert!(part.since.0 + 1000 >= tenants[0].launched.0 && part.span.get() >= 5.0, "{part:?}");
    }
    assert!(!served.json(&["history", "--search", "LARG", "--json"]).as_array().unwrap().is_empty());
}

/// Usage survives a restart of the manager.
#[test]
fn measurements_of_an_attempt_outlive_the_manager() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[manager.gpus]\nperiod = 5\n");
    let job = lab.submit(lab.train("--workload dlrm_criteo_bs32768 --memory 3000 --seconds 100000"));
    let so_far = |lab: &Lab| {
        let measured = block_on(lab.handle().so_far(job)).unwrap()?;
        let usage = measured.gpus.into_values().next()?;
        (usage.peak_memory.0 > 2500 && usage.energy.joules() > 0.0).then(|| usage.energy.joules())
    };
    let before = until(|| so_far(&lab));
    lab.stop();
    lab.start();
    let after = until(|| block_on(lab.handle().so_far(job)).unwrap()?.gpus.into_values().next());
    assert!(after.peak_memory.0 > 2500 && after.energy.joules() >= before, "{before} J before, {after:?} after");
    block_on(lab.handle().act(vec![job], JobAction::Cancel, "me".to_owned())).unwrap();
    let end = until(|| lab.job(job).attempts[0].end.clone());
    assert!(end.measured.energy.unwrap().0 >= before, "{end:?}");
}
