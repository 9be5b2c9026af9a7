//! A real Prometheus of the test's own, where one is installed.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use carma_testing::Missing;
use serde_json::Value;
use tempfile::TempDir;

use super::super::lab::until;

pub(super) struct Prometheus {
    process: Child,
    address: String,
    folder: TempDir,
}

impl Prometheus {
    /// One that scrapes this target every second.
    pub(super) fn scraping(target: &str) -> Result<Self, Missing> {
        carma_testing::program("prometheus")?;
        let folder = tempfile::tempdir().unwrap();
        // Alerts fire at once.
        let rules = fs::read_to_string(file("carma.rules.yml")).unwrap();
        let patience = |line: &str| if line.trim_start().starts_with("for: ") { "        for: 0s".to_owned() } else { line.to_owned() };
        fs::write(folder.path().join("carma.rules.yml"), rules.lines().map(patience).collect::<Vec<_>>().join("\n")).unwrap();
        let configuration = fs::read_to_string(file("prometheus.yml")).unwrap();
        let configuration = configuration.replace("15s", "1s").replace("127.0.0.1:9479", target);
        fs::write(folder.path().join("prometheus.yml"), configuration).unwrap();
        // Free a moment ago; Prometheus does not choose one for itself.
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let log = fs::File::create(folder.path().join("log")).unwrap();
        let mut command = Command::new("prometheus");
        command.arg("--config.file=prometheus.yml").arg("--storage.tsdb.path=data").arg(format!("--web.listen-address={address}"));
        let process = command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn().unwrap();
        let mut prometheus = Self { process, address, folder };
        until(|| {
            let ended = prometheus.process.try_wait().unwrap();
            assert!(ended.is_none(), "{}", fs::read_to_string(prometheus.folder.path().join("log")).unwrap());
            ureq::get(format!("http://{}/-/ready", prometheus.address)).call().ok().map(drop)
        });
        Ok(prometheus)
    }

    /// An answer of its API.
    pub(super) fn get(&self, path: &str, query: &[(&str, &str)]) -> Value {
        let request = ureq::get(format!("http://{}/api/v1/{path}", self.address)).query_pairs(query.iter().copied());
        let text = request.config().http_status_as_error(false).build().call().unwrap().body_mut().read_to_string().unwrap();
        let mut answer: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(answer["status"], "success", "{path} {query:?}: {answer}");
        answer["data"].take()
    }

    /// The values of a query.
    pub(super) fn numbers(&self, query: &str) -> Vec<f64> {
        let found = self.get("query", &[("query", query)]);
        let result = found["result"].as_array().unwrap().iter();
        result.map(|sample| sample["value"][1].as_str().unwrap().parse().unwrap()).collect()
    }
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        // Our own child.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The output of promtool.
pub(crate) fn promtool(arguments: &[&str], input: Option<&str>) -> Result<Output, Missing> {
    use std::io::Write;
    carma_testing::program("promtool")?;
    let mut command = Command::new("promtool");
    command.args(arguments).current_dir(folder()).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    process.stdin.take().unwrap().write_all(input.unwrap_or_default().as_bytes()).unwrap();
    Ok(process.wait_with_output().unwrap())
}

/// A file for Prometheus that comes with carma.
pub(super) fn file(name: &str) -> PathBuf {
    folder().join(name)
}

fn folder() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/prometheus"))
}
