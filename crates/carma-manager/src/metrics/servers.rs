//! Metrics of the servers of agents, of pools and of their pilots. Without them, there are only the numbers of servers.

use super::exposition::{Labels, Page, gauge};
use super::facts::{Facts, PoolFacts};
use super::value::flag;
use crate::api::ServerDetail;
use crate::cluster::PilotState;

/// All states of pilots. Each is exported from the beginning of a pool.
const STATES: [(&str, PilotState); 3] =
    [("requesting", PilotState::Requesting), ("pending", PilotState::Pending), ("connected", PilotState::Connected)];

pub(super) fn write(page: &mut Page, facts: &Facts) {
    write_servers(page, &facts.servers, facts.status.now.0);
    write_pools(page, &facts.pools);
}

fn write_servers(page: &mut Page, servers: &[ServerDetail], now: u64) {
    let number = |connected| servers.iter().filter(|server| server.connected == connected).count() as f64;
    let both = [true, false].map(|connected| (Labels::new([("connected", &connected)]), number(connected)));
    page.family(
        gauge("carma_servers", "Servers with agents, by whether the agent is connected."),
        both.iter().map(|(labels, number)| (labels, Some(*number))),
    );
    let labels: Vec<Labels> = servers.iter().map(|server| Labels::new([("server", &format!("s{}", server.id.0))])).collect();
    let each = || labels.iter().zip(servers);
    let info: Vec<Labels> = each().map(|(labels, server)| describe(labels.clone(), server)).collect();
    page.family(gauge("carma_server_info", "Facts about the server; the value is 1."), info.iter().map(|labels| (labels, Some(1.0))));
    page.family(
        gauge("carma_server_connected", "Whether the agent of the server is connected."),
        each().map(|(labels, server)| (labels, Some(flag(server.connected)))),
    );
    page.family(
        gauge("carma_server_draining", "Whether the server starts no new jobs."),
        each().map(|(labels, server)| (labels, Some(flag(server.draining.is_some())))),
    );
    page.family(
        gauge("carma_server_jobs", "Jobs running on the server."),
        each().map(|(labels, server)| (labels, Some(f64::from(server.jobs)))),
    );
    let left = |server: &ServerDetail| Some(server.ends?.0.saturating_sub(now) as f64 / 1000.0);
    page.family(
        gauge("carma_server_ends_in_seconds", "Time until the batch job of the server ends."),
        each().map(|(labels, server)| (labels, left(server))),
    );
}

fn describe(labels: Labels, server: &ServerDetail) -> Labels {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    labels.with("node", &server.node).with("pool", text(&server.pool)).with("batch_job", text(&server.batch_job))
}

fn write_pools(page: &mut Page, pools: &[PoolFacts]) {
    let labels: Vec<Labels> = pools.iter().map(|pool| Labels::new([("pool", &pool.pool.name)])).collect();
    let each = || labels.iter().zip(pools);
    let pilots: Vec<(Labels, f64)> = each()
        .flat_map(|(labels, pool)| {
            let number = |state| pool.pilots.iter().filter(|pilot| pilot.state == state).count() as f64;
            STATES.map(|(word, state)| (labels.clone().with("state", word), number(state)))
        })
        .collect();
    page.family(gauge("carma_pilots", "Pilots of the pool, by state."), pilots.iter().map(|(labels, number)| (labels, Some(*number))));
    page.family(
        gauge("carma_pool_max_pilots", "Maximum number of pilots of the pool."),
        each().map(|(labels, pool)| (labels, Some(f64::from(pool.pool.settings.max)))),
    );
    page.family(
        gauge("carma_pool_paused", "Whether the pool is paused."),
        each().map(|(labels, pool)| (labels, Some(flag(pool.pool.paused.is_some())))),
    );
    page.family(
        gauge("carma_pool_failures", "Failed pilots since the last one connected."),
        each().map(|(labels, pool)| (labels, Some(f64::from(pool.pool.failures)))),
    );
    page.family(
        gauge("carma_pool_queue_wait_seconds", "Queue wait of the last pilot."),
        each().map(|(labels, pool)| (labels, pool.pool.queue_wait.map(carma_core::Seconds::get))),
    );
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn servers_and_pools_have_their_series() {
        let servers = json!([
            {"id": 1, "node": "gn1", "connected": true, "gpus": 2, "jobs": 3, "pilot": "carma-1", "pool": "gpu", "batch_job": "4711",
             "joined": 0, "ends": 61_500, "draining": "it ends soon"},
            {"id": 2, "node": "gn\"2", "connected": false, "gpus": 1, "jobs": 0, "pilot": null, "pool": null, "batch_job": null, "joined": 0,
             "ends": null, "draining": null},
        ]);
        let settings = json!({"gpus": 2, "time": 3600.0, "max": 4, "backlog": 1, "idle": 300.0, "patience": 60.0});
        let pool =
            json!({"name": "gpu", "settings": settings, "paused": {"failures": "no such partition"}, "failures": 3, "queue_wait": 12.5});
        let pilot = |state: &str| json!({"name": format!("carma-{state}"), "pool": "gpu", "state": state, "requested": 0});
        let pools = [PoolFacts {
            pool: serde_json::from_value(pool).unwrap(),
            pilots: serde_json::from_value(json!([pilot("pending"), pilot("connected"), pilot("connected")])).unwrap(),
        }];
        let mut page = Page::default();
        write_servers(&mut page, &serde_json::from_value::<Vec<ServerDetail>>(servers).unwrap(), 1500);
        write_pools(&mut page, &pools);
        let text = page.into_text();
        let document = include_str!("../../../../docs/metrics.md");
        for name in text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()) {
            assert!(document.contains(&format!("`{name}`")), "{name} is not documented");
        }
        insta::assert_snapshot!("servers", text.lines().filter(|line| !line.starts_with("# HELP")).collect::<Vec<_>>().join("\n"));
    }

    #[test]
    fn without_servers_only_the_counts_are_exported() {
        let mut page = Page::default();
        write_servers(&mut page, &[], 0);
        write_pools(&mut page, &[]);
        let text = page.into_text();
        let samples: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(samples, ["carma_servers{connected=\"true\"} 0", "carma_servers{connected=\"false\"} 0"]);
    }
}
