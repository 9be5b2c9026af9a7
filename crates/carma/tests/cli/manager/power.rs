//! Power budgets and limits, and jobs that hold a GPU and do not use it, on emulated GPUs.

use carma_core::{JobId, MiB, Outcome, State, Watts};
use carma_emu::fault::{CallAnswer, Fault};
use carma_gpu::{DEADLINE, Driver, PowerLimitChange};
use carma_manager::api::QueueQuery;
use carma_manager::places::Places;
use carma_manager::store::{Change, MachineChange, Store};
use carma_testing::need;

use super::lab::{Lab, block_on, program, until};

const SAMPLING: &str = "[window]\nlength = 10\nperiod = 2\n[manager.gpus]\nperiod = 2\n";

fn limit(lab: &Lab) -> Watts {
    let driver = Driver::open(Some(&lab.machine.library()), DEADLINE).unwrap();
    driver.inventory().unwrap().gpus[0].power_limit.unwrap()
}

fn why(lab: &Lab, job: JobId) -> String {
    block_on(lab.handle().why(job)).unwrap().text
}

#[test]
fn a_limit_is_set_and_put_back() {
    need!(carma_testing::root());
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[power]\ncap = 250\n");
    until(|| (limit(&lab) == Watts(250.0)).then_some(()));
    lab.stop();
    assert_eq!(limit(&lab), Watts(400.0));
}

#[test]
fn a_limit_that_could_not_be_set_is_not_put_back_later() {
    let mut lab = Lab::new("1xA100-40GB", 60.0, "[power]\ncap = 250\n");
    lab.stop();
    let answer = CallAnswer::Fails("NO_PERMISSION".parse().unwrap());
    let fault = Fault::Call { gpu: None, call: Some("nvmlDeviceSetPowerManagementLimit".to_owned()), answer };
    lab.machine.with(|state| fault.inject(state)).unwrap().unwrap();
    lab.start();
    let message = |words: &str| lab.reader().events_after(0, 100).unwrap().iter().any(|stored| stored.text.contains(words));
    until(|| message("power limit 250").then_some(()));
    assert_eq!(lab.reader().load().unwrap().machine_changes, []);
}

#[test]
fn after_a_crash_the_power_limit_in_force_is_restored() {
    need!(carma_testing::root());
    let mut lab = Lab::new("1xA100-40GB", 60.0, "");
    lab.stop();
    let driver = Driver::open(Some(&lab.machine.library()), DEADLINE).unwrap();
    let gpu = driver.inventory().unwrap().gpus.remove(0).uuid;
    let made = PowerLimitChange::plan(&driver, &gpu, Watts(250.0), None).unwrap();
    made.make(&driver).unwrap();
    let planned = [200.0, 300.0].map(|limit| PowerLimitChange::plan(&driver, &gpu, Watts(limit), Some(&made)).unwrap());
    let rows: Vec<Change> =
        planned.into_iter().chain([made]).map(|limit| Change::MachineChanged(MachineChange::PowerLimit(limit))).collect();
    until(|| Store::open(Places::at(lab.folder()).database()).ok()).write(rows).wait().unwrap();
    lab.start();
    until(|| (limit(&lab) == Watts(400.0)).then_some(()));
    until(|| lab.reader().load().unwrap().machine_changes.is_empty().then_some(()));
}

#[test]
fn a_power_budget_delays_a_job_until_there_are_watts_for_it() {
    let lab = Lab::new("2xA100-40GB", 120.0, &format!("[power]\nbudget = 250\n{SAMPLING}"));
    let train = || lab.train("--workload dlrm_criteo_bs32768 --memory 3000 --seconds 300");
    let (first, second) = (lab.submit(train()), lab.submit(train()));
    let reason = why(&lab, second);
    assert!(reason.contains("W (budget 250 W)"), "{reason}");
    assert_eq!((lab.outcome(first), lab.outcome(second)), (Outcome::Succeeded, Outcome::Succeeded));
    let ended = lab.job(first).attempts[0].end.clone().unwrap().at;
    assert!(lab.job(second).attempts[0].launched >= ended);
}

#[test]
fn an_idle_job_is_flagged_and_its_gpu_is_lent() {
    let rules = format!("[idle_jobs]\nbelow = 0.05\nflag_after = 60\nlend_after = 240\n{SAMPLING}");
    let lab = Lab::new("1xA100-40GB", 60.0, &rules);
    let mut holder = lab.shell(&format!("exec {} emu occupy --gpu 0 --memory 9000MiB", program().display()));
    holder.resources.exclusive = true;
    let holder = lab.submit(holder);
    until(|| lab.job(holder).job.job.state.active().is_some().then_some(()));
    let guest = lab.submit(lab.train("--workload dlrm_criteo_bs32768 --memory 3000 --seconds 60"));
    let lent = || lab.job(holder).job.job.state.active()?.idle.filter(|idle| idle.lent);
    until(lent);
    assert_eq!(lab.outcome(guest), Outcome::Succeeded, "the guest came when the GPU was lent");
    let idle_events = lab.job(holder).events.iter().filter(|stored| stored.event.event.kind() == "idle").count();
    assert!(idle_events >= 2, "flagged, and lent");
}

#[test]
fn only_the_idle_one_of_two_jobs_is_flagged() {
    let rules = format!("[idle_jobs]\nflag_after = 120\n[gate]\nobserve = 1\n[screen]\nenabled = false\n{SAMPLING}");
    let lab = Lab::new("1xA100-40GB", 60.0, &rules);
    let (stop, occupy) = (lab.folder().join("stop"), format!("{} emu occupy --gpu 0 --memory 4000MiB", program().display()));
    let script =
        format!("{occupy} --smact 0.3 & while ! test -e {stop}; do sleep 0.02; done; kill $!; wait; exec {occupy}", stop = stop.display());
    let request = |script: &str| {
        let mut request = lab.shell(script);
        request.resources.memory = Some(MiB(6000));
        request
    };
    let [stops, works] = [script, format!("exec {occupy} --smact 0.3")].map(|script| lab.submit(request(&script)));
    for job in [stops, works] {
        until(|| matches!(lab.job(job).job.job.state, State::Running(_)).then_some(()));
    }
    let idle = |job: JobId| lab.job(job).job.job.state.active().unwrap().idle;
    assert_eq!((idle(stops), idle(works)), (None, None));
    std::fs::write(&stop, "").unwrap();
    until(|| idle(stops));
    assert_eq!(idle(works), None, "its neighbour works");
    let rows = block_on(lab.handle().queue(QueueQuery::default())).unwrap().jobs;
    let shown = |job: JobId| rows.iter().find(|row| row.id == job).and_then(|row| row.reason.clone()).unwrap_or_default();
    assert!(shown(stops).starts_with("idle for ") && shown(works).is_empty(), "{} and {}", shown(stops), shown(works));
}
