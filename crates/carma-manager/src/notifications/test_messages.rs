//! Test messages: sent over all channels of a user, with the results.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use tokio::sync::oneshot;

use super::message::Message;
use super::sender::MessageSender;
use crate::api::{ChannelTest, Problem, ProblemKind};
use crate::request::Owner;

/// Users whose test messages are in flight at the same time, each once.
const MAX_USERS: usize = 4;

/// Where the results go.
pub(super) type Reply = oneshot::Sender<Result<Vec<ChannelTest>, Problem>>;

/// The users whose test messages are in flight.
#[derive(Debug, Default)]
pub(super) struct TestMessages(Arc<Mutex<HashSet<u32>>>);

impl TestMessages {
    /// Sends messages to a user, each from its own thread, and replies with the results.
    pub(super) fn begin(&self, sender: &Arc<MessageSender>, owner: Owner, messages: Vec<Message>, reply: Reply) {
        let uid = owner.uid;
        if !self.with(|users| users.len() < MAX_USERS && users.insert(uid)) {
            let busy = ProblemKind::Limit.because("a test of notifications is running: try again in a minute");
            return drop(reply.send(Err(busy)));
        }
        let (tests, sender) = (Self(Arc::clone(&self.0)), Arc::clone(sender));
        let run = move || {
            let tried = send_all(&sender, &owner, messages);
            tests.with(|users| users.remove(&uid));
            let _ = reply.send(Ok(tried));
        };
        // Without a thread the reply is dropped, which the caller sees.
        if thread::Builder::new().name("message".to_owned()).spawn(run).is_err() {
            self.with(|users| users.remove(&uid));
        }
    }

    fn with<T>(&self, act: impl FnOnce(&mut HashSet<u32>) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn send_all(sender: &MessageSender, owner: &Owner, messages: Vec<Message>) -> Vec<ChannelTest> {
    let problems: Vec<Option<String>> = thread::scope(|scope| {
        let each: Vec<_> = messages.iter().map(|message| scope.spawn(move || sender.deliver(owner, message).err())).collect();
        each.into_iter().map(|message| message.join().unwrap_or_else(|_| Some("it broke".to_owned()))).collect()
    });
    messages.into_iter().zip(problems).map(|(message, problem)| ChannelTest { by: message.by, problem }).collect()
}
