//! The sizes of logs.

use carma_core::*;
use carma_manager::store::*;

use super::lab::*;

#[test]
fn the_logs_of_each_user_are_counted_until_they_are_removed() {
    let lab = Lab::new();
    let store = lab.open();
    let jobs: Vec<JobId> = (0..3).map(|_| store.next_jobs(1)).collect();
    for (job, owner) in jobs.iter().zip([alice(), alice(), bob()]) {
        // The first job ends last.
        let at = UnixMillis(NOW.0 + 10 - job.0);
        let accepted = Change::JobAccepted(Box::new(stored(*job, owner, None)));
        store.write([accepted, started(*job, 1), attempt_ended(*job, 1, at, 1.0)]).wait().unwrap();
    }
    let reader = store.reader().unwrap();
    assert_eq!(reader.log_bytes().unwrap(), [(1000, 3000), (1001, 3000)]);
    let attempt = |job: usize| AttemptId { job: jobs[job], number: 1 };
    assert_eq!(reader.oldest_logs(1000, 9).unwrap(), [(attempt(1), 2000), (attempt(0), 1000)]);
    store.write([Change::LogsRemoved(vec![attempt(1)])]).wait().unwrap();
    assert_eq!(reader.log_bytes().unwrap(), [(1000, 1000), (1001, 3000)]);
}
