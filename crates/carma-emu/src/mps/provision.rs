//! Limits of clients on a GPU, in the format of MPS.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Limits of clients.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Provision {
    /// Share of the multiprocessors in percent.
    pub(crate) threads: f64,
    /// Most memory in bytes, by the number of the device.
    pub(crate) memory: BTreeMap<usize, u64>,
}

impl Default for Provision {
    fn default() -> Self {
        Self { threads: 100.0, memory: BTreeMap::new() }
    }
}

impl Provision {
    /// A client's own limits, from its variables. Like CUDA, it ignores invalid values.
    pub(crate) fn of_client(threads: Option<&str>, memory: Option<&str>) -> Self {
        let limit = |text: &str| {
            let (device, amount) = text.split_once('=')?;
            Some((device.trim().parse().ok()?, bytes(amount)?))
        };
        Self {
            threads: threads.and_then(percentage).unwrap_or(100.0),
            memory: memory.unwrap_or_default().split(',').filter_map(limit).collect(),
        }
    }

    /// The stricter of both limits.
    pub(crate) fn narrowed(mut self, other: &Self) -> Self {
        for (device, most) in &other.memory {
            self.memory.entry(*device).and_modify(|mine| *mine = (*mine).min(*most)).or_insert(*most);
        }
        Self { threads: self.threads.min(other.threads), ..self }
    }
}

/// A share of the multiprocessors.
pub(crate) fn percentage(text: &str) -> Option<f64> {
    text.trim().parse().ok().filter(|percentage| *percentage > 0.0 && *percentage <= 100.0)
}

/// An amount of memory such as `4G`, `512M` or `100K`.
pub(crate) fn bytes(text: &str) -> Option<u64> {
    let text = text.trim();
    let (amount, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let shift = match unit {
        "K" | "k" => 10,
        "M" | "m" => 20,
        "G" | "g" => 30,
        _ => return None,
    };
    amount.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// A limit as the daemon reads it: leading digits, in GiB before a G and in MiB before anything else; 0 is no limit.
pub(super) fn limit(text: &str) -> Option<u64> {
    let digits = text.find(|each: char| !each.is_ascii_digit()).unwrap_or(text.len());
    let shift = if text[digits..].starts_with(['G', 'g']) { 30 } else { 20 };
    text[..digits].parse::<u64>().ok()?.checked_mul(1 << shift).filter(|bytes| *bytes > 0)
}

/// A limit as the daemon prints it: whole GiB from 1 GiB on, so that 1536 MiB reads 1G.
pub(super) fn printed(bytes: u64) -> String {
    if bytes >= 1 << 30 { format!("{}G", bytes >> 30) } else { format!("{}M", bytes >> 20) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn client_limits_are_parsed() {
        assert_eq!(["4G", "512M", "100k"].map(bytes), [Some(4 << 30), Some(512 << 20), Some(100 << 10)]);
        assert_eq!(["", "G", "4", "-1G", "4T", "99999999999999G", "é"].map(bytes), [None; 7]);
    }

    #[test]
    fn limits_are_read_and_printed_as_by_nvidias_daemon() {
        let texts = ["10G", "2g", "1536M", "3m", "4", "1536K", "1.5G", "0M", "x", "", "99999999999999G"];
        let mib = [10 << 10, 2 << 10, 1536, 3, 4, 1536, 1, 0, 0, 0, 0].map(|mib: u64| Some(mib << 20).filter(|bytes| *bytes > 0));
        assert_eq!(texts.map(limit), mib);
        assert_eq!([4 << 30, 1536 << 20, 1023 << 20].map(printed), ["4G", "1G", "1023M"]);
    }

    #[test]
    fn a_client_can_only_lower_what_the_server_allows() {
        let server = Provision { threads: 50.0, memory: [(0, 4 << 30)].into() };
        let client = |threads, memory| Provision::of_client(Some(threads), Some(memory)).narrowed(&server);
        assert_eq!(client("80", "0=8G,1=512M"), Provision { threads: 50.0, memory: [(0, 4 << 30), (1, 512 << 20)].into() });
        assert_eq!(client("25.5", "0=1G"), Provision { threads: 25.5, memory: [(0, 1 << 30)].into() });
        assert_eq!(client("0", "0=,x"), server);
        assert_eq!(Provision::of_client(None, None), Provision::default());
    }
}
