//! A thread that makes driver calls for us, so that one that hangs does not take us with it.

use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::error::DriverError;

type Job<S> = Box<dyn FnOnce(&mut S) + Send>;

/// Calls made one after the other on a thread of their own, over some state that lives there.
///
/// A call that hangs is given up by its caller at the deadline, and no other is made until it has come back: calls must not pile up behind a sick
/// GPU. The thread ends with the lane, or when the hanging call comes back, whichever is later.
#[derive(Debug)]
pub(crate) struct Lane<S> {
    jobs: Mutex<Sender<Job<S>>>,
    /// What is being called, and since when.
    under_way: Arc<Mutex<Option<(&'static str, Instant)>>>,
}

impl<S: 'static> Lane<S> {
    /// Begins a lane; its state is made on its thread.
    pub(crate) fn new(name: &str, state: impl FnOnce() -> S + Send + 'static) -> std::io::Result<Self> {
        let (jobs, todo): (Sender<Job<S>>, Receiver<Job<S>>) = channel();
        thread::Builder::new().name(name.to_owned()).spawn(move || {
            let mut state = state();
            for job in todo {
                job(&mut state);
            }
        })?;
        Ok(Self { jobs: Mutex::new(jobs), under_way: Arc::default() })
    }

    /// Makes a call, and waits for its answer until the deadline.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        call: &'static str,
        deadline: Duration,
        act: impl FnOnce(&mut S) -> T + Send + 'static,
    ) -> Result<T, DriverError> {
        // Callers of one lane take turns; whoever waits for the other's deadline has not been hanging itself.
        let jobs = held(&self.jobs);
        if let Some((call, since)) = *held(&self.under_way) {
            return Err(DriverError::Hanging { call, since: since.elapsed() });
        }
        let (answer, answered) = channel();
        *held(&self.under_way) = Some((call, Instant::now()));
        let under_way = Arc::clone(&self.under_way);
        let gone = || DriverError::Hanging { call, since: Duration::ZERO };
        let job: Job<S> = Box::new(move |state| {
            let result = act(state);
            *held(&under_way) = None;
            // The caller may have given up.
            let _ = answer.send(result);
        });
        jobs.send(job).map_err(|_| gone())?;
        answered.recv_timeout(deadline).map_err(|error| match error {
            RecvTimeoutError::Timeout => DriverError::TimedOut { call, after: deadline },
            RecvTimeoutError::Disconnected => gone(),
        })
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_hangs_costs_its_deadline_once_and_is_forgotten_when_it_returns() {
        let lane = Lane::new("test", || 0).unwrap();
        let deadline = Duration::from_millis(50);
        let (release, wait) = channel::<()>();
        let began = Instant::now();
        let hung = lane.call("hang", deadline, move |_| wait.recv());
        assert!(matches!(hung, Err(DriverError::TimedOut { call: "hang", .. })));
        // Nobody waits for it again.
        let refused = lane.call("next", Duration::from_secs(3600), |_| ());
        assert!(matches!(refused, Err(DriverError::Hanging { call: "hang", .. })));
        assert!(began.elapsed() < Duration::from_secs(60));
        release.send(()).unwrap();
        let answer = loop {
            match lane.call("again", Duration::from_secs(60), |count| {
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
    fn answers_come_back_in_order() {
        let lane = Lane::new("test", Vec::new).unwrap();
        for number in 0..100 {
            let length = lane.call("push", Duration::from_secs(60), move |list: &mut Vec<u32>| {
                list.push(number);
                list.len()
            });
            assert_eq!(length.unwrap(), number as usize + 1);
        }
    }
}
