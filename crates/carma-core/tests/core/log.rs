//! The event log: written, read, replayed.

use carma_core::*;

use crate::lab::{gpu, window};

fn recorded() -> Vec<u8> {
    let mut log = EventLog::new(&Settings::default(), Vec::new()).unwrap();
    let at = Time::from_secs;
    let spec = |id| Box::new(JobSpec { memory: MemoryNeed::known(MiB(9_000)), ..JobSpec::new(JobId(id)) });
    let attempt = |job, number| AttemptId { job: JobId(job), number };
    let mut event = |event, seconds| drop(log.handle(event, at(seconds)).unwrap());
    event(Event::ServerAttached(ServerSpec::new(ServerId(0))), 1);
    event(Event::GpuAttached(DeviceSpec::new(gpu(0), MiB(40_960))), 1);
    event(Event::GpuWindow { device: gpu(0), window: window(0, 0.0, 0.0, 0.0) }, 2);
    event(Event::JobSubmitted(spec(1)), 3);
    event(Event::JobSubmitted(spec(2)), 4);
    event(Event::JobExited { attempt: attempt(1, 1), verdict: Verdict::OutOfMemory }, 5);
    event(Event::JobExited { attempt: attempt(1, 2), verdict: Verdict::Succeeded }, 6);
    assert!(log.handle(Event::JobHeld { job: JobId(9) }, at(7)).is_err());
    log.into_output()
}

#[test]
fn the_log_is_json_lines() {
    insta::assert_snapshot!(String::from_utf8(recorded()).unwrap());
}

#[test]
fn the_log_replays_to_the_same_actions() {
    let (events, scheduler) = replay(&recorded()[..]).unwrap();
    assert_eq!(events, 7);
    assert!(scheduler.job(JobId(1)).unwrap().state.outcome().unwrap().succeeded());
    // One that is still being written replays as far as its lines are whole.
    let whole = recorded();
    assert_eq!(replay(&whole[..whole.len() - 10]).unwrap().0, 6);
}

#[test]
fn a_failed_log_write_returns_the_decision() {
    struct Full;
    impl std::io::Write for Full {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::StorageFull.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut log = EventLog::resume(replay(&recorded()[..]).unwrap().1, Full);
    let event = Event::JobExited { attempt: AttemptId { job: JobId(2), number: 1 }, verdict: Verdict::Succeeded };
    let error = log.handle(event, Time::from_secs(9)).unwrap_err();
    let finished = Action::Finish { job: JobId(2), outcome: Outcome::Succeeded };
    assert!(matches!(error, LogError::Unwritten { actions, .. } if actions == [finished]));
}

#[test]
fn a_log_that_does_not_replay_says_where() {
    let text = String::from_utf8(recorded()).unwrap();
    let replayed = |text: &str| replay(text.as_bytes()).unwrap_err().to_string();
    assert_eq!(replayed(""), "the event log is empty");
    let newer = text.replacen("\"carma_event_log\":1", "\"carma_event_log\":2", 1);
    assert_eq!(replayed(&newer), "the event log has version 2; this program reads version 1");
    assert_eq!(replayed(&text.replacen("\"at\":3.0", "\"at\":\"noon\"", 1)), "line 5 of the event log is malformed");
    assert_eq!(
        replayed(&text.replacen("\"number\":2},\"verdict\"", "\"number\":7},\"verdict\"", 1)),
        "line 8 of the event log is not accepted by this version"
    );
    assert!(
        replayed(&text.replacen("\"reserved\":9000", "\"reserved\":9001", 1))
            .starts_with("line 5 of the event log gives different decisions\nlogged:  [{\"action\":\"launch\"")
    );
}
