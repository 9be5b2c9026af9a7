//! What metrics, lists of GPUs and exports show of a server and its pool.

use carma_testing::need;

use super::lab::Lab;
use crate::manager::metrics::prometheus::promtool;

#[test]
fn a_server_and_its_pool_are_in_metrics_lists_and_exports() {
    let lab = need!(Lab::new());
    lab.pool(&[]);
    let job = lab.submit(&[], "sleep 2");
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

    assert_eq!(lab.finished(job), 1);
    let exported = lab.text(&["export"]);
    let mut table = csv::Reader::from_reader(exported.as_bytes());
    let column = table.headers().unwrap().iter().position(|name| name == "gpu_seconds").unwrap();
    let row = table.records().next().unwrap().unwrap();
    assert!(row[column].parse::<f64>().unwrap() >= 2.0, "{exported}");
}
