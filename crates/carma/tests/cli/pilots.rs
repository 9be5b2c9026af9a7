//! Pilots on a real Slurm: three nodes on this machine, each with its own emulated GPUs.

mod agents;
mod campaign;
mod comparison;
mod estimates;
mod failures;
mod lab;
mod pools;
mod restarts;
mod seen;
