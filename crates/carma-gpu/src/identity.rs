//! Names of devices that mean the same everywhere.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The UUID of a GPU (`GPU-...`) or of a MIG instance (`MIG-...`). Numbers of GPUs depend on who counts; a UUID does not.
///
/// ```
/// use carma_gpu::DeviceUuid;
/// let uuid: DeviceUuid = "GPU-5fd15f35-e148-2992-4ecb-9825e534f253".parse().unwrap();
/// assert!(!uuid.is_instance());
/// assert!("0".parse::<DeviceUuid>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(
    feature = "schema",
    derive(utoipa::ToSchema),
    schema(description = "A GPU or a MIG instance as its driver names it: `GPU-...`, `MIG-...`.")
)]
#[serde(try_from = "String", into = "String")]
pub struct DeviceUuid(String);

/// A text that is no UUID of a device.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a GPU UUID: write GPU-... or MIG-... as `carma gpus` shows it")]
pub struct NotAUuid(String);

impl DeviceUuid {
    /// As the driver writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is of a MIG instance.
    pub fn is_instance(&self) -> bool {
        self.0.starts_with("MIG-")
    }
}

impl FromStr for DeviceUuid {
    type Err = NotAUuid;
    fn from_str(text: &str) -> Result<Self, NotAUuid> {
        let rest = text.strip_prefix("GPU-").or_else(|| text.strip_prefix("MIG-"));
        // Older drivers name instances MIG-GPU-uuid/7/0.
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'/');
        match rest {
            Some(rest) if !rest.is_empty() && rest.bytes().all(plain) => Ok(Self(text.to_owned())),
            _ => Err(NotAUuid(text.to_owned())),
        }
    }
}

impl TryFrom<String> for DeviceUuid {
    type Error = NotAUuid;
    fn try_from(text: String) -> Result<Self, NotAUuid> {
        text.parse()
    }
}

impl From<DeviceUuid> for String {
    fn from(uuid: DeviceUuid) -> Self {
        uuid.0
    }
}

impl fmt::Display for DeviceUuid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
