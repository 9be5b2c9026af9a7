//! The files for Prometheus and Grafana that come with carma, as far as they can be checked without either running.

use std::fs;

use carma_testing::need;
use serde_json::Value;

use super::prometheus::{file, promtool};

#[test]
fn prometheus_takes_the_rules_and_the_example_and_alerts_are_raised_when_they_should_be() {
    for arguments in [&["check", "rules", "carma.rules.yml"][..], &["check", "config", "prometheus.yml"], &["test", "rules", "tests.yml"]] {
        let output = need!(promtool(arguments, None));
        assert!(output.status.success(), "{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn every_alert_has_a_test() {
    let (rules, tests) = (fs::read_to_string(file("carma.rules.yml")).unwrap(), fs::read_to_string(file("tests.yml")).unwrap());
    let alerts: Vec<&str> = rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")).collect();
    assert!(alerts.len() > 9);
    let untested: Vec<_> = alerts.iter().filter(|alert| !tests.contains(&format!("alertname: {alert}"))).collect();
    assert!(untested.is_empty(), "{untested:?}");
}

/// The queries of the dashboard, with what stands for its variables.
pub(super) fn dashboard_queries() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file("grafana.json")).unwrap()).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let queries = targets.map(|target| target["expr"].as_str().unwrap());
    queries.map(|query| query.replace("$__rate_interval", "10s").replace("$__range", "5m").replace("$instance", ".*")).collect()
}

#[test]
fn the_dashboard_is_consistent() {
    let queries = dashboard_queries();
    assert!(queries.len() > 40);
    assert!(queries.iter().all(|query| !query.contains('$')), "{queries:#?}");
    let dashboard: Value = serde_json::from_str(&fs::read_to_string(file("grafana.json")).unwrap()).unwrap();
    let mut taken = std::collections::BTreeSet::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        let [x, y, w, h] = ["x", "y", "w", "h"].map(|side| panel["gridPos"][side].as_u64().unwrap());
        assert!(x + w <= 24);
        let free = (x..x + w).all(|x| (y..y + h).all(|y| taken.insert((x, y))));
        assert!(free, "{}", panel["title"]);
    }
}
