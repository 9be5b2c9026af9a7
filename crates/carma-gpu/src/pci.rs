//! PCI addresses of GPUs.

use std::fmt;
use std::str::FromStr;

use serde::Serialize;
use thiserror::Error;

/// A PCI address: domain, bus, device, function.
///
/// ```
/// use carma_gpu::PciAddress;
/// let address: PciAddress = "00000000:07:00.0".parse().unwrap();
/// assert_eq!(address, "0000:07:00.0".parse().unwrap());
/// assert_eq!(address.to_string(), "0000:07:00.0");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(into = "String")]
pub struct PciAddress {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// A text that is no PCI address.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0:?} is not a PCI address such as 0000:07:00.0")]
pub struct NotAnAddress(String);

impl FromStr for PciAddress {
    type Err = NotAnAddress;
    fn from_str(text: &str) -> Result<Self, NotAnAddress> {
        let parse = || {
            let (rest, function) = text.rsplit_once('.')?;
            let mut parts = rest.split(':');
            let domain = u32::from_str_radix(parts.next()?, 16).ok()?;
            let (bus, device) = (u8::from_str_radix(parts.next()?, 16).ok()?, u8::from_str_radix(parts.next()?, 16).ok()?);
            parts.next().is_none().then_some(Self { domain, bus, device, function: function.parse().ok()? })
        };
        parse().ok_or_else(|| NotAnAddress(text.to_owned()))
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{}", self.domain, self.bus, self.device, self.function)
    }
}

impl From<PciAddress> for String {
    fn from(address: PciAddress) -> Self {
        address.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_sort_by_bus() {
        let address = |text: &str| text.parse::<PciAddress>().unwrap();
        assert!(address("00000000:07:00.0") < address("00000000:0F:00.0") && address("00000000:B7:00.0") < address("00000001:07:00.0"));
        assert!(["", "07:00.0", "0000:07:00", "0000:07:00:00.0", "0000:0g:00.0"].iter().all(|bad| bad.parse::<PciAddress>().is_err()));
    }
}
