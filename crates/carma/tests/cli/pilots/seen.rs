//! What metrics, lists of GPUs and exports show of a server and its pool.

use carma_testing::need;

use super::lab::Lab;
use crate::manager::metrics::prometheus::promtool;

#[test]
fn a_server_and_its_pool_are_in_metrics_lists_and_exports() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 5");
    lab.started(job, 1);
    let server = lab.servers()[0].clone();
    let (node, batch_job) = (server["node"].as_str().unwrap(), server["batch_job"].as_str().unwrap());

    let page = lab.text(&["metrics"]);
    for line in [
        "carma_servers{connected=\"true\"} 1",
        "carma_servers{connected=\"false\"} 0",
        &format!("carma_server_info{{server=\"s1\",node=\"{node}\",pool=\"gpu\",batch_job=\"{batch_job}\"}} 1"),
        "carma_server_jobs{server=\"s1\"} 1",
        "carma_pilots{pool=\"gpu\",state=\"connected\"} 1",
        "carma_pool_paused{pool=\"gpu\"} 0",
        "carma_pool_failures{pool=\"gpu\"} 0",
    ] {
        assert!(page.lines().any(|written| written == line), "{line} is not in {page}");
    }
    assert!(page.contains("carma_server_ends_in_seconds{server=\"s1\"} "), "{page}");
    assert!(page.lines().any(|line| line.starts_with("carma_gpu_info{gpu=\"s1/gpu0\"") && line.contains(&format!("node=\"{node}\""))));
    let checked = need!(promtool(&["check", "metrics"], Some(&page)));
    let complaints = String::from_utf8(checked.stderr).unwrap();
    assert!(complaints.lines().all(|line| line.starts_with("DCGM_")), "{complaints}");

    let gpus = lab.json(&["gpus"]);
    let [first, second] = &gpus["remote"].as_array().unwrap()[..] else { panic!("{gpus}") };
    assert_eq!((&first["device"], &first["node"], &second["device"]), (&"s1/gpu0".into(), &node.into(), &"s1/gpu1".into()));
    assert!(gpus["gpus"].as_array().unwrap().is_empty() && gpus.get("driver").is_none(), "the manager's host has none: {gpus}");
    let table = lab.text(&["gpus"]);
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines.iter().all(|line| line.chars().count() <= 80), "{table}");
    assert!(lines[0].starts_with("GPU  NAME ") && lines[1] == format!("{node} (server s1)"), "{table}");
    assert!(lines[2].starts_with("  0  A100-SXM4-40GB ") && table.contains(&format!("job {job}  ")), "{table}");

    assert_eq!(lab.finished(job), 1);
    let exported = lab.text(&["export"]);
    let mut table = csv::Reader::from_reader(exported.as_bytes());
    let column = table.headers().unwrap().iter().position(|name| name == "gpu_seconds").unwrap();
    let row = table.records().next().unwrap().unwrap();
    assert!(row[column].parse::<f64>().unwrap() >= 2.0, "{exported}");
}
