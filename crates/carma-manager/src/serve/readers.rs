//! A small pool of store readers, used on threads that may block.

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

use crate::api::{Problem, ProblemKind};
use crate::store::{Reader, Store, StoreError};

/// Maximum number of parallel reads.
const MAX_READERS: usize = 8;

/// A pool of readers, opened as they are needed.
#[derive(Debug)]
pub(super) struct Readers {
    store: Arc<Store>,
    free: Mutex<Vec<Reader>>,
    permits: Arc<Semaphore>,
}

impl Readers {
    pub(super) fn new(store: Arc<Store>) -> Self {
        Self { store, free: Mutex::default(), permits: Arc::new(Semaphore::new(MAX_READERS)) }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Reads something. A reader that failed is not used again.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        read: impl FnOnce(&Reader) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let permit = Arc::clone(&self.permits).acquire_owned().await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?;
        let readers = Arc::clone(self);
        let done = spawn_blocking(move || {
            // The reader is returned when it is done, even if the client is gone.
            let _permit = permit;
            let reader = readers.take()?;
            let result = read(&reader);
            if !matches!(&result, Err(problem) if problem.kind == ProblemKind::Internal) {
                readers.free.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            result
        });
        done.await.map_err(|error| ProblemKind::Internal.because(error.to_string()))?
    }

    fn take(&self) -> Result<Reader, Problem> {
        let free = self.free.lock().unwrap_or_else(PoisonError::into_inner).pop();
        free.map_or_else(|| Ok(self.store.reader()?), Ok)
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        if matches!(error, StoreError::OutOfRange) {
            return ProblemKind::Invalid.because(error.to_string());
        }
        let source = std::error::Error::source(&error).map(|source| format!(": {source}")).unwrap_or_default();
        ProblemKind::Internal.because(format!("{error}{source}"))
    }
}
