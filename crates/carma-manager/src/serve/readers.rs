//! A small pool of store readers. Users read in turns, on threads that may block.

use std::sync::{Arc, Mutex, PoisonError};

use super::blocking::BlockingWork;
use crate::api::{Problem, ProblemKind};
use crate::store::{Reader, Store, StoreError};

/// A pool of readers, opened as they are needed.
#[derive(Debug)]
pub(super) struct Readers {
    store: Arc<Store>,
    free: Mutex<Vec<Reader>>,
    work: BlockingWork,
}

impl Readers {
    pub(super) fn new(store: Arc<Store>, work: BlockingWork) -> Self {
        Self { store, free: Mutex::default(), work }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    /// Reads something for a user. A reader that failed is not used again.
    pub(super) async fn read<T: Send + 'static>(
        self: &Arc<Self>,
        user: u32,
        read: impl FnOnce(&Reader) -> Result<T, Problem> + Send + 'static,
    ) -> Result<T, Problem> {
        let readers = Arc::clone(self);
        let done = self.work.run(user, move || {
            let reader = readers.take()?;
            let result = read(&reader);
            if !matches!(&result, Err(problem) if problem.kind == ProblemKind::Internal) {
                readers.free.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
            }
            result
        });
        done.await?
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
