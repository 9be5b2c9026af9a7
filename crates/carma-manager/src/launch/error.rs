//! Why a job cannot be run as requested.

use thiserror::Error;

/// Why a job cannot be run as requested.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PlanError {
    /// A name that could be taken for an option.
    #[error("{0:?} is not the name of an image or environment")]
    NotAName(String),
    /// A path that an engine's command line cannot contain.
    #[error("{0:?} cannot be mounted into a container: rename it")]
    NotMountable(String),
    /// There is no container engine.
    #[error("no docker, podman or apptainer is installed to run the image {0:?}")]
    NoEngine(String),
    /// An environment of the host cannot be used inside an image.
    #[error("a job in a container cannot activate an environment of the machine: the image has its own")]
    ActivationInContainer,
}
