//! One user with a hundred times the load of another. The benchmark `fairness` measures the same; here, bounds are wide.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use carma_testing::{NOBODY, need, thread_as};
use serde_json::{Value, json};

use super::lab::{Lab, ask, job};

/// The user with the load: `daemon`.
const BUSY: u32 = 1;
/// Jobs in the array of the busy user.
const ARRAY: u32 = 3000;

fn submit(socket: &Path, name: &str, array: Option<&[u32]>) -> u64 {
    ask(socket, "POST", "/v1/jobs", &json!({ "job": job(name), "array": array }).to_string()).value()["jobs"][0].as_u64().unwrap()
}

fn change(socket: &Path, array: u64) -> Value {
    ask(socket, "PATCH", &format!("/v1/jobs/{array}"), &json!({ "priority": -1 }).to_string()).value()
}

fn timed(call: impl FnOnce()) -> Duration {
    let begin = Instant::now();
    call();
    begin.elapsed()
}

/// Clients of the busy user, each repeating a call until it is stopped.
fn repeat(socket: &Path, stop: &Arc<AtomicBool>, clients: usize, call: impl Fn(&Path) + Clone + Send + 'static) -> Vec<JoinHandle<()>> {
    let client = |_| {
        let (socket, stop, call): (PathBuf, _, _) = (socket.to_owned(), Arc::clone(stop), call.clone());
        thread_as(BUSY, move || {
            while !stop.load(Ordering::Relaxed) {
                call(&socket);
            }
        })
    };
    (0..clients).map(client).collect()
}

#[test]
fn a_user_with_many_requests_does_not_delay_another() {
    need!(carma_testing::root());
    let lab = Lab::new();
    let socket = lab.socket();
    let path = socket.clone();
    let (array, alone) = thread_as(BUSY, move || {
        let array = submit(&path, "many", Some(&(0..ARRAY).collect::<Vec<_>>()));
        (array, timed(|| assert_eq!(change(&path, array)["done"].as_array().unwrap().len(), ARRAY as usize)))
    })
    .join()
    .unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let mut busy = repeat(&socket, &stop, 8, move |socket| drop(change(socket, array)));
    busy.extend(repeat(&socket, &stop, 4, |socket| drop(ask(socket, "GET", "/v1/queue?limit=1000", "").text())));
    busy.extend(repeat(&socket, &stop, 4, |socket| {
        let mut events = ask(socket, "GET", "/v1/events?after=0", "");
        (0..1000).map_while(|_| events.piece()).for_each(drop);
    }));
    thread::sleep(Duration::from_millis(500));
    let mut rounds: Vec<Duration> = thread_as(NOBODY, move || {
        let round = |number: usize| {
            timed(|| {
                let id = submit(&socket, &format!("quiet-{number}"), None);
                let own = ask(&socket, "GET", &format!("/v1/queue?user={NOBODY}&limit=10"), "").value();
                assert_eq!(own["jobs"][0]["id"], id);
                let cancelled = ask(&socket, "POST", &format!("/v1/jobs/{id}/cancel"), "").value();
                assert_eq!(cancelled["done"], json!([id]));
            })
        };
        (0..9).map(round).collect()
    })
    .join()
    .unwrap();
    stop.store(true, Ordering::Relaxed);
    for client in busy {
        client.join().unwrap();
    }
    rounds.sort_unstable();
    // Before, each of the three calls waited for all eight changes.
    assert!(rounds[4] < alone * 3 && rounds[8] < alone * 8, "{rounds:?}, and a change alone takes {alone:?}");
}
