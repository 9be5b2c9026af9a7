//! A thread for driver calls, so that a hanging call does not block the caller.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::DriverError;

/// A task of a lane; it gets the lane's state and the record of the pending call.
type Job<S> = Box<dyn FnOnce(&mut S, &PendingCall) + Send>;
/// The pending call, its start, and its deadline.
type PendingCall = Mutex<Option<(&'static str, Instant, Instant)>>;

/// Calls in sequence on their own thread, over some state that lives there.
///
/// The caller of a hanging call gives up at the deadline, and no other call starts until it has returned: calls must not pile up behind a
/// sick GPU. The thread ends with the lane, or when the hanging call returns, whichever is later.
#[derive(Debug)]
pub(crate) struct Lane<S> {
    jobs: Sender<Job<S>>,
    pending: Arc<PendingCall>,
}

/// A call without an answer yet.
#[derive(Debug)]
pub(crate) struct Pending<T> {
    call: &'static str,
    answer: Receiver<T>,
    deadline: Duration,
    due: Instant,
    /// A call that has no waiter any more is not started: it may change something.
    _wanted: Arc<()>,
}

impl<S: 'static> Lane<S> {
    /// Begins a lane; its state is made on its thread.
    pub(crate) fn new(name: &str, state: impl FnOnce() -> S + Send + 'static) -> std::io::Result<Self> {
        let (jobs, todo): (Sender<Job<S>>, Receiver<Job<S>>) = channel();
        let pending: Arc<PendingCall> = Arc::default();
        let record = Arc::clone(&pending);
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut state = state();
            for job in todo {
                job(&mut state, &record);
                *held(&record) = None;
            }
        })?;
        Ok(Self { jobs, pending })
    }

    /// Begins a call.
    pub(crate) fn begin<T: Send + 'static>(
        &self,
        call: &'static str,
        deadline: Duration,
        act: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<Pending<T>, DriverError> {
        if let Some((call, began, due)) = *held(&self.pending)
            && Instant::now() >= due
        {
            return Err(DriverError::Hanging { call, since: began.elapsed() });
        }
        let due = Instant::now() + deadline;
        let (sender, answer) = channel();
        let wanted = Arc::new(());
        let still_wanted: Weak<()> = Arc::downgrade(&wanted);
        let job: Job<S> = Box::new(move |state, pending| {
            if still_wanted.strong_count() > 0 {
                *held(pending) = Some((call, Instant::now(), due));
                let _ = sender.send(act(state));
            }
        });
        self.jobs.send(job).map_err(|_| DriverError::Hanging { call, since: Duration::ZERO })?;
        Ok(Pending { call, answer, deadline, due, _wanted: wanted })
    }

    /// Makes a call, and waits for its answer until the deadline.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: &'static str,
        deadline: Duration,
        act: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<T, DriverError> {
        self.begin(call, deadline, act)?.wait()
    }
}

impl<T> Pending<T> {
    /// The answer, if it arrives before the deadline, which runs from the call's beginning.
    pub(crate) fn wait(self) -> Result<T, DriverError> {
        let call = self.call;
        self.answer.recv_timeout(self.due.saturating_duration_since(Instant::now())).map_err(|error| match error {
            RecvTimeoutError::Timeout => DriverError::TimedOut { call, after: self.deadline },
            RecvTimeoutError::Disconnected => DriverError::Hanging { call, since: Duration::ZERO },
        })
    }
}

/// The value of a mutex. It is intact even if its holder panicked: we never change it in several steps.
pub(crate) fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn a_hanging_call_costs_its_deadline_once() {
        let lane = Lane::new("test", || 0).unwrap();
        let (release, wait) = channel::<()>();
        let hung = lane.call("hang", Duration::from_millis(50), move |_| wait.recv());
        assert!(matches!(hung, Err(DriverError::TimedOut { call: "hang", .. })));
        // A refused or abandoned call is never made.
        let refused = lane.call("next", LONG, |count| *count += 100);
        assert!(matches!(refused, Err(DriverError::Hanging { call: "hang", .. })));
        release.send(()).unwrap();
        let answer = loop {
            match lane.call("again", LONG, |count| {
                *count += 1;
                *count
            }) {
                Err(DriverError::Hanging { .. }) => thread::yield_now(),
                answer => break answer.unwrap(),
            }
        };
        assert_eq!(answer, 1);
    }

    #[test]
    fn a_call_given_up_before_it_began_is_never_made() {
        let lane = Lane::new("test", || 0).unwrap();
        let (release, wait) = channel::<()>();
        let first = lane.begin("first", LONG, move |_| wait.recv()).unwrap();
        drop(lane.begin("second", LONG, |count| *count += 100).unwrap());
        release.send(()).unwrap();
        first.wait().unwrap().unwrap();
        assert_eq!(lane.call("third", LONG, |count| *count).unwrap(), 0);
    }

    #[test]
    fn answers_come_back_in_order() {
        let lane = Lane::new("test", Vec::new).unwrap();
        for number in 0..100 {
            let length = lane.call("push", LONG, move |list: &mut Vec<u32>| {
                list.push(number);
                list.len()
            });
            assert_eq!(length.unwrap(), number as usize + 1);
        }
    }
}
