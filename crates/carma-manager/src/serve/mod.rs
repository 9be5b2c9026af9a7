//! The server: HTTP and JSON over a Unix socket and, if configured, TCP.
//!
//! ```text
//!  Unix socket ──► peer credentials ───────────┐                      ┌──► Handle ──► the engine
//!                                              ├──► Caller ──► routes ┼──► Readers ──► the store
//!  TCP, TLS ─────► token ──────────────────────┘                      └──► logs, terminals
//! ```
//!
//! A client that is slow or sends too much blocks no other: heads and bodies have a time limit; connections, large bodies and streams are counted; users
//! take turns at the engine, the store and other blocking work.

mod access;
mod answer;
mod blocking;
mod caller;
mod concurrency_limit;
mod connection;
mod connection_limit;
mod detail;
mod events;
mod listen;
mod logs;
mod naming;
mod pages;
mod privacy;
mod readers;
mod refuse;
mod routes;
mod stalled;
mod timeline;
mod users;
mod wait;
mod what_ifs;

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;
use tokio::runtime;
use tokio::sync::oneshot;

use crate::configuration::{ManagerConfig, NetworkConfig};
use crate::engine::Handle;
use crate::places::Places;
use crate::store::Store;

pub(crate) use access::bearer;
pub use pages::PageFile;
pub(crate) use pages::Pages;

use access::Access;
use blocking::BlockingWork;
use concurrency_limit::ConcurrencyLimit;
use connection::Connections;
use listen::{Listeners, NetworkListener};
use readers::Readers;
use what_ifs::WhatIfs;

/// Everything that the server uses.
#[derive(Debug, Clone)]
pub struct Serving {
    /// The engine.
    pub handle: Handle,
    /// The store.
    pub store: Arc<Store>,
    /// Paths of the socket, the logs and the configuration.
    pub places: Places,
    /// The settings.
    pub settings: ManagerConfig,
    /// The web page.
    pub pages: &'static [PageFile],
    /// The program that simulates: this one.
    pub program: PathBuf,
}

/// Why the server did not start.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The socket could not be created.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The address could not be bound.
    #[error("{key}: cannot listen on {address}: {source}")]
    Address {
        /// The key of the configuration.
        key: &'static str,
        /// The address.
        address: SocketAddr,
        /// Why not.
        source: io::Error,
    },
    /// A file that access over the network needs cannot be used.
    #[error("{} cannot be used: {reason}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// Another error of the system.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// Maximum number of threads for blocking work.
const BLOCKING_THREADS: usize = 32;
/// Grace time of running requests when the manager ends.
const GRACE: Duration = Duration::from_secs(2);

/// A server that listens. Requests are answered once it runs.
#[derive(Debug)]
pub struct Server {
    serving: Serving,
    listeners: Listeners,
}

/// The state that all requests share.
#[derive(Debug)]
struct Shared {
    handle: Handle,
    /// Blocking work of users, in turns.
    blocking: BlockingWork,
    readers: Arc<Readers>,
    places: Places,
    settings: ManagerConfig,
    /// Limits large bodies.
    large_bodies: ConcurrencyLimit,
    /// Limits the memory of submissions.
    submissions: ConcurrencyLimit,
    /// Limits costly questions to the engine.
    engine_queries: ConcurrencyLimit,
    /// Limits lists of the queue: requests of one user must not fill the engine's inbox.
    queue_queries: ConcurrencyLimit,
    /// Limits event streams and followed logs, which last.
    streams: ConcurrencyLimit,
    metrics_cache: routes::MetricsCache,
    /// Limits simulations.
    simulations: ConcurrencyLimit,
    what_ifs: Arc<WhatIfs>,
}

impl Server {
    /// Creates the socket, and binds the configured addresses.
    pub fn bind(serving: Serving) -> Result<Self, ServeError> {
        let network = serving.settings.network.clone();
        Self::bind_with(serving, &network)
    }

    /// Creates the socket, and binds these addresses instead of the configured ones.
    pub fn bind_with(serving: Serving, network: &NetworkConfig) -> Result<Self, ServeError> {
        let listeners = Listeners::bind(&serving.places.socket, &serving.settings, network)?;
        Ok(Self { serving, listeners })
    }

    /// The network address, if configured.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.network.as_ref().map(NetworkListener::address)
    }

    /// The address that serves only metrics, if configured.
    pub fn metrics_address(&self) -> Option<SocketAddr> {
        self.listeners.metrics.as_ref().and_then(|listener| listener.local_addr().ok())
    }

    /// Serves until `stop` is sent or dropped.
    pub fn run(self, stop: oneshot::Receiver<()>) -> Result<(), ServeError> {
        let Serving { handle, store, places, settings, pages, program } = self.serving;
        let runtime = runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(BLOCKING_THREADS)
            .thread_name("api")
            .enable_all()
            .build()?;
        let access = Access::new(&settings, self.listeners.network.as_ref().map(NetworkListener::tokens));
        let what_ifs = Arc::new(WhatIfs::new(program, places.socket.clone()));
        let blocking = BlockingWork::new();
        let shared = Shared {
            handle,
            readers: Arc::new(Readers::new(store, blocking.clone())),
            blocking,
            places,
            settings,
            large_bodies: ConcurrencyLimit::new(16, 2),
            submissions: routes::submission_limit(),
            // Some forecasts wait for a dry run.
            engine_queries: ConcurrencyLimit::new(64, 4),
            queue_queries: ConcurrencyLimit::new(64, 4),
            streams: ConcurrencyLimit::new(1024, 64),
            metrics_cache: routes::MetricsCache::default(),
            simulations: ConcurrencyLimit::new(8, 2),
            what_ifs,
        };
        let shared = Arc::new(shared);
        let open = routes::metrics_alone(Arc::clone(&shared));
        let connections = Connections::new(routes::router(shared), open, Pages::new(pages), access);
        let result = runtime.block_on(connections.serve(self.listeners, stop, GRACE));
        // Endless streams end here.
        runtime.shutdown_timeout(GRACE);
        result
    }
}
