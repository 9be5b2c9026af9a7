//! Metrics for Prometheus.

mod page;
pub(crate) mod prometheus;
mod rules;
mod scraped;

use std::collections::BTreeSet;

use carma_core::{JobId, MiB};

use super::lab::program;
use super::up::ManagerProcess;

/// Everything on, on a port that is free.
const LISTEN: &str = "[manager.metrics]\nlisten = \"127.0.0.1:0\"\n";

impl ManagerProcess {
    /// The address of the metrics without authentication.
    fn metrics_address(&self) -> String {
        let message = self.log_text();
        let (_, after) = message.rsplit_once("metrics are on http://").unwrap();
        after.split_once("/metrics").unwrap().0.to_owned()
    }

    /// Submits a training-like job with this declared memory in MiB.
    fn train(&self, name: &str, declared: u64, arguments: &str) -> JobId {
        let train =
            format!("echo 0.5 > \"$CARMA_PROGRESS\"; exec {} emu train --workload resnet50_imagenet_bs64 {arguments}", program().display());
        let mut request = self.shell_job(&train);
        request.name = Some(name.to_owned());
        (request.resources.gpus, request.resources.memory) = (1, Some(MiB(declared)));
        self.submit(request)
    }
}

/// The metrics page of a server.
fn fetch(url: &str) -> (u16, String) {
    let agent = ureq::Agent::new_with_config(ureq::Agent::config_builder().http_status_as_error(false).build());
    let mut answer = agent.get(url).call().unwrap();
    (answer.status().as_u16(), answer.body_mut().read_to_string().unwrap())
}

/// The names of all metrics on a page.
fn names(page: &str) -> BTreeSet<&str> {
    page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect()
}

/// A value of a page, by the sample's name and labels as they are written.
fn value(page: &str, sample: &str) -> Option<f64> {
    page.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}
