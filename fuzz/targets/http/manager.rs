//! A manager in this process, which accepts jobs and starts none.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use carma_manager::api;
use carma_manager::configuration::Configuration;
use carma_manager::engine::{Engine, Handle, Setup, World};
use carma_manager::places::Places;
use carma_manager::serve::{ServeError, Server, Serving};
use carma_manager::store::Store;
use carma_manager::supervise::Enforced;
use tempfile::TempDir;
use tokio::runtime;
use tokio::sync::oneshot;

/// An answer is read to this length.
const ANSWER: u64 = 1 << 20;

pub(crate) struct Manager {
    socket: PathBuf,
    handle: Handle,
    engine: Option<Engine>,
    server: Option<JoinHandle<Result<(), ServeError>>>,
    stop: Option<oneshot::Sender<()>>,
    _folder: TempDir,
}

impl Manager {
    pub(crate) fn start() -> Self {
        // As every Rust program does at its start, but here `main` is the fuzzer's.
        // SAFETY: the signal gets no handler.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_IGN) };
        // A disk would sync every submission.
        let memory = Path::new("/dev/shm");
        let folder = if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() };
        let folder = folder.expect("there is room for a store");
        let places = Places::at(folder.path());
        let configuration = Configuration::default();
        let settings = configuration.manager.clone();
        let store = Arc::new(Store::open(places.database()).expect("a new store opens"));
        let world = World {
            description: "no GPUs".to_owned(),
            speed: 1.0,
            environment: [].into(),
            search_paths: [].into(),
            profiling: carma_gpu::profiling::Options::default(),
            mps_folder: folder.path().join("mps"),
            mps_program: "false".into(),
        };
        // Simulations and messages are processes of this program: here they do nothing.
        let program = PathBuf::from("/bin/false");
        let setup = Setup {
            places: places.clone(),
            configuration,
            driver: None,
            world,
            program: program.clone(),
            local: true,
            observes: true,
            record: None,
            enforced: Enforced::default(),
        };
        let (handle, arriving) = Engine::handle();
        let engine = Engine::start(setup, Arc::clone(&store), &handle, arriving).expect("the engine starts");
        let socket = places.socket.clone();
        let serving = Serving { handle: handle.clone(), store, places, settings, pages: &[], program };
        let server = Server::bind(serving).expect("the socket is free");
        let (stop, stopped) = oneshot::channel();
        let server = thread::spawn(move || server.run(stopped));
        Self { socket, handle, engine: Some(engine), server: Some(server), stop: Some(stop), _folder: folder }
    }

    /// The start of the answer to these bytes: what comes without a pause of this length.
    pub(crate) fn ask(&self, request: &[u8], pause: Duration) -> Vec<u8> {
        let mut stream = UnixStream::connect(&self.socket).expect("the manager listens");
        stream.set_read_timeout(Some(pause)).expect("a timeout can be set");
        // The manager may refuse the head and close before it has read the body.
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        if let Err(error) = stream.take(ANSWER).read_to_end(&mut answer) {
            assert!(matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::ConnectionReset), "{error}");
        }
        answer
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        drop(self.stop.take());
        let served = self.server.take().map(JoinHandle::join);
        let runtime = runtime::Builder::new_current_thread().build().expect("a runtime starts");
        let _ = runtime.block_on(self.handle.shutdown(api::Shutdown::default()));
        let ended = self.engine.take().is_none_or(Engine::join);
        assert!(matches!(served, Some(Ok(Ok(())))) && ended, "the manager did not end as it should");
    }
}
