//! Requests to the API. Whatever a client sends, the manager answers the next request, and no answer is an internal error.

#![no_main]

mod manager;

use std::sync::Mutex;
use std::time::Duration;

use libfuzzer_sys::{Corpus, fuzz_target};
use manager::Manager;

/// Requests that one manager serves, so that its queue stays short.
const REQUESTS: u32 = 2_000;
/// Some requests have no answer yet: their body is not complete, or they wait for events.
const PAUSE: Duration = Duration::from_millis(50);
/// A request that is complete has an answer within this time.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A manager, and the requests that it has served. It is not ended with the process: then its runtime is gone already.
static MANAGER: Mutex<Option<(Manager, u32)>> = Mutex::new(None);

fuzz_target!(|input: &[u8]| -> Corpus {
    // It would end what is tested.
    if contains(input, b"/v1/shutdown") {
        return Corpus::Reject;
    }
    let mut current = MANAGER.lock().expect("a panic ends the process");
    let (manager, requests) = current.get_or_insert_with(|| (Manager::start(), 0));
    let answer = manager.ask(&request(input), PAUSE);
    assert!(!answer.starts_with(b"HTTP/1.1 500"), "an internal error: {}", String::from_utf8_lossy(&answer));
    let status = manager.ask(&request(b"GET /v1/status HTTP/1.1\r\nhost: carma"), TIMEOUT);
    assert!(status.starts_with(b"HTTP/1.1 200"), "the manager does not answer: {}", String::from_utf8_lossy(&status));
    *requests += 1;
    if *requests == REQUESTS {
        *current = None;
    }
    Corpus::Keep
});

/// The bytes of a request: an input is a head, an empty line and a body, and the length of the body is added to the head. A fuzzer that had to
/// find the right length would rarely send a body.
fn request(input: &[u8]) -> Vec<u8> {
    let end = input.windows(2).position(|pair| pair == b"\n\n");
    let (head, body) = end.map_or((input, &[][..]), |end| (&input[..end], &input[end + 2..]));
    let mut bytes = head.to_vec();
    bytes.extend(format!("\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len()).bytes());
    bytes.extend(body);
    bytes
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
