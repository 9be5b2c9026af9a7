//! The client against a server that says what a test wants it to say.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread::{self, JoinHandle};

use carma_core::JobId;
use carma_manager::api::{HistoryQuery, JobAction, JobChange, LogQuery, ProblemKind, QueueQuery, Submission};
use carma_manager::client::{Address, Client, ClientError};
use carma_manager::request::{JobCommand, JobRequest};
use tempfile::TempDir;

/// A request as it arrived.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    /// The connection it came on, from 0.
    connection: usize,
    line: String,
    key: Option<String>,
    body: String,
}

/// Plays a server: for each connection the answers to give on it, after which it is closed. It ends with what was asked.
fn server(connections: Vec<Vec<String>>) -> (TempDir, Address, JoinHandle<Vec<Request>>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("carma.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let mut requests = Vec::new();
        for (connection, answers) in connections.into_iter().enumerate() {
            let mut stream = BufReader::new(listener.accept().unwrap().0);
            for answer in answers {
                requests.push(read(connection, &mut stream));
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
            }
        }
        requests
    });
    (folder, Address::Socket(path), serving)
}

fn read(connection: usize, stream: &mut BufReader<UnixStream>) -> Request {
    let mut lines = stream.by_ref().lines().map(Result::unwrap);
    let line = lines.next().unwrap();
    let headers: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let length = headers.iter().find_map(|header| header.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    stream.read_exact(&mut body).unwrap();
    let key = headers.iter().find_map(|header| header.strip_prefix("idempotency-key: ").map(str::to_owned));
    Request { connection, line, key, body: String::from_utf8(body).unwrap() }
}

fn answer(status: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

fn chunked(pieces: &[&str]) -> String {
    let pieces = pieces.iter().map(|piece| format!("{:x}\r\n{piece}\r\n", piece.len())).collect::<Vec<_>>().concat();
    format!("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n{pieces}0\r\n\r\n")
}

const QUEUE: &str = r#"{"counts":{"running":0,"waiting":0,"held":0},"jobs":[]}"#;

#[test]
fn calls_share_a_connection_and_one_that_was_closed_is_made_anew() {
    let fine = |body: &str| answer("200 OK", body);
    let (_folder, address, serving) = server(vec![vec![fine(QUEUE), fine(r#"{"jobs":[7]}"#)], vec![fine(r#"{"done":[7]}"#), fine("null")]]);
    let mut client = Client::at(address).unwrap();
    client.queue(&QueueQuery { limit: Some(5), ..QueueQuery::default() }).unwrap();
    let job = JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/");
    assert_eq!(client.submit(&Submission::from(job)).unwrap().jobs, [JobId(7)]);
    assert_eq!(client.act("@a b", &JobAction::Change(JobChange::default())).unwrap().done, [JobId(7)]);
    client.drain("s0/gpu3", true).unwrap();
    let asked = serving.join().unwrap();
    let lines: Vec<_> = asked.iter().map(|request| (request.connection, request.line.as_str())).collect();
    let expected = [
        (0, "GET /v1/queue?limit=5 HTTP/1.1"),
        (0, "POST /v1/jobs HTTP/1.1"),
        (1, "PATCH /v1/jobs/@a%20b HTTP/1.1"),
        (1, "POST /v1/gpus/s0%2Fgpu3/drain HTTP/1.1"),
    ];
    assert_eq!(lines, expected);
    assert!(asked[1].body.starts_with(r#"{"job":{"command":{"program":["true"]}"#), "{}", asked[1].body);
}

#[test]
fn errors_show_the_message_of_the_server() {
    let forbidden = answer("403 Forbidden", r#"{"kind":"forbidden","message":"job 7 is not yours"}"#);
    let proxy = answer("502 Bad Gateway", "<html>\x1b[2Jno</html>");
    let (_folder, address, _serving) = server(vec![vec![forbidden, proxy, answer("200 OK", r#"{"cows":3}"#)]]);
    let mut client = Client::at(address).unwrap();
    let Err(ClientError::Refused(problem)) = client.job("7") else { panic!("it was not refused") };
    assert_eq!((problem.kind, problem.to_string().as_str()), (ProblemKind::Forbidden, "job 7 is not yours"));
    assert_eq!(client.status().unwrap_err().to_string(), "refused with 502 Bad Gateway: <html>[2Jno</html>");
    let other = client.status().unwrap_err().to_string();
    assert!(
        other.contains("this version does not understand the answer of the manager: another version's, missing field `version`"),
        "{other}"
    );
}

#[test]
fn a_request_that_was_sent_is_not_repeated() {
    let (_folder, address, serving) = server(vec![vec![String::new()]]);
    let mut client = Client::at(address).unwrap();
    let error = client.act("7", &JobAction::Requeue).unwrap_err();
    assert!(matches!(error, ClientError::BrokenOff(_)) && error.is_absence(), "{error}");
    assert_eq!(serving.join().unwrap().len(), 1);
}

#[test]
fn a_submission_is_repeated_once_with_the_same_key() {
    let (_folder, address, serving) = server(vec![vec![String::new()], vec![answer("200 OK", r#"{"jobs":[7]}"#)]]);
    let mut client = Client::at(address).unwrap();
    let submission = Submission::from(JobRequest::new(JobCommand::Program(vec!["true".to_owned()]), "/"));
    assert_eq!(client.submit(&submission).unwrap().jobs, [JobId(7)]);
    let asked = serving.join().unwrap();
    assert!(asked[0].key.is_some() && asked[0].key == asked[1].key && asked[0].body == asked[1].body, "{asked:?}");
}

#[test]
fn long_answers_come_as_they_are_written() {
    let events = chunked(&["id: 3\nevent: gpus\nda", "ta: {\"update\":\"gpus\",\"at\":1}\n\n"]);
    let (_folder, address, serving) = server(vec![vec![chunked(&["first\n", "second"]), events, chunked(&[]), answer("200 OK", QUEUE)]]);
    let mut client = Client::at(address).unwrap();
    let mut log = String::new();
    client.logs("last", LogQuery { lines: Some(2), ..LogQuery::default() }).unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(log, "first\nsecond");
    let told: Vec<_> = client.events(Some(2)).unwrap().map(|event| event.unwrap()).collect();
    assert_eq!(
        told.iter().map(|event| (event.id.as_deref(), event.update())).collect::<Vec<_>>(),
        [(Some("3"), Some(carma_manager::api::Update::Gpus))]
    );
    assert_eq!(client.export(&HistoryQuery::default()).unwrap().count(), 0);
    client.queue(&QueueQuery::default()).unwrap();
    let lines: Vec<String> = serving.join().unwrap().into_iter().map(|request| request.line).collect();
    assert_eq!(lines[..2], ["GET /v1/jobs/last/logs?stream=stdout&lines=2&follow=false HTTP/1.1", "GET /v1/events?after=2 HTTP/1.1"]);
}

#[test]
fn a_terminal_is_a_stream_of_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("carma.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let serving = thread::spawn(move || {
        let mut stream = BufReader::new(listener.accept().unwrap().0);
        let line = read(0, &mut stream).line;
        // The first bytes may come with the answer's head.
        let head = "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: carma-terminal\r\n\r\nhello ";
        stream.get_mut().write_all(head.as_bytes()).unwrap();
        let mut word = [0; 3];
        stream.read_exact(&mut word).unwrap();
        stream.get_mut().write_all(&word).unwrap();
        line
    });
    let mut terminal = Client::at(Address::Socket(path)).unwrap().terminal("7").unwrap();
    terminal.write_all(b"you").unwrap();
    let mut all = String::new();
    terminal.read_to_string(&mut all).unwrap();
    assert_eq!((all.as_str(), serving.join().unwrap().as_str()), ("hello you", "GET /v1/jobs/7/terminal HTTP/1.1"));
}

#[test]
fn a_client_refuses_plain_http_to_other_machines() {
    let address: Address = "http://192.0.2.1:7080".parse().unwrap();
    let error = Client::at(address).unwrap_err().to_string();
    assert_eq!(error, "http://192.0.2.1:7080 is another machine, and http:// is not encrypted: write https://");
    let missing = Client::at(Address::Socket(PathBuf::from("/nonexistent/carma.sock"))).unwrap_err();
    assert!(missing.to_string().starts_with("cannot reach the manager at /nonexistent/carma.sock: "), "{missing}");
}

#[test]
fn a_missing_token_is_explained() {
    let refusal = answer("401 Unauthorized", r#"{"kind":"unauthenticated","message":"send a token"}"#);
    let (_folder, address, _serving) = server(vec![vec![refusal]]);
    let error = Client::at(address).unwrap().status().unwrap_err().to_string();
    assert!(error.ends_with(" wants a token: set CARMA_TOKEN, or write it to ~/.config/carma/token"), "{error}");
}
