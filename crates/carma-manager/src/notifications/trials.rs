//! Trying out: users are told something made up by all their ways, and see which of them work.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::courier::Courier;
use super::message::Message;
use crate::api::{Problem, ProblemKind, Tried};
use crate::request::Owner;

/// Users who try out their ways at the same time, each once.
const MOST: usize = 4;

/// Where the answer to somebody who tries out their ways goes.
pub(super) type Reply = oneshot::Sender<Result<Vec<Tried>, Problem>>;

/// Who is trying out their ways.
#[derive(Debug, Default)]
pub(super) struct Trials(Arc<Mutex<HashSet<u32>>>);

impl Trials {
    /// Sends these messages to a user, all at once and from threads of their own, and answers what became of them.
    pub(super) fn begin(&self, courier: &Arc<Courier>, owner: Owner, messages: Vec<Message>, reply: Reply) {
        let uid = owner.uid;
        if !self.with(|trying| trying.len() < MOST && trying.insert(uid)) {
            let busy = ProblemKind::Limit.because("notifications are being tried out just now: ask again in a minute");
            return drop(reply.send(Err(busy)));
        }
        let (trials, courier) = (Self(Arc::clone(&self.0)), Arc::clone(courier));
        let run = move || {
            let tried = bring(&courier, &owner, messages);
            trials.with(|trying| trying.remove(&uid));
            let _ = reply.send(Ok(tried));
        };
        // Without a thread the reply is dropped, and whoever waits is told that nothing was done.
        if thread::Builder::new().name("trial".to_owned()).spawn(run).is_err() {
            self.with(|trying| trying.remove(&uid));
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashSet<u32>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn bring(courier: &Courier, owner: &Owner, messages: Vec<Message>) -> Vec<Tried> {
    let problems: Vec<Option<String>> = thread::scope(|scope| {
        let each: Vec<_> = messages.iter().map(|message| scope.spawn(move || courier.deliver(owner, message).err())).collect();
        each.into_iter().map(|trial| trial.join().unwrap_or_else(|_| Some("it broke".to_owned()))).collect()
    });
    messages.into_iter().zip(problems).map(|(message, problem)| Tried { by: message.by, problem }).collect()
}
