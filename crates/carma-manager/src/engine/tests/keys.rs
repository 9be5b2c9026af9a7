//! A submission that is repeated with its key creates nothing.

use carma_core::JobId;

use super::lab::Lab;

#[test]
fn a_repeated_key_gets_the_first_answer_also_after_a_restart() {
    let mut lab = Lab::new();
    let (mut first, mut at_once) = (lab.ask_with_key(1000, "k1"), lab.ask_with_key(1000, "k1"));
    lab.settle();
    let job = first.try_recv().unwrap().unwrap().jobs[0];
    assert_eq!(at_once.try_recv().unwrap().unwrap().jobs, [job], "the first was not written yet");
    let again = |lab: &mut Lab, uid, key| {
        let mut answer = lab.ask_with_key(uid, key);
        lab.settle();
        answer.try_recv().unwrap().unwrap().jobs[0]
    };
    assert_eq!(again(&mut lab, 1000, "k1"), job);
    let mut lab = lab.restart(|_| {});
    assert_eq!(again(&mut lab, 1000, "k1"), job);
    assert_eq!([again(&mut lab, 1001, "k1"), again(&mut lab, 1000, "k2")], [JobId(job.0 + 1), JobId(job.0 + 2)]);
}
