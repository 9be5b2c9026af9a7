//! The server: HTTP and JSON over a Unix socket, and over TCP where that is wanted.
//!
//! ```text
//!  Unix socket ──► the kernel says who it is ──┐                      ┌──► Handle ──► the engine
//!                                              ├──► Caller ──► routes ┼──► Readers ──► the store
//!  TCP, TLS ─────► a token says who it is ─────┘                      └──► logs, terminals
//! ```
//!
//! A client that is slow or sends too much blocks no other: heads and bodies have a time limit; connections, large bodies and reads are counted.

mod access;
mod answer;
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
mod routes;
mod stalled;
mod timeline;
mod tokens;
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

use crate::configuration::ManagerConfig;
use crate::engine::Handle;
use crate::places::Places;
use crate::store::Store;

pub(crate) use access::bearer;
pub use pages::PageFile;
pub(crate) use pages::Pages;

use access::Access;
use concurrency_limit::ConcurrencyLimit;
use connection::Connections;
use listen::{Listeners, NetworkListener};
use readers::Readers;
use what_ifs::WhatIfs;

/// What is served.
#[derive(Debug, Clone)]
pub struct Serving {
    /// The engine.
    pub handle: Handle,
    /// The store.
    pub store: Arc<Store>,
    /// Where the socket, the logs and the configuration are.
    pub places: Places,
    /// What is configured.
    pub settings: ManagerConfig,
    /// The web page.
    pub pages: &'static [PageFile],
    /// The program that simulates: this one.
    pub program: PathBuf,
}

/// Why nothing could be served.
#[derive(Debug, Error)]
pub enum ServeError {
    /// The socket could not be made.
    #[error("cannot listen on {}: {source}", path.display())]
    Socket {
        /// The socket.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The address could not be taken.
    #[error("cannot listen on {address}: {source}")]
    Address {
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
    /// The system refused threads or the like.
    #[error("cannot start the server: {0}")]
    System(#[from] io::Error),
}

/// Work that waits for disks has at most so many threads.
const BLOCKING_THREADS: usize = 32;
/// Requests under way have so long to be answered when the manager ends.
const GRACE: Duration = Duration::from_secs(2);

/// A server that listens: who connects now is answered once it runs.
#[derive(Debug)]
pub struct Server {
    serving: Serving,
    listeners: Listeners,
}

/// What every request may use.
#[derive(Debug)]
struct Shared {
    handle: Handle,
    readers: Arc<Readers>,
    places: Places,
    settings: ManagerConfig,
    /// To send a large body.
    large_bodies: ConcurrencyLimit,
    /// To have jobs that are submitted in memory, by their size.
    submissions: ConcurrencyLimit,
    /// To ask what the engine has to think about.
    engine_queries: ConcurrencyLimit,
    /// To have the engine list the queue: many requests of one user must not fill its inbox.
    queue_queries: ConcurrencyLimit,
    metrics_cache: routes::MetricsCache,
    /// To wait for a simulation.
    simulations: ConcurrencyLimit,
    what_ifs: Arc<WhatIfs>,
}

impl Server {
    /// Makes the socket, and takes the address where one is configured.
    pub fn bind(serving: Serving) -> Result<Self, ServeError> {
        let listeners = Listeners::bind(&serving.places.socket, &serving.settings)?;
        Ok(Self { serving, listeners })
    }

    /// The address that is listened on, where one is.
    pub fn address(&self) -> Option<SocketAddr> {
        self.listeners.network.as_ref().map(NetworkListener::address)
    }

    /// The address where metrics alone are told, where there is one.
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
        let shared = Shared {
            handle,
            readers: Arc::new(Readers::new(store)),
            places,
            settings,
            large_bodies: ConcurrencyLimit::new(16, 2),
            submissions: routes::submission_limit(),
            // Of forecasts some wait for a dry run.
            engine_queries: ConcurrencyLimit::new(64, 4),
            queue_queries: ConcurrencyLimit::new(64, 4),
            metrics_cache: routes::MetricsCache::default(),
            simulations: ConcurrencyLimit::new(8, 2),
            what_ifs,
        };
        let shared = Arc::new(shared);
        let open = routes::metrics_alone(Arc::clone(&shared));
        let connections = Connections::new(routes::router(shared), open, Pages::new(pages), access);
        let result = runtime.block_on(connections.serve(self.listeners, stop, GRACE));
        // Streams that go on for ever end here.
        runtime.shutdown_timeout(GRACE);
        result
    }
}

/// Serves until told to stop.
pub fn serve(serving: Serving, stop: oneshot::Receiver<()>) -> Result<(), ServeError> {
    Server::bind(serving)?.run(stop)
}
