//! Fair share: what users have had of the GPUs is known, also to the next manager.

use carma_core::Outcome;
use carma_manager::api::ShareRow;

use super::lab::{Lab, block_on, me};

fn shares(lab: &Lab) -> Vec<ShareRow> {
    block_on(lab.handle().shares()).unwrap()
}

#[test]
fn what_a_user_has_had_is_known_after_a_restart() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[queue]\nfair_share = true\n");
    assert_eq!(shares(&lab), []);
    let job = lab.submit(lab.train("--workload efficientnet_cifar100_bs128_20e --memory 5GiB --seconds 60"));
    assert_eq!(lab.outcome(job), Outcome::Succeeded);
    let [before] = shares(&lab)[..] else { panic!("one user had something") };
    assert_eq!((before.uid, before.gid), (me().uid, me().gid));
    assert!(before.gpu_seconds > 1.0 && before.gpus == 0.0 && before.committed == 0.0, "{before:?}");
    lab.stop();
    lab.start();
    let [after] = shares(&lab)[..] else { panic!("it is forgotten") };
    // The older counts less, by half in a week.
    for (before, after) in [(before.gpu_seconds, after.gpu_seconds), (before.standing, after.standing)] {
        assert!((0.9..=1.0).contains(&(after / before)), "{before}, then {after}");
    }
    assert_eq!((after.uid, after.gid), (before.uid, before.gid));
}
