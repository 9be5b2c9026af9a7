//! Fair share: the use of each user survives a restart, and users with less use go first.

use std::fs;

use carma_core::{JobId, Outcome};
use carma_manager::api::ShareRow;
use carma_testing::need;

use super::lab::{Lab, block_on, me, until};
use super::security::{ADA, BOB, SharedManager};

fn shares(lab: &Lab) -> Vec<ShareRow> {
    block_on(lab.handle().shares()).unwrap()
}

#[test]
fn fair_share_usage_survives_a_restart() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[queue]\nfair_share = true\n");
    assert_eq!(shares(&lab), []);
    let job = lab.submit(lab.train("--workload efficientnet_cifar100_bs128_20e --memory 5GiB --seconds 60"));
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let [before] = &shares(&lab)[..] else { panic!("one user had something") };
    assert_eq!((before.uid, before.gid), (me().uid, me().gid));
    assert!(before.gpu_seconds > 1.0 && before.gpus == 0.0 && before.committed == 0.0, "{before:?}");
    lab.stop();
    lab.start();
    let [after] = &shares(&lab)[..] else { panic!("it is forgotten") };
    // The older counts less, by half in a week.
    for (before, after) in [(before.gpu_seconds, after.gpu_seconds), (before.usage_per_share, after.usage_per_share)] {
        assert!((0.9..=1.0).contains(&(after / before)), "{before}, then {after}");
    }
    assert_eq!((after.uid, after.gid), (before.uid, before.gid));
}

#[test]
fn a_user_with_few_jobs_starts_before_the_rest_of_a_user_with_many() {
    let configuration = "policy = \"exclusive\"\n[queue]\nfair_share = true\n";
    let manager = need!(SharedManager::start_with(Some(("1xA100-40GB", 60.0)), configuration));
    let shares = || serde_json::from_slice::<Vec<ShareRow>>(&manager.run_as(BOB, &["shares", "--json"]).stdout).unwrap();
    let first = manager.submits_with(ADA, 1, &["--", "sh", "-c", "until test -e over; do sleep 0.1; done"]);
    // It uses no GPU, and is launched all the same.
    until(|| manager.0.client().job(&first.0.to_string()).unwrap().state.active().map(drop));
    let many = [(); 3].map(|()| manager.submits_with(ADA, 1, &["--", "true"]));
    let one = manager.submits_with(BOB, 1, &["--", "true"]);
    // Running jobs count up to now.
    until(|| shares().iter().find(|share| share.uid == ADA && share.gpu_seconds > 1.0).map(drop));
    assert_eq!(shares().iter().map(|share| share.uid).collect::<Vec<_>>(), [BOB, ADA], "who has had least is next");
    let shown = String::from_utf8(manager.run_as(BOB, &["shares"]).stdout).unwrap();
    assert_eq!(shown.lines().count(), 3, "a line for each of them: {shown}");
    fs::write(manager.shared_folder().join("over"), "").unwrap();
    let launched = |job: JobId| manager.0.wait_until_done(job).attempts[0].launched;
    let before = launched(one);
    assert!(many.into_iter().all(|job| before < launched(job)));
}
