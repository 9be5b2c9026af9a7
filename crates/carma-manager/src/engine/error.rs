//! Why an engine did not start.

use std::io;

use carma_core::{EventError, LogError};
use carma_gpu::DriverError;
use thiserror::Error;

use crate::executor::ExecutorError;
use crate::store::StoreError;

/// Why an engine did not start.
#[derive(Debug, Error)]
pub enum EngineError {
    /// The store could not be used.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The settings or the event log.
    #[error(transparent)]
    Rules(#[from] LogError),
    /// A thread could not be started.
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
    /// The core refused what was in the store.
    #[error("the scheduler does not accept the contents of the store: {0}")]
    Refused(#[from] EventError),
    /// The driver does not answer while attempts are on its GPUs.
    #[error("attempts run on GPUs that cannot be read: {0}")]
    GpusUnreadable(DriverError),
}

impl From<ExecutorError> for EngineError {
    fn from(error: ExecutorError) -> Self {
        match error {
            ExecutorError::Store(error) => Self::Store(error),
            ExecutorError::Io(error) => Self::Thread(error),
        }
    }
}
