//! Notification channels of users, and their progress.

use carma_manager::api::{Channel, Notification, Occasion};
use carma_manager::store::*;

use super::lab::*;

fn mail(name: &str) -> Channel {
    Channel::Mail(name.to_owned())
}

fn wish(name: &str, on: Occasion) -> Notification {
    Notification { on: vec![on], by: mail(name) }
}

/// Each way of a user, with the last event that was told by it.
fn told(reader: &Reader, uid: u32) -> Vec<(Notification, u64)> {
    let own = reader.all_notifications().unwrap().into_iter().filter(|stored| stored.uid == uid);
    own.map(|stored| (stored.notification, stored.sent_through)).collect()
}

#[test]
fn kept_channels_keep_their_progress_and_new_ones_start_now() {
    let lab = Lab::new();
    let store = lab.open();
    let job = submit(&store);
    let set = |uid, notifications: &[Notification]| Change::NotificationsSet { uid, notifications: notifications.to_vec() };
    let (first, other) = (wish("a", Occasion::Done), wish("b", Occasion::Failed));
    store.write([set(1000, &[other.clone(), first.clone()]), set(1001, std::slice::from_ref(&first))]).wait().unwrap();
    store.write([event(Some(job), "submitted", NOW), event(Some(job), "finished", NOW), event(None, "finished", NOW)]).wait().unwrap();
    store.write([Change::UserNotified { uid: 1000, by: mail("a"), through: 2 }, Change::NotifiedThrough { through: 1 }]).wait().unwrap();
    drop(store);
    let store = lab.open();
    let reader = store.reader().unwrap();
    assert_eq!(reader.notifications(1000).unwrap(), [other.clone(), first.clone()], "in their user's order");
    assert_eq!((told(&reader, 1000), reader.notified_through().unwrap()), (vec![(other, 0), (first.clone(), 2)], 1));
    let (changed, new) = (wish("a", Occasion::Recovered), wish("c", Occasion::Done));
    store.write([set(1000, &[changed.clone(), new.clone()]), Change::NotifiedThrough { through: 0 }]).wait().unwrap();
    assert_eq!((told(&reader, 1000), reader.notified_through().unwrap()), (vec![(changed, 2), (new, 3)], 1));
    assert_eq!(told(&reader, 1001), [(first, 0)], "another's wishes are another's");
    store.write([set(1000, &[])]).wait().unwrap();
    assert_eq!(reader.notifications(1000).unwrap(), []);
}

#[test]
fn notable_events_of_subscribed_users_are_read() {
    let lab = Lab::new();
    let store = lab.open();
    let [alices, bobs] = [(); 2].map(|()| store.next_jobs(1));
    let accept = |id, owner| Change::JobAccepted(Box::new(stored(id, owner, None)));
    store.write([accept(alices, alice()), accept(bobs, bob())]).wait().unwrap();
    let kinds = ["submitted", "requeued", "idle", "finished"];
    let changes: Vec<Change> = kinds.iter().flat_map(|kind| [alices, bobs].map(|job| event(Some(job), kind, NOW))).collect();
    store.write(changes).wait().unwrap();
    let reader = store.reader().unwrap();
    assert_eq!(reader.notable_events_after(0, 10).unwrap(), NewEvents { events: Vec::new(), through: 8 }, "no user subscribes to these");
    let wish = wish("a", Occasion::Done);
    store.write([Change::NotificationsSet { uid: 1000, notifications: vec![wish] }]).wait().unwrap();
    let job_changed = |after, most| {
        let NewEvents { events, through } = reader.notable_events_after(after, most).unwrap();
        (events.into_iter().map(|(uid, stored)| (uid, stored.sequence)).collect::<Vec<_>>(), through)
    };
    assert_eq!(job_changed(0, 10), (vec![(1000, 3), (1000, 5), (1000, 7)], 8));
    assert_eq!(job_changed(0, 1), (vec![(1000, 3)], 3));
    assert_eq!((job_changed(7, 10), job_changed(9, 10)), ((Vec::new(), 8), (Vec::new(), 9)));
}
