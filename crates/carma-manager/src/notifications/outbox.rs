//! Messages that wait: events of a short time go into one message, and the rate per recipient is limited.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::message::Message;
use crate::api::{Channel, NotifiedEvent};
use crate::request::Owner;

/// How often sending a message is tried.
const TRIES: u32 = 3;
/// The most events that one message holds; more are only counted.
const MAX_KEPT: usize = 1000;
/// Messages in flight at the same time: of one user, so that a slow server delays no other user, and of all.
const MAX_PER_USER: usize = 2;
const MAX_TOTAL: usize = 32;

/// The rate at which messages are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct RateLimit {
    /// Events within this time go into one message.
    pub(super) gather: Duration,
    /// The shortest time between two messages to one recipient.
    pub(super) every: Duration,
}

impl RateLimit {
    /// The wait before the next try; it grows with every failure.
    fn pause(self, failures: u32) -> Duration {
        self.every.mul_f64(f64::from(failures * failures) / f64::from(TRIES + 1))
    }
}

/// A user and one of their channels.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Recipient {
    pub(super) uid: u32,
    pub(super) by: Channel,
}

/// One message, and the numbers of its first and last event.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Batch {
    pub(super) owner: Owner,
    pub(super) message: Message,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Batch {
    /// Adds later events.
    fn add(&mut self, later: Self) {
        let room = MAX_KEPT.saturating_sub(self.message.happened.len());
        self.message.happened.extend(later.message.happened.into_iter().take(room));
        later.message.counts.into_iter().for_each(|(occasion, count)| *self.message.counts.entry(occasion).or_default() += count);
        self.last = self.last.max(later.last);
    }

    /// The recipient.
    pub(super) fn recipient(&self) -> Recipient {
        Recipient { uid: self.owner.uid, by: self.message.by.clone() }
    }
}

/// The state of one recipient.
#[derive(Debug, Default)]
struct Delivery {
    /// The next message, the time of its first and of its last event.
    waiting: Option<(Batch, Instant, Instant)>,
    /// The first event of the message in flight.
    sending: Option<u64>,
    /// When the last message was sent or tried.
    tried: Option<Instant>,
    failures: u32,
}

impl Delivery {
    /// When the next message is due, if none is in flight.
    fn due(&self, limit: RateLimit) -> Option<Instant> {
        let (_, since, latest) = self.waiting.as_ref().filter(|_| self.sending.is_none())?;
        // Events may keep coming, so the wait is bounded.
        let gathered = (*latest + limit.gather).min(*since + limit.every.max(limit.gather));
        let pause = if self.failures > 0 { limit.pause(self.failures) } else { limit.every };
        Some(self.tried.map_or(gathered, |tried| (tried + pause).max(gathered)))
    }

    fn is_idle(&self, limit: RateLimit, now: Instant) -> bool {
        self.waiting.is_none() && self.sending.is_none() && self.tried.is_none_or(|tried| tried + limit.every <= now)
    }
}

/// All messages that wait or are in flight.
#[derive(Debug)]
pub(super) struct Outbox {
    limit: RateLimit,
    recipients: BTreeMap<Recipient, Delivery>,
}

impl Outbox {
    pub(super) fn new(limit: RateLimit) -> Self {
        Self { limit, recipients: BTreeMap::new() }
    }

    /// Adds an event for a recipient.
    pub(super) fn add(&mut self, by: Channel, owner: &Owner, server: &str, sequence: u64, happened: NotifiedEvent, now: Instant) {
        let counts = BTreeMap::from([(happened.occasion, 1)]);
        let message = Message { by, server: server.to_owned(), happened: vec![happened], counts };
        let batch = Batch { owner: owner.clone(), message, first: sequence, last: sequence };
        let delivery = self.recipients.entry(batch.recipient()).or_default();
        match &mut delivery.waiting {
            Some((earlier, _, latest)) => {
                earlier.add(batch);
                *latest = now;
            }
            None => delivery.waiting = Some((batch, now, now)),
        }
    }

    /// When the next message is due.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.ready().filter_map(|delivery| delivery.due(self.limit)).min()
    }

    /// Takes a message that is due.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Batch> {
        self.recipients.retain(|_, delivery| !delivery.is_idle(self.limit, now));
        let due = self.ready_recipients().filter_map(|(recipient, delivery)| Some((delivery.due(self.limit)?, recipient)));
        let (_, recipient) = due.filter(|(due, _)| *due <= now).min()?;
        let delivery = self.recipients.get_mut(&recipient.clone())?;
        let (batch, ..) = delivery.waiting.take()?;
        delivery.sending = Some(batch.first);
        Some(batch)
    }

    /// A message was sent.
    pub(super) fn sent(&mut self, batch: &Batch, now: Instant) {
        if let Some(delivery) = self.recipients.get_mut(&batch.recipient()) {
            (delivery.sending, delivery.tried, delivery.failures) = (None, Some(now), 0);
        }
    }

    /// A message could not be sent: it is tried again together with later events, or returned after the last try.
    pub(super) fn failed(&mut self, mut batch: Batch, now: Instant) -> Option<Batch> {
        // The recipient does not exist any more.
        let delivery = self.recipients.get_mut(&batch.recipient())?;
        (delivery.sending, delivery.tried) = (None, Some(now));
        delivery.failures += 1;
        if delivery.failures >= TRIES {
            delivery.failures = 0;
            return Some(batch);
        }
        if let Some((later, ..)) = delivery.waiting.take() {
            batch.add(later);
        }
        delivery.waiting = Some((batch, now, now));
        None
    }

    /// Removes recipients.
    pub(super) fn retain(&mut self, wanted: impl Fn(&Recipient) -> bool) {
        self.recipients.retain(|recipient, _| wanted(recipient));
    }

    /// The first event that is not sent yet.
    pub(super) fn first(&self) -> Option<u64> {
        let first =
            |delivery: &Delivery| delivery.sending.into_iter().chain(delivery.waiting.as_ref().map(|(batch, ..)| batch.first)).min();
        self.recipients.values().filter_map(first).min()
    }

    /// How many messages are in flight.
    pub(super) fn in_flight(&self) -> usize {
        self.recipients.values().filter(|delivery| delivery.sending.is_some()).count()
    }

    /// Recipients whose users have room for another message in flight.
    fn ready_recipients(&self) -> impl Iterator<Item = (&Recipient, &Delivery)> {
        let mut sending: BTreeMap<u32, usize> = BTreeMap::new();
        self.recipients
            .iter()
            .filter(|(_, delivery)| delivery.sending.is_some())
            .for_each(|(recipient, _)| *sending.entry(recipient.uid).or_default() += 1);
        let full = sending.values().sum::<usize>() >= MAX_TOTAL;
        self.recipients.iter().filter(move |(recipient, _)| !full && sending.get(&recipient.uid).is_none_or(|count| *count < MAX_PER_USER))
    }

    fn ready(&self) -> impl Iterator<Item = &Delivery> {
        self.ready_recipients().map(|(_, delivery)| delivery)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::happened;
    use super::*;
    use crate::api::Occasion;

    const LIMIT: RateLimit = RateLimit { gather: Duration::from_secs(2), every: Duration::from_secs(30) };

    fn ada() -> Owner {
        Owner { uid: 7, gid: 7, name: "ada".to_owned() }
    }

    struct Lab {
        outbox: Outbox,
        start: Instant,
    }

    impl Lab {
        fn new() -> Self {
            Self { outbox: Outbox::new(LIMIT), start: Instant::now() }
        }

        fn at(&self, seconds: f64) -> Instant {
            self.start + Duration::from_secs_f64(seconds)
        }

        fn happens(&mut self, sequence: u64, seconds: f64) {
            let now = self.at(seconds);
            self.outbox.add(Channel::Desktop, &ada(), "gpu1", sequence, happened(Occasion::Done, sequence, "x"), now);
        }

        fn due(&self) -> Option<f64> {
            self.outbox.next_due().map(|due| (due - self.start).as_secs_f64())
        }

        fn send(&mut self, seconds: f64) -> Batch {
            let now = self.at(seconds);
            self.outbox.take_due(now).unwrap()
        }
    }

    #[test]
    fn many_events_are_one_message_and_the_next_comes_later() {
        let mut lab = Lab::new();
        (0..200).for_each(|number| lab.happens(number + 1, number as f64 / 100.0));
        assert_eq!(lab.due(), Some(3.99));
        assert_eq!(lab.outbox.take_due(lab.at(3.9)), None);
        let batch = lab.send(4.0);
        assert_eq!((batch.first, batch.last, batch.message.happened.len()), (1, 200, 200));
        lab.happens(201, 4.5);
        assert_eq!((lab.due(), lab.outbox.first()), (None, Some(1)), "one at a time");
        let now = lab.at(5.0);
        lab.outbox.sent(&batch, now);
        assert_eq!((lab.due(), lab.outbox.first()), (Some(35.0), Some(201)));
        let batch = lab.send(35.0);
        let now = lab.at(36.0);
        lab.outbox.sent(&batch, now);
        assert_eq!((lab.due(), lab.outbox.first(), lab.outbox.in_flight()), (None, None, 0));
        // After a while events are sent at once again, and old ones are not kept.
        assert_eq!(lab.outbox.take_due(lab.at(66.0)), None);
        assert!(lab.outbox.recipients.is_empty());
        lab.happens(202, 70.0);
        assert_eq!(lab.due(), Some(72.0));
    }

    #[test]
    fn endless_events_are_sent_nevertheless() {
        let mut lab = Lab::new();
        (0..2000).for_each(|number| lab.happens(number + 1, number as f64 / 10.0));
        assert_eq!(lab.due(), Some(30.0));
        let batch = lab.send(200.0);
        assert_eq!((batch.message.happened.len(), batch.message.counts[&Occasion::Done]), (MAX_KEPT, 2000));
    }

    #[test]
    fn failed_messages_are_retried_with_growing_pauses() {
        let mut lab = Lab::new();
        lab.happens(1, 0.0);
        for (sent, due) in [(2.0, 9.5), (9.5, 39.5)] {
            let (batch, now) = (lab.send(sent), lab.at(sent));
            assert_eq!(lab.outbox.failed(batch, now), None);
            assert_eq!(lab.due(), Some(due));
        }
        lab.happens(2, 20.0);
        let (batch, now) = (lab.send(39.5), lab.at(39.5));
        assert_eq!((batch.first, batch.last), (1, 2));
        lab.happens(3, 39.5);
        assert_eq!(lab.outbox.failed(batch.clone(), now), Some(batch));
        assert_eq!((lab.due(), lab.outbox.first()), (Some(69.5), Some(3)), "later events start a new batch");
        lab.outbox.retain(|_| false);
        assert_eq!(lab.outbox.first(), None);
    }

    #[test]
    fn no_user_blocks_the_messages_of_others() {
        let mut lab = Lab::new();
        let now = lab.at(0.0);
        for uid in 0..40 {
            for number in 0..5 {
                let owner = Owner { uid, ..ada() };
                lab.outbox.add(Channel::Mail(format!("m{number}")), &owner, "gpu1", 1, happened(Occasion::Done, 1, "x"), now);
            }
        }
        let taken: Vec<Batch> = std::iter::from_fn(|| lab.outbox.take_due(lab.start + Duration::from_secs(2))).collect();
        let most = (0..40).map(|uid| taken.iter().filter(|batch| batch.owner.uid == uid).count()).max();
        assert_eq!((taken.len(), most, lab.outbox.in_flight()), (MAX_TOTAL, Some(MAX_PER_USER), MAX_TOTAL));
    }
}
