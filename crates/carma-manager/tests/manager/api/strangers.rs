//! What another user gets to see and to do: as little as they should.

use std::os::unix::process::CommandExt;
use std::process::Command;

use carma_testing::{Missing, NOBODY, need};
use serde_json::{Value, json};

use super::lab::{Lab, job};

/// That these tests can start curl as another user.
fn curl_as_nobody() -> Result<(), Missing> {
    carma_testing::root()?;
    carma_testing::program("curl")
}

/// What curl receives as another user: the status and the body.
fn as_nobody(lab: &Lab, method: &str, path: &str, body: &str) -> (u16, Value) {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "60", "--write-out", "\n%{http_code}", "--request", method])
        .arg("--unix-socket")
        .arg(lab.socket());
    let said = curl.args(["--data", body]).arg(format!("http://carma{path}")).uid(NOBODY).gid(NOBODY).current_dir("/").output().unwrap();
    let text = String::from_utf8(said.stdout).unwrap();
    let (body, status) = text.rsplit_once('\n').unwrap_or_else(|| panic!("{text} {}", String::from_utf8_lossy(&said.stderr)));
    (status.parse().unwrap(), serde_json::from_str(body).unwrap_or(Value::Null))
}

#[test]
fn other_users_can_neither_change_a_job_nor_see_its_command() {
    need!(curl_as_nobody());
    let lab = Lab::new();
    let id = lab.submit(&job("mine"), None)[0];
    let forbidden = |method: &str, path: String, body: &str| {
        let (status, problem) = as_nobody(&lab, method, &path, body);
        assert_eq!((status, problem["kind"].as_str()), (403, Some("forbidden")), "{method} {path}: {problem}");
    };
    for act in ["cancel", "hold", "release", "requeue"] {
        forbidden("POST", format!("/v1/jobs/{id}/{act}"), "");
    }
    forbidden("PATCH", format!("/v1/jobs/{id}"), "{\"priority\": -5}");
    forbidden("GET", format!("/v1/jobs/{id}/logs"), "");
    forbidden("GET", format!("/v1/jobs/{id}/terminal"), "");
    for act in ["/v1/gpus/gpu0/drain", "/v1/gpus/gpu0/resume", "/v1/shutdown", "/v1/configuration/reload"] {
        forbidden("POST", act.to_owned(), "");
    }
    let mut first = job("first");
    first["schedule"] = json!({ "priority": 1 });
    forbidden("POST", "/v1/jobs".to_owned(), &json!({ "job": first }).to_string());

    for path in [format!("/v1/jobs/{id}"), "/v1/export".to_owned(), format!("/v1/jobs/{id}/wait?seconds=0")] {
        let (status, shown) = as_nobody(&lab, "GET", &path, "");
        let text = shown.to_string();
        assert!(status == 200 && shown["request"]["name"] == "mine", "{text}");
        assert!(!text.contains("private") && !text.contains("hf_secret") && !text.contains("HF_TOKEN"), "{path}: {text}");
    }
    assert_eq!(lab.get(&format!("/v1/jobs/{id}"))["phase"], "queued");
}

#[test]
fn other_users_submit_as_themselves_and_operators_act_on_all_jobs() {
    need!(curl_as_nobody());
    let lab = Lab::new();
    // `last` is one's own.
    lab.submit(&job("roots"), None);
    let (status, submitted) = as_nobody(&lab, "POST", "/v1/jobs", &json!({ "job": job("theirs") }).to_string());
    assert_eq!(status, 200, "{submitted}");
    let (_, own) = as_nobody(&lab, "GET", "/v1/jobs/last", "");
    assert_eq!((&own["owner"]["uid"], &own["request"]["name"]), (&json!(NOBODY), &json!("theirs")));
    assert_eq!(own["request"]["environment"], json!({ "PATH": "/usr/bin", "HF_TOKEN": "(hidden)" }));
    let seen = lab.get(&format!("/v1/jobs/{}", submitted["jobs"][0]));
    assert_eq!(seen["request"]["environment"], json!({ "PATH": "(hidden)", "HF_TOKEN": "(hidden)" }));
    assert_eq!(seen["request"]["command"]["program"][1], "private.py");
    let cancelled = lab.post(&format!("/v1/jobs/{}/cancel", submitted["jobs"][0]), &json!({}));
    assert_eq!(cancelled["done"], submitted["jobs"]);
}
