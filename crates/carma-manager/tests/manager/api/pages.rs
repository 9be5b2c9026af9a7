//! Long lists are read page by page: no answer has more than 1,000 rows, for any request.

use std::collections::BTreeSet;
use std::io::Write;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::lab::{Lab, job};

/// Jobs in each part of the queue: waiting for GPUs that are not there, waiting for something else, held.
fn with_jobs(lab: &Lab) -> BTreeSet<u64> {
    let indices: Vec<u32> = (0..1_200).collect();
    let mut held = job("held");
    held["schedule"] = json!({ "hold": true });
    let mut wide = job("wide");
    wide["resources"] = json!({ "gpus": 1, "cpus": 1 });
    wide["schedule"]["wait_for_hardware"] = json!(true);
    let jobs =
        [lab.submit(&job("plain"), Some(&indices)), lab.submit(&held, Some(&indices[..700])), lab.submit(&wide, Some(&indices[..300]))];
    jobs.into_iter().flatten().collect()
}

fn ids(rows: &Value) -> Vec<u64> {
    rows.as_array().unwrap().iter().map(|row| row["id"].as_u64().unwrap()).collect()
}

#[test]
fn the_whole_queue_is_listed_page_by_page_each_job_once() {
    let lab = Lab::new();
    let submitted = with_jobs(&lab);
    for limit in [1, 999, 100_000] {
        let mut path = format!("/v1/queue?limit={limit}");
        let mut listed = Vec::new();
        // Pages of one row are read only a few times.
        for _ in 0..if limit == 1 { 5 } else { usize::MAX } {
            let page = lab.get(&path);
            let rows = ids(&page["jobs"]);
            assert!(rows.len() <= limit.min(1000), "{}", rows.len());
            listed.extend(rows);
            match page["next"].as_str() {
                Some(next) => path = format!("/v1/queue?limit={limit}&after={next}"),
                None => break,
            }
        }
        let unique: BTreeSet<u64> = listed.iter().copied().collect();
        assert_eq!(unique.len(), listed.len(), "no job is listed twice");
        assert!(limit == 1 || unique == submitted);
    }
    let overview = lab.get("/v1/queue?each=10");
    assert_eq!((ids(&overview["jobs"]).len(), &overview["next"]), (20, &Value::Null));
    assert!(ids(&lab.get("/v1/queue?each=100000")["jobs"]).len() <= 1000);
    assert_eq!(lab.problem("GET", "/v1/queue?after=nonsense", "").0, 400);
    assert_eq!(ids(&lab.get("/v1/history?limit=100000")).len(), 1000);
}

#[test]
fn unread_answers_do_not_block_others() {
    let lab = Lab::new();
    with_jobs(&lab);
    let unread: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = lab.connect();
            stream.write_all(b"GET /v1/queue?limit=100000 HTTP/1.1\r\nhost: carma\r\n\r\n").unwrap();
            stream
        })
        .collect();
    let begin = Instant::now();
    lab.submit(&job("next"), None);
    // Less than 100 ms where nothing else runs; 48 s with answers of 100,000 rows.
    assert!(begin.elapsed() < Duration::from_secs(10), "{:?}", begin.elapsed());
    drop(unread);
}
