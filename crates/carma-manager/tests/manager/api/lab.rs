//! A manager that only observes, and the plainest of clients.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use std::{env, fs};

use carma_manager::api::{Problem, Shutdown};
use carma_manager::configuration::{Configuration, NetworkConfig};
use carma_manager::engine::{Engine, Handle, Setup, World};
use carma_manager::places::Places;
use carma_manager::serve::{PageFile, ServeError, Server, Serving};
use carma_manager::store::Store;
use carma_manager::supervise::{Enforced, LaunchServer};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::runtime;
use tokio::sync::oneshot;

/// Long enough for the slowest machine; it does not delay a passing test.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);

/// A page of one file.
pub(super) const PAGES: &[PageFile] =
    &[PageFile { path: "/index.html", kind: "text/html; charset=utf-8", body: b"<!doctype html><title>page</title>" }];

pub(super) struct Lab {
    folder: TempDir,
    pub(super) store: Arc<Store>,
    handle: Handle,
    engine: Option<Engine>,
    server: Option<JoinHandle<Result<(), ServeError>>>,
    stop: Option<oneshot::Sender<()>>,
    pub(super) address: Option<std::net::SocketAddr>,
}

impl Lab {
    pub(super) fn new() -> Self {
        Self::on(|_| {})
    }

    /// On a store that is filled before the manager opens it.
    pub(super) fn on(fill: impl FnOnce(&Path)) -> Self {
        Self::build(fill, |_| NetworkConfig::default()).unwrap()
    }

    /// With access over the network, as made from the lab's folder.
    pub(super) fn with_network(network: impl FnOnce(&Path) -> NetworkConfig) -> Result<Self, ServeError> {
        Self::build(|_| {}, network)
    }

    fn build(fill: impl FnOnce(&Path), network: impl FnOnce(&Path) -> NetworkConfig) -> Result<Self, ServeError> {
        let folder = tempfile::tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let places = Places { socket: folder.path().join("run/carma.sock"), ..Places::at(folder.path()) };
        let mut configuration = Configuration::default();
        configuration.manager.network = network(folder.path());
        fill(&places.database());
        let store = Arc::new(Store::open(places.database()).unwrap());
        let world = World {
            description: "no GPUs".to_owned(),
            speed: 1.0,
            environment: [].into(),
            search_paths: [].into(),
            profiling: carma_gpu::profiling::Options::default(),
            mps_folder: folder.path().join("mps"),
            mps_program: "false".into(),
        };
        let settings = configuration.manager.clone();
        let program = env::current_exe().unwrap();
        let enforced = Enforced::default();
        let setup = Setup {
            places: places.clone(),
            configuration,
            driver: None,
            world,
            program: program.clone(),
            launch_server: Arc::new(LaunchServer::new(&program)),
            local: true,
            observes: true,
            record: None,
            enforced,
        };
        let (handle, arriving) = Engine::handle();
        let engine = Engine::start(setup, Arc::clone(&store), &handle, arriving).unwrap();
        let serving = Serving { handle: handle.clone(), store: Arc::clone(&store), places, settings, pages: PAGES, program };
        let (stop, stopped) = oneshot::channel();
        let server = Server::bind(serving)?;
        let address = server.address();
        let server = thread::spawn(move || server.run(stopped));
        Ok(Self { folder, store, handle, engine: Some(engine), server: Some(server), stop: Some(stop), address })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.folder.path().to_owned()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.path().join("run/carma.sock")
    }

    pub(super) fn connect(&self) -> UnixStream {
        connect(&self.socket())
    }

    /// Sends a request, and leaves the answer to be read.
    pub(super) fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        ask(&self.socket(), method, path, body)
    }

    pub(super) fn get(&self, path: &str) -> Value {
        self.ask("GET", path, "").value()
    }

    pub(super) fn post(&self, path: &str, body: &Value) -> Value {
        self.ask("POST", path, &body.to_string()).value()
    }

    pub(super) fn problem(&self, method: &str, path: &str, body: &str) -> (u16, Problem) {
        let answer = self.ask(method, path, body);
        let status = answer.status;
        (status, serde_json::from_str(&answer.text()).unwrap())
    }

    /// Submits a job, or an array, and says its numbers.
    pub(super) fn submit(&self, job: &Value, array: Option<&[u32]>) -> Vec<u64> {
        let submitted = self.post("/v1/jobs", &json!({ "job": job, "array": array }));
        serde_json::from_value(submitted["jobs"].clone()).unwrap()
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        drop(self.stop.take());
        let served = self.server.take().map(JoinHandle::join);
        let runtime = runtime::Builder::new_current_thread().build().unwrap();
        let _ = runtime.block_on(self.handle.shutdown(Shutdown::default()));
        let ended = self.engine.take().is_none_or(Engine::join);
        if !thread::panicking() {
            assert!(matches!(served, Some(Ok(Ok(())))) && ended);
            assert!(!self.socket().exists());
        }
    }
}

fn connect(socket: &Path) -> UnixStream {
    let stream = UnixStream::connect(socket).unwrap();
    stream.set_read_timeout(Some(TIMEOUT)).unwrap();
    stream
}

/// Sends a request as the user of this thread, and leaves the answer to be read.
pub(super) fn ask(socket: &Path, method: &str, path: &str, body: &str) -> Answer {
    let mut stream = connect(socket);
    let head = format!("{method} {path} HTTP/1.1\r\nhost: carma\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).unwrap();
    Answer::new(stream)
}

/// A job that asks for no GPU.
pub(super) fn job(name: &str) -> Value {
    json!({ "name": name, "command": { "program": ["python", "private.py"] }, "directory": "/tmp", "resources": { "gpus": 0 },
        "environment": { "PATH": "/usr/bin", "HF_TOKEN": "hf_secret" } })
}

/// What came back: the head is read, the body not yet.
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) chunked: bool,
    pub(super) body: BufReader<Box<dyn Read + Send>>,
}

impl Answer {
    pub(super) fn new(stream: impl Read + Send + 'static) -> Self {
        let mut body = BufReader::new(Box::new(stream) as Box<dyn Read + Send>);
        let head: Vec<String> = body.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
        let status = head.first().and_then(|line| line.split(' ').nth(1)?.parse().ok()).unwrap_or_else(|| panic!("no answer: {head:?}"));
        let chunked = head.iter().any(|line| line.eq_ignore_ascii_case("transfer-encoding: chunked"));
        Self { status, chunked, body }
    }

    /// The next piece of a body in pieces.
    pub(super) fn piece(&mut self) -> Option<String> {
        let mut line = String::new();
        self.body.read_line(&mut line).unwrap();
        let length = usize::from_str_radix(line.trim(), 16).ok()?;
        let mut piece = vec![0; length + 2];
        self.body.read_exact(&mut piece).unwrap();
        piece.truncate(length);
        (length > 0).then(|| String::from_utf8(piece).unwrap())
    }

    pub(super) fn text(mut self) -> String {
        if self.chunked {
            return std::iter::from_fn(|| self.piece()).collect();
        }
        let mut text = String::new();
        self.body.read_to_string(&mut text).unwrap();
        text
    }

    pub(super) fn value(self) -> Value {
        let status = self.status;
        let text = self.text();
        assert_eq!(status, 200, "{text}");
        serde_json::from_str(&text).unwrap()
    }
}
