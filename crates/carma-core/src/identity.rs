//! Identities as types: a job, an attempt, a server, a GPU, a MIG instance, a user is never a bare number.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

macro_rules! identity {
    ($(#[$doc:meta])* $name:ident($inner:ty), $format:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
        #[serde(transparent)]
        pub struct $name(pub $inner);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, $format, self.0)
            }
        }
    };
}

identity!(
    /// A job.
    JobId(u64), "job {}");
identity!(
    /// A job array: jobs submitted together that may be throttled together.
    ArrayId(u64), "array {}");
identity!(
    /// A user of the server, by the operating system's number.
    UserId(u32), "user {}");
identity!(
    /// A group of users.
    GroupId(u32), "group {}");
identity!(
    /// A server; most sites have one.
    ServerId(u32), "server {}");
identity!(
    /// A MIG instance within its GPU.
    MigInstance(u16), "mig{}");

/// A job as users name it: by its number, or by its array and index.
///
/// ```
/// use carma_core::{ArrayId, JobId, JobLabel};
/// assert_eq!(JobLabel::from(JobId(12)).to_string(), "job 12");
/// let member = JobLabel { job: JobId(38), member: Some((ArrayId(32), 6)) };
/// assert_eq!((member.to_string(), member.short()), ("job 32_6".to_owned(), "32_6".to_owned()));
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobLabel {
    /// The job.
    pub job: JobId,
    /// Its array, and its index there.
    pub member: Option<(ArrayId, u32)>,
}

impl JobLabel {
    /// The name in commands: `12`, `32_6`.
    pub fn short(self) -> String {
        self.member.map_or_else(|| self.job.0.to_string(), |(array, index)| format!("{}_{index}", array.0))
    }
}

impl From<JobId> for JobLabel {
    fn from(job: JobId) -> Self {
        Self { job, member: None }
    }
}

impl fmt::Display for JobLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "job {}", self.short())
    }
}

/// One run of a job: a job that is retried has several, one at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
pub struct AttemptId {
    /// The job that runs.
    pub job: JobId,
    /// First, second, ... run of it, from 1.
    pub number: u32,
}

impl fmt::Display for AttemptId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} attempt {}", self.job, self.number)
    }
}

/// A GPU of a server, in PCI bus order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuId {
    /// The server it sits in.
    pub server: ServerId,
    /// Its place in PCI bus order.
    pub ordinal: u16,
}

/// What a rank can run on: a whole GPU or one MIG instance of it. Ordered by server, GPU, instance.
///
/// ```
/// use carma_core::{DeviceId, ServerId};
/// let gpu = DeviceId::gpu(ServerId(0), 3);
/// assert_eq!(gpu.to_string(), "s0/gpu3");
/// assert_eq!("s0/gpu3".parse(), Ok(gpu));
/// assert_eq!(gpu.instance(1).to_string(), "s0/gpu3/mig1");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceId {
    /// The GPU.
    pub gpu: GpuId,
    /// The instance, where the GPU is partitioned.
    pub instance: Option<MigInstance>,
}

impl DeviceId {
    /// A whole GPU.
    pub const fn gpu(server: ServerId, ordinal: u16) -> Self {
        Self { gpu: GpuId { server, ordinal }, instance: None }
    }

    /// The name in texts: without the server where it is the first, which most sites have alone.
    pub fn label(self) -> String {
        let name = self.to_string();
        name.strip_prefix("s0/").map(str::to_owned).unwrap_or(name)
    }

    /// A MIG instance of this GPU.
    #[must_use]
    pub const fn instance(self, instance: u16) -> Self {
        Self { instance: Some(MigInstance(instance)), ..self }
    }

    /// The server it belongs to.
    pub const fn server(self) -> ServerId {
        self.gpu.server
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "s{}/gpu{}", self.gpu.server.0, self.gpu.ordinal)?;
        self.instance.map_or(Ok(()), |instance| write!(f, "/{instance}"))
    }
}

/// A text that names no device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} names no device: write s0/gpu3 or s0/gpu3/mig1")]
pub struct NotADevice(String);

impl FromStr for DeviceId {
    type Err = NotADevice;
    fn from_str(text: &str) -> Result<Self, NotADevice> {
        let mut parts = text.split('/');
        let mut part = |prefix| parts.next().map(|part| part.strip_prefix(prefix));
        let device = (|| {
            let server = part("s")??.parse().ok()?;
            let gpu = Self::gpu(ServerId(server), part("gpu")??.parse().ok()?);
            match part("mig") {
                None => Some(gpu),
                Some(instance) => Some(gpu.instance(instance?.parse().ok()?)),
            }
        })();
        // Written back it must read the same: no trailing parts, no leading zeros or signs.
        device.filter(|device| device.to_string() == text).ok_or_else(|| NotADevice(text.to_owned()))
    }
}

impl TryFrom<String> for DeviceId {
    type Error = NotADevice;
    fn try_from(text: String) -> Result<Self, NotADevice> {
        text.parse()
    }
}

impl From<DeviceId> for String {
    fn from(device: DeviceId) -> Self {
        device.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_are_ordered_by_server_then_gpu_then_instance() {
        let gpu = |server, ordinal| DeviceId::gpu(ServerId(server), ordinal);
        let sorted = [gpu(0, 0), gpu(0, 1), gpu(0, 1).instance(0), gpu(0, 1).instance(2), gpu(0, 2), gpu(1, 0)];
        assert!(sorted.is_sorted());
    }

    #[test]
    fn only_exact_names_are_devices() {
        for bad in ["", "gpu0", "s0", "s0/gpu", "s0/gpu1/", "s0/gpu1/mig", "s0/gpu1/mig0/x", "s00/gpu1", "s0/gpu+1", "s0/gpu70000"] {
            assert!(bad.parse::<DeviceId>().is_err(), "{bad:?}");
        }
    }
}
