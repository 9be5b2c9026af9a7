//! Reserves the measured GPU: the manager places no new jobs on it until we are done.

use std::thread;
use std::time::Duration;

use anyhow::Result;
use carma_gpu::DeviceUuid;
use carma_manager::api::GpuDetail;
use carma_manager::client::{Client, ClientError};

use crate::manager::Manager;

/// Between questions whether its jobs have ended.
const PERIOD: Duration = Duration::from_secs(1);

/// A GPU that a manager reserves for us. Drop returns it.
pub(super) struct Reserved(Option<(Client, String)>);

impl Reserved {
    /// Drains the GPU, if a manager has it, and waits until its jobs there have ended.
    pub(super) fn take(manager: &Manager, uuid: &DeviceUuid) -> Result<Self> {
        let mut client = match manager.connect() {
            Ok(client) => client,
            Err(ClientError::NoManager(_)) => return Ok(Self(None)),
            Err(error) => return Err(error.into()),
        };
        let Some(gpu) = find_gpu(&mut client, uuid)? else { return Ok(Self(None)) };
        let device = gpu.device.to_string();
        // A GPU that was already drained stays drained afterwards.
        let reserved = if gpu.drained {
            Self(None)
        } else {
            client.drain(&device, true)?;
            Self(Some((client.another()?, device.clone())))
        };
        if !gpu.tenants.is_empty() {
            eprintln!("carma: {device} is drained; waiting for its running jobs");
        }
        while find_gpu(&mut client, uuid)?.is_some_and(|gpu| !gpu.tenants.is_empty()) {
            thread::sleep(PERIOD);
        }
        Ok(reserved)
    }
}

fn find_gpu(client: &mut Client, uuid: &DeviceUuid) -> Result<Option<GpuDetail>> {
    Ok(client.gpus()?.into_iter().find(|gpu| gpu.uuid == *uuid))
}

impl Drop for Reserved {
    fn drop(&mut self) {
        if let Some((client, device)) = &mut self.0
            && let Err(error) = client.drain(device, false)
        {
            eprintln!("carma: {device} is still drained ({error}): `carma resume {device}`");
        }
    }
}
