//! What waits to be told, by whom and by which way: what comes in a storm is told together, and nobody is told too often.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use super::message::Message;
use crate::api::{Channel, Happened};
use crate::request::Owner;

/// How often a message is tried.
const TRIES: u32 = 3;
/// So many happenings are kept for one message; more are counted.
const MOST_KEPT: usize = 1000;
/// Messages on their way at the same time: of one user, so that nobody's slow server keeps others waiting, and of all.
const MOST_OF_USER: usize = 2;
const MOST_OF_ALL: usize = 32;

/// When messages are sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rhythm {
    /// What happens within so short a time is told together.
    pub(super) gather: Duration,
    /// Between two messages by one way lies at least this.
    pub(super) every: Duration,
}

impl Rhythm {
    /// The time until the next try, which grows with every failure.
    fn pause(self, failures: u32) -> Duration {
        self.every.mul_f64(f64::from(failures * failures) / f64::from(TRIES + 1))
    }
}

/// A user, and a way to tell them.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way {
    pub(super) uid: u32,
    pub(super) by: Channel,
}

/// What is told at once, and the numbers of the first and the last event of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Letter {
    pub(super) owner: Owner,
    pub(super) message: Message,
    pub(super) first: u64,
    pub(super) last: u64,
}

impl Letter {
    /// Adds what happened later.
    fn add(&mut self, later: Self) {
        let room = MOST_KEPT.saturating_sub(self.message.happened.len());
        self.message.happened.extend(later.message.happened.into_iter().take(room));
        later.message.counts.into_iter().for_each(|(occasion, count)| *self.message.counts.entry(occasion).or_default() += count);
        self.last = self.last.max(later.last);
    }

    /// Whose it is and how it is sent.
    pub(super) fn way(&self) -> Way {
        Way { uid: self.owner.uid, by: self.message.by.clone() }
    }
}

/// What is known of one way.
#[derive(Debug, Default)]
struct Traffic {
    /// What is to be told next, since when, and since when nothing came.
    waiting: Option<(Letter, Instant, Instant)>,
    /// The first event of the message that is on its way.
    sending: Option<u64>,
    /// When the last message was sent, or tried.
    tried: Option<Instant>,
    failures: u32,
}

impl Traffic {
    /// When what waits is to be sent, if nothing is on its way.
    fn due(&self, rhythm: Rhythm) -> Option<Instant> {
        let (_, since, latest) = self.waiting.as_ref().filter(|_| self.sending.is_none())?;
        // In a storm that does not end it is never quiet.
        let gathered = (*latest + rhythm.gather).min(*since + rhythm.every.max(rhythm.gather));
        let pause = if self.failures > 0 { rhythm.pause(self.failures) } else { rhythm.every };
        Some(self.tried.map_or(gathered, |tried| (tried + pause).max(gathered)))
    }

    fn is_idle(&self, rhythm: Rhythm, now: Instant) -> bool {
        self.waiting.is_none() && self.sending.is_none() && self.tried.is_none_or(|tried| tried + rhythm.every <= now)
    }
}

/// All that waits, and all that is on its way.
#[derive(Debug)]
pub(super) struct Outbox {
    rhythm: Rhythm,
    ways: BTreeMap<Way, Traffic>,
}

impl Outbox {
    pub(super) fn new(rhythm: Rhythm) -> Self {
        Self { rhythm, ways: BTreeMap::new() }
    }

    /// Something is to be told.
    pub(super) fn add(&mut self, by: Channel, owner: &Owner, server: &str, sequence: u64, happened: Happened, now: Instant) {
        let counts = BTreeMap::from([(happened.occasion, 1)]);
        let message = Message { by, server: server.to_owned(), happened: vec![happened], counts };
        let letter = Letter { owner: owner.clone(), message, first: sequence, last: sequence };
        let traffic = self.ways.entry(letter.way()).or_default();
        match &mut traffic.waiting {
            Some((earlier, _, latest)) => {
                earlier.add(letter);
                *latest = now;
            }
            None => traffic.waiting = Some((letter, now, now)),
        }
    }

    /// When something is to be sent next, as far as time alone decides it.
    pub(super) fn next_due(&self) -> Option<Instant> {
        self.ready().filter_map(|traffic| traffic.due(self.rhythm)).min()
    }

    /// What is to be sent now.
    pub(super) fn take_due(&mut self, now: Instant) -> Option<Letter> {
        self.ways.retain(|_, traffic| !traffic.is_idle(self.rhythm, now));
        let due = self.ready_ways().filter_map(|(way, traffic)| Some((traffic.due(self.rhythm)?, way)));
        let (_, way) = due.filter(|(due, _)| *due <= now).min()?;
        let traffic = self.ways.get_mut(&way.clone())?;
        let (letter, ..) = traffic.waiting.take()?;
        traffic.sending = Some(letter.first);
        Some(letter)
    }

    /// A message has arrived.
    pub(super) fn sent(&mut self, letter: &Letter, now: Instant) {
        if let Some(traffic) = self.ways.get_mut(&letter.way()) {
            (traffic.sending, traffic.tried, traffic.failures) = (None, Some(now), 0);
        }
    }

    /// A message has not arrived: it is tried again together with what came since, or given back when it was tried often enough.
    pub(super) fn failed(&mut self, mut letter: Letter, now: Instant) -> Option<Letter> {
        // Nobody wants it any more.
        let traffic = self.ways.get_mut(&letter.way())?;
        (traffic.sending, traffic.tried) = (None, Some(now));
        traffic.failures += 1;
        if traffic.failures >= TRIES {
            traffic.failures = 0;
            return Some(letter);
        }
        if let Some((later, ..)) = traffic.waiting.take() {
            letter.add(later);
        }
        traffic.waiting = Some((letter, now, now));
        None
    }

    /// Forgets what nobody wants to be told any more.
    pub(super) fn retain(&mut self, wanted: impl Fn(&Way) -> bool) {
        self.ways.retain(|way, _| wanted(way));
    }

    /// The first event that somebody is still to be told of.
    pub(super) fn first(&self) -> Option<u64> {
        let first = |traffic: &Traffic| traffic.sending.into_iter().chain(traffic.waiting.as_ref().map(|(letter, ..)| letter.first)).min();
        self.ways.values().filter_map(first).min()
    }

    /// How many messages are on their way.
    pub(super) fn under_way(&self) -> usize {
        self.ways.values().filter(|traffic| traffic.sending.is_some()).count()
    }

    /// Ways of users who have not too much on its way.
    fn ready_ways(&self) -> impl Iterator<Item = (&Way, &Traffic)> {
        let mut sending: BTreeMap<u32, usize> = BTreeMap::new();
        self.ways.iter().filter(|(_, traffic)| traffic.sending.is_some()).for_each(|(way, _)| *sending.entry(way.uid).or_default() += 1);
        let full = sending.values().sum::<usize>() >= MOST_OF_ALL;
        self.ways.iter().filter(move |(way, _)| !full && sending.get(&way.uid).is_none_or(|count| *count < MOST_OF_USER))
    }

    fn ready(&self) -> impl Iterator<Item = &Traffic> {
        self.ready_ways().map(|(_, traffic)| traffic)
    }
}

#[cfg(test)]
mod tests {
    use super::super::message::tests::happened;
    use super::*;
    use crate::api::Occasion;

    const RHYTHM: Rhythm = Rhythm { gather: Duration::from_secs(2), every: Duration::from_secs(30) };

    fn ada() -> Owner {
        Owner { uid: 7, gid: 7, name: "ada".to_owned() }
    }

    struct Post {
        outbox: Outbox,
        start: Instant,
    }

    impl Post {
        fn new() -> Self {
            Self { outbox: Outbox::new(RHYTHM), start: Instant::now() }
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

        fn send(&mut self, seconds: f64) -> Letter {
            let now = self.at(seconds);
            self.outbox.take_due(now).unwrap()
        }
    }

    #[test]
    fn a_storm_is_one_message_and_the_next_comes_later() {
        let mut post = Post::new();
        (0..200).for_each(|number| post.happens(number + 1, number as f64 / 100.0));
        assert_eq!(post.due(), Some(3.99));
        assert_eq!(post.outbox.take_due(post.at(3.9)), None);
        let letter = post.send(4.0);
        assert_eq!((letter.first, letter.last, letter.message.happened.len()), (1, 200, 200));
        post.happens(201, 4.5);
        assert_eq!((post.due(), post.outbox.first()), (None, Some(1)), "one at a time");
        let now = post.at(5.0);
        post.outbox.sent(&letter, now);
        assert_eq!((post.due(), post.outbox.first()), (Some(35.0), Some(201)));
        let letter = post.send(35.0);
        let now = post.at(36.0);
        post.outbox.sent(&letter, now);
        assert_eq!((post.due(), post.outbox.first(), post.outbox.under_way()), (None, None, 0));
        // After a while it is told at once again, and nothing is kept of before.
        assert_eq!(post.outbox.take_due(post.at(66.0)), None);
        assert!(post.outbox.ways.is_empty());
        post.happens(202, 70.0);
        assert_eq!(post.due(), Some(72.0));
    }

    #[test]
    fn a_storm_that_does_not_end_is_told_nevertheless() {
        let mut post = Post::new();
        (0..2000).for_each(|number| post.happens(number + 1, number as f64 / 10.0));
        assert_eq!(post.due(), Some(30.0));
        let letter = post.send(200.0);
        assert_eq!((letter.message.happened.len(), letter.message.counts[&Occasion::Done]), (MOST_KEPT, 2000));
    }

    #[test]
    fn what_fails_is_tried_again_with_growing_pauses_and_then_given_back() {
        let mut post = Post::new();
        post.happens(1, 0.0);
        for (sent, due) in [(2.0, 9.5), (9.5, 39.5)] {
            let (letter, now) = (post.send(sent), post.at(sent));
            assert_eq!(post.outbox.failed(letter, now), None);
            assert_eq!(post.due(), Some(due));
        }
        post.happens(2, 20.0);
        let (letter, now) = (post.send(39.5), post.at(39.5));
        assert_eq!((letter.first, letter.last), (1, 2));
        post.happens(3, 39.5);
        assert_eq!(post.outbox.failed(letter.clone(), now), Some(letter));
        assert_eq!((post.due(), post.outbox.first()), (Some(69.5), Some(3)), "what came since begins anew");
        post.outbox.retain(|_| false);
        assert_eq!(post.outbox.first(), None);
    }

    #[test]
    fn nobody_fills_the_post_for_others() {
        let mut post = Post::new();
        let now = post.at(0.0);
        for uid in 0..40 {
            for number in 0..5 {
                let owner = Owner { uid, ..ada() };
                post.outbox.add(Channel::Mail(format!("m{number}")), &owner, "gpu1", 1, happened(Occasion::Done, 1, "x"), now);
            }
        }
        let taken: Vec<Letter> = std::iter::from_fn(|| post.outbox.take_due(post.start + Duration::from_secs(2))).collect();
        let most = (0..40).map(|uid| taken.iter().filter(|letter| letter.owner.uid == uid).count()).max();
        assert_eq!((taken.len(), most, post.outbox.under_way()), (MOST_OF_ALL, Some(MOST_OF_USER), MOST_OF_ALL));
    }
}
