//! Servers: `4xA100-40GB`, `312x8xV100-32GB`, several separated by commas.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::gpu_type::{GPU_TYPES, GpuType};

/// Upper limit on GPUs, so that a typing error does not exhaust memory.
const MOST_GPUS: u64 = 1_000_000;

/// Servers of one kind.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ServerGroup {
    /// Number of servers.
    pub servers: u32,
    /// GPUs in each.
    pub gpus: u16,
    /// Kind of the GPUs.
    pub kind: &'static GpuType,
}

/// All servers of a simulation.
///
/// ```
/// use carma_sim::Servers;
/// let servers: Servers = "311x8xV100-32GB,2xV100-32GB".parse().unwrap();
/// assert_eq!((servers.groups.len(), servers.gpus()), (2, 2490));
/// assert!("4xA100".parse::<Servers>().unwrap_err().to_string().contains("A100-40GB"));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Servers {
    /// The groups, in order.
    pub groups: Vec<ServerGroup>,
}

impl Servers {
    /// Number of GPUs.
    pub fn gpus(&self) -> u32 {
        self.groups.iter().map(|group| group.servers * u32::from(group.gpus)).sum()
    }
}

/// Error in a description of servers.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ServersError {
    /// Wrong form.
    #[error("{0:?} is not a server description: write 4xA100-40GB, or 312x8xV100-32GB for 312 of 8 GPUs")]
    Form(String),
    /// Unknown GPU.
    #[error("unknown GPU type {0:?}: give one of {names}", names = GPU_TYPES.map(|kind| kind.name).join(", "))]
    UnknownGpu(String),
    /// Too many GPUs.
    #[error("{0} GPUs are more than the {MOST_GPUS} that can be simulated")]
    TooMany(u64),
}

impl FromStr for Servers {
    type Err = ServersError;
    fn from_str(text: &str) -> Result<Self, ServersError> {
        let groups = text.split(',').map(|group| parse_group(group.trim())).collect::<Result<Vec<_>, _>>()?;
        let gpus = groups.iter().map(|group| u64::from(group.servers) * u64::from(group.gpus)).sum();
        if gpus > MOST_GPUS { Err(ServersError::TooMany(gpus)) } else { Ok(Self { groups }) }
    }
}

fn parse_group(text: &str) -> Result<ServerGroup, ServersError> {
    let form = || ServersError::Form(text.to_owned());
    let (first, rest) = text.split_once('x').ok_or_else(form)?;
    // A second number before the next x: several servers.
    let nested = rest.split_once('x').and_then(|(gpus, kind)| Some((first.parse().ok()?, gpus.parse().ok()?, kind)));
    let (servers, gpus, kind) = match nested {
        Some(nested) => nested,
        None => (1, first.parse().map_err(|_| form())?, rest),
    };
    if servers == 0 || gpus == 0 {
        return Err(form());
    }
    let kind = GpuType::find(kind).ok_or_else(|| ServersError::UnknownGpu(kind.to_owned()))?;
    Ok(ServerGroup { servers, gpus, kind })
}

impl fmt::Display for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, ServerGroup { servers, gpus, kind }) in self.groups.iter().enumerate() {
            let comma = if place == 0 { "" } else { "," };
            let several = if *servers == 1 { String::new() } else { format!("{servers}x") };
            write!(f, "{comma}{several}{gpus}x{}", kind.name)?;
        }
        Ok(())
    }
}
