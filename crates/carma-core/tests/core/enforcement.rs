//! Memory limits of the driver: what a launch gets, when a borrower is stopped, and what follows.

use carma_core::*;

use crate::lab::{A100, Lab, gpu, job, known, window};

/// One GPU whose driver can limit memory, with first fit by reservations.
fn lab(memory: Option<Enforcement>) -> Lab {
    let base = Config::from(Preset::Standard);
    let enforce = EnforceConfig { memory, ..base.enforce };
    let mut lab = Lab::new(Config { mapping: "ff".parse().unwrap(), enforce, ..base }, 0);
    lab.attach(DeviceSpec { limits_memory: true, ..DeviceSpec::new(gpu(0), A100) });
    lab
}

fn granted(lab: &Lab, id: u64) -> Granted {
    lab.state(id).active().unwrap().placement.devices[0]
}

fn estimated(id: u64, upper: u64) -> JobSpec {
    JobSpec { memory: MemoryNeed::estimated(MiB(upper / 2), MiB(upper)), ..job(id) }
}

/// Shows what each job uses on the GPU, and what is in use there.
fn uses(lab: &mut Lab, each: &[(u64, u64)]) -> Vec<Action> {
    let process = |(id, memory): &(u64, u64)| ProcessUse { owner: Owner::Attempt(lab.attempt(*id)), memory: Some(MiB(*memory)) };
    let processes = each.iter().map(process).collect();
    let used = each.iter().map(|(_, memory)| memory).sum();
    lab.event(Event::GpuWindow { device: gpu(0), window: window(used, 0.1, 0.1, 0.1) });
    lab.event(Event::ProcessesSeen { device: gpu(0), processes })
}

fn stopped(actions: &[Action]) -> Option<(u64, Signal, Borrowing)> {
    actions.iter().find_map(|action| match action {
        Action::Signal { attempt, signal, reason: StopReason::Borrows(borrowing) } => Some((attempt.job.0, *signal, *borrowing)),
        _ => None,
    })
}

/// Launches these jobs, all on the GPU.
fn launch(lab: &mut Lab, jobs: impl IntoIterator<Item = JobSpec>) {
    for spec in jobs {
        let id = spec.id.0;
        lab.submit(spec);
        lab.settle(id, 0);
    }
}

#[test]
fn a_launch_is_limited_as_strictly_as_configured() {
    let limits = |memory, spec: JobSpec| {
        let mut lab = lab(memory);
        let id = spec.id.0;
        lab.submit(spec);
        granted(&lab, id).limits
    };
    let whole = Limits::Driver { memory: A100 };
    assert_eq!(limits(None, known(1, 9_000)), whole, "soft is the default: it may borrow");
    assert_eq!(limits(Some(Enforcement::Soft), estimated(1, 9_000)), whole);
    assert_eq!(limits(Some(Enforcement::Off), known(1, 9_000)), Limits::Streams);
    assert_eq!(limits(Some(Enforcement::Hard), known(1, 9_000)), Limits::Driver { memory: MiB(9_000) });
    assert_eq!(limits(Some(Enforcement::Hard), estimated(1, 9_000)), Limits::Driver { memory: MiB(9_000) });
    assert_eq!(limits(Some(Enforcement::Hard), job(1)), whole, "nothing is known about it: what is reserved is a guess");
    let mut without =
        Lab::new(Config { enforce: EnforceConfig { memory: Some(Enforcement::Hard), ..Default::default() }, ..Config::default() }, 1);
    without.submit(known(1, 9_000));
    assert_eq!(granted(&without, 1).limits, Limits::Streams, "the driver cannot");
}

#[test]
fn a_limited_job_gives_back_unused_memory_with_its_guarantee() {
    let mut lab = lab(Some(Enforcement::Hard));
    lab.event(Event::ConfigurationChanged(Box::new(Settings {
        policy: Some("ff".to_owned()),
        admission: Some(AdmissionSettings { trim_after: Some(100.0), ..Default::default() }),
        enforce: Some(EnforceSettings { memory: Some(Enforcement::Hard), ..Default::default() }),
        ..Default::default()
    })));
    // Twice as much as expected: without a limit, such an estimate is not trimmed.
    lab.submit(estimated(1, 20_000));
    lab.settle(1, 8_000);
    let limits = |lab: &Lab| lab.scheduler.fleet().device(gpu(0)).unwrap().tenants[0].memory_limits();
    assert_eq!(limits(&lab), Some(DriverLimits { soft: MiB(20_000), hard: MiB(20_000) }));
    lab.wait(200);
    let trimmed = MiB(8_000 + 800 + 512);
    assert_eq!(limits(&lab), Some(DriverLimits { soft: trimmed, hard: MiB(20_000) }), "it may still have what it was launched with");
    lab.event(Event::NotLimited { attempt: lab.attempt(1), device: gpu(0) });
    assert_eq!((limits(&lab), granted(&lab, 1).limits), (None, Limits::Streams));
}

#[test]
fn a_borrower_that_can_checkpoint_stops_when_others_lack_reserved_memory() {
    let mut lab = lab(None);
    launch(&mut lab, [known(1, 15_000), JobSpec { may_checkpoint: true, ..known(2, 5_000) }, known(3, 15_000)]);
    assert_eq!(stopped(&uses(&mut lab, &[(1, 14_000), (2, 10_000), (3, 0)])), None, "16,960 MiB are free, and 16,000 reserved");
    let actions = uses(&mut lab, &[(1, 14_000), (2, 20_000), (3, 0)]);
    let borrowing = Borrowing { reserved: MiB(5_000), borrowed: MiB(15_000), short: MiB(16_000 - 6_960) };
    assert_eq!(stopped(&actions), Some((2, Signal::Checkpoint, borrowing)));
    assert_eq!(
        borrowing.to_string(),
        "used 14.6 GiB more than the 4.9 GiB reserved for it, and other jobs of the GPU were 8.8 GiB short of their reserved memory"
    );
    assert_eq!(stopped(&uses(&mut lab, &[(1, 14_000), (2, 21_000), (3, 0)])), None, "it is told once");
    let actions = lab.exit(2, Verdict::Failed { code: 143 });
    let requeued = Action::Requeue { job: JobId(2), floor: MiB(21_000 + 2_048), whole_gpu: false, reason: RequeueReason::Borrowed };
    assert!(actions.contains(&requeued), "it climbs from the most that it used: {actions:?}");
    assert_eq!(lab.state(2).name(), "recovering");
}

#[test]
fn a_borrower_that_cannot_checkpoint_runs_until_the_gpu_is_full() {
    let mut lab = lab(None);
    launch(&mut lab, [known(1, 15_000), known(2, 5_000), known(3, 5_000)]);
    assert_eq!(stopped(&uses(&mut lab, &[(1, 0), (2, 20_000), (3, 12_000)])), None);
    let (who, signal, _) = stopped(&uses(&mut lab, &[(1, 0), (2, 20_000), (3, 20_500)])).unwrap();
    assert_eq!((who, signal), (3, Signal::Terminate), "the one that borrows most");
}

#[test]
fn no_borrower_is_stopped_while_no_job_lacks_memory() {
    let mut alone = lab(None);
    launch(&mut alone, [known(1, 5_000)]);
    assert_eq!(stopped(&uses(&mut alone, &[(1, 40_900)])), None, "it has the GPU for itself");
    let mut off = lab(Some(Enforcement::Off));
    launch(&mut off, [known(1, 15_000), JobSpec { may_checkpoint: true, ..known(2, 5_000) }]);
    assert_eq!(stopped(&uses(&mut off, &[(1, 0), (2, 40_900)])), None, "without limits the driver evicts no job");
    let mut left = lab(None);
    let settings = EnforceSettings { stop_borrowers: Some(false), ..Default::default() };
    left.event(Event::ConfigurationChanged(Box::new(Settings {
        policy: Some("ff".to_owned()),
        enforce: Some(settings),
        ..Default::default()
    })));
    launch(&mut left, [known(1, 15_000), JobSpec { may_checkpoint: true, ..known(2, 5_000) }]);
    assert_eq!(stopped(&uses(&mut left, &[(1, 0), (2, 40_900)])), None, "the driver does it");
}
