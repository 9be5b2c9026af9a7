//! The GPUs of this process, as its environment makes them visible.

use super::error::CudaError;
use super::mps::{MpsConnection, MpsSettings};
use super::program::{Program, Rank};
use crate::machine::Machine;
use crate::state::visible;

/// `cudaErrorInvalidDevice`.
const INVALID_DEVICE: u32 = 101;

/// Opens a context for each rank, as a CUDA program of this process would: on its visible GPUs, in their order,
/// and as a client of MPS if a daemon listens.
pub fn launch<'a>(machine: &'a Machine, ranks: &[Rank<'_>]) -> Result<Program<'a>, CudaError> {
    let [devices, order] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"].map(|name| std::env::var(name).ok());
    let seen = machine.with(|state| visible(state, devices.as_deref(), order.as_deref()))?;
    match seen.get(..ranks.len()) {
        Some(places) => Program::attach(machine, places, ranks, MpsConnection::open(&MpsSettings::of_environment(machine))?),
        None if seen.is_empty() => Err(CudaError::NoDevice),
        None => Err(CudaError::from_code(INVALID_DEVICE)),
    }
}
