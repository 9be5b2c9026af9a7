//! Secrets of jobs leave the manager's files when the job is over.

use std::fs;

use carma_core::Outcome;
use carma_manager::request::HIDDEN;
use carma_manager::store::Store;

use super::lab::until;
use super::up::ManagerProcess;

#[test]
fn secrets_are_removed_from_the_files_of_finished_jobs() {
    let mut up = ManagerProcess::new(None, "");
    let gate = up.folder().join("gate");
    let script = format!("test ${{#API_TOKEN}} = 6 || exit 9; while [ ! -e {} ]; do sleep 0.01; done; exit 7", gate.display());
    let mut request = up.shell_job(&script);
    request.environment.insert("API_TOKEN".to_owned(), "s3cret".to_owned());
    request.retries.failure = 1;
    let job = up.submit(request);
    let order = |number: u32| fs::read_to_string(up.state().join(format!("attempts/{}/{number}/order.json", job.0))).ok();
    assert!(until(|| order(1)).contains("s3cret"), "the job needs it");
    fs::write(&gate, "").unwrap();
    // The second attempt has it too.
    assert_eq!(up.wait_until_done(job).outcome(), Some(&Outcome::Failed { code: 7 }));
    for number in [1, 2] {
        until(|| order(number).filter(|order| order.contains(HIDDEN) && !order.contains("s3cret")));
    }
    until(|| {
        up.kill();
        let store = Store::open(up.state().join("carma.db")).unwrap();
        let request = store.reader().unwrap().request(job).unwrap().unwrap();
        drop(store);
        let hidden = request.environment["API_TOKEN"] == HIDDEN;
        // A manager that was killed before it wrote that continues.
        if !hidden {
            up.start();
        }
        hidden.then_some(())
    });
}
