//! The web page, and the bridge by which browsers reach a socket.

use std::io::{BufRead, Write};
use std::net::{SocketAddr, TcpStream};
use std::thread;

use carma_manager::bridge::Bridge;

use super::lab::{Answer, Lab, PAGES, TIMEOUT, job};

fn ask(address: SocketAddr, method: &str, path: &str, token: Option<&str>, body: &str) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    let token = token.map(|token| format!("authorization: Bearer {token}\r\n")).unwrap_or_default();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: carma\r\nconnection: close\r\n{token}content-length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).unwrap();
    Answer::new(stream)
}

/// A bridge to the lab, and its secret. It runs until the tests end.
fn bridge(lab: &Lab) -> (SocketAddr, String) {
    let bridge = Bridge::bind(0, lab.socket(), PAGES).unwrap();
    let secret = bridge.url().split_once("#token=").unwrap().1.to_owned();
    let address = ([127, 0, 0, 1], bridge.port()).into();
    thread::spawn(|| bridge.run());
    (address, secret)
}

#[test]
fn the_page_is_public_and_its_data_needs_the_secret() {
    let lab = Lab::new();
    let (address, secret) = bridge(&lab);
    let page = ask(address, "GET", "/", None, "");
    assert_eq!((page.status, page.text().as_str()), (200, "<!doctype html><title>page</title>"));
    for token in [None, Some("guessed"), Some(&secret[1..])] {
        for path in ["/v1/status", "/metrics", "/index.html/../v1/status", "//v1/status"] {
            assert_eq!(ask(address, "GET", path, token, "").status, 401, "{path} with {token:?}");
        }
    }
    let me = ask(address, "GET", "/v1/me", Some(&secret), "").text();
    assert!(me.contains(&format!("\"uid\":{}", rustix::process::getuid().as_raw())), "{me}");
}

#[test]
fn requests_and_streams_pass_over_the_bridge() {
    let lab = Lab::new();
    let (address, secret) = bridge(&lab);
    let mut events = ask(address, "GET", "/v1/events", Some(&secret), "");
    let submitted = ask(address, "POST", "/v1/jobs", Some(&secret), &serde_json::json!({ "job": job("passed on") }).to_string());
    assert_eq!(submitted.status, 200);
    let heard = std::iter::from_fn(|| events.piece()).take(20).any(|piece| piece.lines().any(|line| line.contains("\"update\":\"job\"")));
    assert!(heard);
}

#[test]
fn the_bridge_reports_a_manager_that_does_not_answer() {
    let lab = Lab::new();
    let (address, secret) = bridge(&lab);
    drop(lab);
    let answer = ask(address, "GET", "/v1/status", Some(&secret), "");
    assert_eq!(answer.status, 503);
    assert!(answer.body.lines().map_while(Result::ok).any(|line| line.contains("does not answer")));
}
