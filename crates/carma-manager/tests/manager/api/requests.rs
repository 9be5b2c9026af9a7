//! Jobs through the API: submitted, named, changed, listed; and errors for invalid requests.

use std::io::Write;
use std::thread;
use std::time::{Duration, Instant};

use carma_manager::api::ProblemKind;
use serde_json::json;

use super::lab::{Answer, Lab, TIMEOUT, job};

#[test]
fn jobs_are_submitted_named_and_ended() {
    let lab = Lab::new();
    let [first] = lab.submit(&job("first"), None)[..] else { panic!("one job") };
    let array = lab.submit(&job("many"), Some(&[3, 5, 7]));
    let shown = lab.get(&format!("/v1/jobs/{first}"));
    assert_eq!(shown["request"]["environment"], json!({ "PATH": "/usr/bin", "HF_TOKEN": "(hidden)" }));
    assert_eq!(lab.get("/v1/jobs/@first")["id"], first);
    // An array is called by the number of its first job.
    assert_eq!(lab.get("/v1/jobs/last")["id"], array[0]);
    assert_eq!(lab.get(&format!("/v1/jobs/{}_5", array[0]))["id"], array[1]);
    assert!(lab.get(&format!("/v1/jobs/{first}/why"))["text"].is_string());
    assert_eq!(lab.get("/v1/queue")["jobs"].as_array().unwrap().len(), 4);

    let one = lab.post(&format!("/v1/jobs/{}_7/cancel", array[0]), &json!({}));
    let name = json!({ array[2].to_string(): { "array": array[0], "index": 7 } });
    assert_eq!(one, json!({ "done": [array[2]], "arrays": name }));
    let all = lab.post("/v1/jobs/last/cancel", &json!({}));
    assert_eq!(all["done"], json!([array[0], array[1]]));
    assert_eq!(all["not_done"][0]["job"], array[2]);
    assert_eq!(lab.get("/v1/history?state=done&limit=2").as_array().unwrap().len(), 2);
    lab.post(&format!("/v1/jobs/{first}/cancel"), &json!({}));
    assert_eq!(lab.get("/v1/history?limit=1")[0]["id"], array[2]);
    assert_eq!(lab.get("/v1/history?order=ended&limit=1")[0]["id"], first);
    let lines = lab.ask("GET", "/v1/export", "").text();
    let exported: Vec<serde_json::Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(exported.iter().map(|job| job["id"].as_u64().unwrap()).collect::<Vec<_>>(), [array[2], array[1], array[0], first]);
    assert_eq!(lab.ask("GET", "/v1/export?limit=1", "").text().lines().count(), 1);
}

#[test]
fn a_query_with_the_name_of_a_user_is_told_what_is_wanted() {
    let lab = Lab::new();
    let refused = lab.ask("GET", "/v1/queue?limit=1&user=ada", "");
    assert_eq!(refused.status, 400);
    let text = refused.text();
    assert!(text.contains("user=ada: give the number of the user (uid)"), "{text}");
    let other = lab.ask("GET", "/v1/queue?limit=some&user=7", "").text();
    assert!(other.contains("limit") && !other.contains("uid"), "{other}");
}

#[test]
fn a_submission_with_a_key_is_accepted_once() {
    let lab = Lab::new();
    let body = json!({ "job": job("once"), "array": [1, 2] }).to_string();
    let submit = |key: &str| {
        let mut stream = lab.connect();
        let head = format!("POST /v1/jobs HTTP/1.1\r\nhost: carma\r\nconnection: close\r\nidempotency-key: {key}\r\n");
        write!(stream, "{head}content-length: {}\r\n\r\n{body}", body.len()).unwrap();
        let answer = Answer::new(stream);
        (answer.status, answer.text())
    };
    let first = submit("7f3a");
    assert_eq!((first.0, submit("7f3a")), (200, first.clone()));
    assert_eq!(lab.get("/v1/queue")["jobs"].as_array().unwrap().len(), 2);
    assert_ne!(submit("other"), first);
    assert_eq!(submit("a b").0, 400);
}

#[test]
fn a_number_out_of_range_is_an_invalid_request() {
    let lab = Lab::new();
    lab.submit(&job("one"), None);
    let (past, most) = (1_u64 << 63, u64::MAX);
    for number in [past, most] {
        for path in ["/v1/history?since=", "/v1/history?until=", "/v1/history?before=", "/v1/export?since=", "/v1/energy?by=job&since="] {
            let (status, problem) = lab.problem("GET", &format!("{path}{number}"), "");
            assert_eq!((status, problem.kind), (400, ProblemKind::Invalid), "{path}{number}: {problem}");
            assert!(problem.message.contains("out of range") && !problem.message.contains("carma.db"), "{problem}");
        }
        for path in [
            "/v1/jobs/",
            "/v1/queue?after=",
            "/v1/recent?since=",
            "/v1/what-if?since=",
            "/v1/gpus/0/samples?since=",
            "/v1/gpus/0/timeline?until=",
        ] {
            let answer = lab.ask("GET", &format!("{path}{number}"), "");
            assert!(answer.status < 500, "{path}{number}: {}", answer.text());
        }
    }
}

#[test]
fn jobs_come_after_others_by_name_and_can_be_changed() {
    let lab = Lab::new();
    let array = lab.submit(&job("data"), Some(&[0, 1]));
    let mut next = job("next");
    next["schedule"] = json!({ "after": [{ "job": "@data", "condition": "any" }] });
    let [next] = lab.submit(&next, None)[..] else { panic!("one job") };
    let after = lab.get(&format!("/v1/jobs/{next}"))["request"]["schedule"]["after"].clone();
    let expected = array.iter().map(|job| json!({ "job": job.to_string(), "condition": "any" }));
    assert_eq!(after, expected.collect::<serde_json::Value>());

    let change = json!({ "priority": -3, "time_limit": { "set": 60.0 } }).to_string();
    assert_eq!(lab.ask("PATCH", "/v1/jobs/@next", &change).status, 200);
    let shown = lab.get("/v1/jobs/@next");
    assert_eq!((&shown["request"]["schedule"]["priority"], &shown["request"]["resources"]["time_limit"]), (&json!(-3), &json!(60.0)));
    assert_eq!(lab.problem("PATCH", "/v1/jobs/@next", "{}").0, 400);

    let mut lost = job("lost");
    lost["schedule"] = json!({ "after": [{ "job": "@nobody", "condition": "ok" }] });
    let (status, problem) = lab.problem("POST", "/v1/jobs", &json!({ "job": lost }).to_string());
    assert!(status == 400 && problem.message.contains("nobody"), "{problem}");
}

#[test]
fn all_errors_have_one_form() {
    let lab = Lab::new();
    let told = |method: &str, path: &str, body: &str| {
        let (status, problem) = lab.problem(method, path, body);
        assert_eq!(status, problem.kind.status(), "{problem}");
        (problem.kind, problem.message)
    };
    assert_eq!(told("GET", "/v1/nothing", "").0, ProblemKind::NotFound);
    assert_eq!(told("DELETE", "/v1/queue", "").0, ProblemKind::WrongMethod);
    assert_eq!(told("GET", "/v1/jobs/77", "").0, ProblemKind::NotFound);
    assert_eq!(told("GET", "/v1/jobs/last", "").0, ProblemKind::NotFound);
    assert_eq!(told("GET", "/v1/jobs/seven", "").0, ProblemKind::Invalid);
    assert_eq!(told("GET", "/v1/jobs/%ff", "").0, ProblemKind::Invalid);
    assert_eq!(told("GET", "/v1/history?limit=many", "").0, ProblemKind::Invalid);
    assert_eq!(told("POST", "/v1/gpus/gpu9/drain", "").0.status() / 100, 4);
    assert!(told("POST", "/v1/jobs", "{\"job\": 1}").1.contains("line 1 column"));
    assert!(told("POST", "/v1/jobs", &json!({ "job": job("../../etc") }).to_string()).1.contains("name"));
    let mut forged = job("forged");
    forged["array"] = json!({ "index": 1 });
    assert!(told("POST", "/v1/jobs", &json!({ "job": forged }).to_string()).1.contains("array"));
    let large = json!({ "job": { "command": { "script": { "text": format!("#!/bin/sh\n{}", "#".repeat((4 << 20) - 20)) } }, "directory": "/tmp" },
        "array": (0..16).collect::<Vec<u32>>() });
    assert_eq!(told("POST", "/v1/forecast", &large.to_string()).0, ProblemKind::TooLarge);
    assert_eq!(lab.get("/v1/queue")["counts"], json!({ "running": 0, "waiting": 0, "held": 0 }));
}

#[test]
fn numbers_that_do_not_read_back_are_refused() {
    let lab = Lab::new();
    let with = |begin: u64, time: f64, memory: u64| {
        let mut job = job("far");
        job["schedule"] = json!({ "begin": begin, "wait_for_hardware": true });
        job["resources"] = json!({ "gpus": 0, "time_limit": time, "host_memory": memory });
        job
    };
    for (key, wrong) in [
        ("begin", with(8_999_999_999_999, 60.0, 1)),
        ("begin", with(u64::MAX, 60.0, 1)),
        ("time", with(0, 8_999_999_999_999.9, 1)),
        ("host-mem", with(0, 60.0, u64::MAX)),
    ] {
        let (status, problem) = lab.problem("POST", "/v1/jobs", &json!({ "job": wrong }).to_string());
        assert!(status == 400 && problem.message.starts_with(&format!("{key}: ")), "{problem}");
    }
    lab.submit(&with(7_258_118_400, 3_153_600_000.0, 1 << 40), None);
    assert_eq!(lab.get("/v1/jobs/last")["request"]["schedule"]["begin"], 7_258_118_400_u64);
    let (status, problem) = lab.problem("PATCH", "/v1/jobs/last", &json!({ "time_limit": { "set": 8_999_999_999_999.9 } }).to_string());
    assert!(status == 400 && problem.message.contains("hundred years"), "{problem}");
}

#[test]
fn requests_that_announce_much_and_send_little_do_not_block_others() {
    let lab = Lab::new();
    let dribbling: Vec<_> = (0..40)
        .map(|_| {
            let mut stream = lab.connect();
            stream.write_all(b"POST /v1/jobs HTTP/1.1\r\nhost: carma\r\ncontent-length: 30000000\r\n\r\n{").unwrap();
            stream
        })
        .collect();
    let mut large = job("large");
    large["command"] = json!({ "script": { "text": format!("#!/bin/sh\n{}", "#".repeat(1 << 20)) } });
    let asked = Instant::now();
    assert_eq!(lab.submit(&large, None).len(), 1);
    assert!(asked.elapsed() < TIMEOUT / 2);
    drop(dribbling);
}

#[test]
fn the_size_of_a_sweep_is_limited() {
    let lab = Lab::new();
    let mut long = job("long");
    long["command"] = json!({ "program": vec!["{a}{a}{a}{a}"; 10_000] });
    let sweep = json!({ "job": long, "parameters": [{ "name": "a", "values": ["x".repeat(100_000)] }] });
    let (status, problem) = lab.problem("POST", "/v1/jobs", &sweep.to_string());
    assert!(status == 400 && problem.message.starts_with("param: "), "{problem}");
    // How long the list of an array's indices is matters to none of its jobs.
    assert_eq!(lab.submit(&job("many"), Some(&(1_000_000..1_012_000).collect::<Vec<u32>>())).len(), 12_000);
}

#[test]
fn oversized_bodies_are_refused_however_they_come() {
    let lab = Lab::new();
    let mut announced = lab.connect();
    announced.write_all(b"POST /v1/jobs HTTP/1.1\r\nhost: carma\r\ncontent-length: 40000000\r\n\r\n").unwrap();
    assert_eq!(Answer::new(announced).status, 413);
    let mut pieces = lab.connect();
    pieces.write_all(b"POST /v1/jobs HTTP/1.1\r\nhost: carma\r\ntransfer-encoding: chunked\r\n\r\n").unwrap();
    let piece = [b"100000\r\n".as_slice(), &vec![b' '; 1 << 20], b"\r\n"].concat();
    // The server may hang up before the last of them.
    let _ = (0..33).try_for_each(|_| pieces.write_all(&piece));
    assert_eq!(Answer::new(pieces).status, 413);
    assert_eq!(lab.ask("GET", "/v1/status", "").status, 200);
}

#[test]
fn a_thousand_slow_clients_do_not_block_others() {
    let lab = Lab::new();
    let slow: Vec<_> = (0..1000)
        .map(|_| {
            let mut stream = lab.connect();
            stream.write_all(b"G").unwrap();
            stream
        })
        .collect();
    let asked = Instant::now();
    lab.submit(&job("quick"), None);
    assert_eq!(lab.get("/v1/queue")["jobs"].as_array().unwrap().len(), 1);
    assert!(asked.elapsed() < TIMEOUT / 2);
    drop(slow);
}

#[test]
fn the_end_of_a_job_is_waited_for() {
    let lab = Lab::new();
    lab.submit(&job("long"), None);
    assert_eq!(lab.get("/v1/jobs/last/wait?seconds=0")["phase"], "queued");
    thread::scope(|scope| {
        let waits = scope.spawn(|| lab.get("/v1/jobs/@long/wait?seconds=60"));
        thread::sleep(Duration::from_millis(20));
        lab.post("/v1/jobs/@long/cancel", &json!({}));
        let ended = waits.join().unwrap();
        assert_eq!((&ended["phase"], &ended["outcome"]), (&json!("done"), &json!("cancelled")));
    });
}

#[test]
fn the_manager_reports_its_status_and_reloads_its_configuration() {
    let lab = Lab::new();
    assert_eq!(lab.get("/v1/status")["observes"], true);
    assert_eq!(lab.get("/v1/energy?by=user"), json!({ "sums": [], "price": null, "currency": "EUR", "carbon": null }));
    assert_eq!(lab.get("/v1/gpus/gpu0/samples"), json!([]));
    assert_eq!(lab.get("/v1/gpus"), json!([]));
    assert_eq!(lab.get("/v1/openapi.json")["paths"]["/v1/queue"]["get"]["operationId"], "queue");
    std::fs::write(lab.path().join("carma.toml"), "policy = \"exclusive\"\n[manager.energy]\nprice = 0.3\n").unwrap();
    assert_eq!(lab.post("/v1/configuration/reload", &json!({})), json!({ "needs_restart": ["manager.energy.price"] }));
    let configuration = lab.get("/v1/configuration");
    assert_eq!(configuration["written"], json!({ "policy": "exclusive" }), "and nothing that its preset says");
    assert_eq!((&configuration["rules"]["policy"], &configuration["rules"]["preset"]), (&json!("exclusive"), &json!("standard")));
    std::fs::write(lab.path().join("carma.toml"), "polcy = \"exclusive\"\n").unwrap();
    assert!(lab.problem("POST", "/v1/configuration/reload", "").1.message.contains("polcy"));
}
