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

/// The same, written.
pub(crate) fn amount(bytes: u64) -> String {
    let whole = |shift: u32| bytes.is_multiple_of(1 << shift);
    let (shift, unit) = [(30, "G"), (20, "M")].into_iter().find(|(shift, _)| whole(*shift)).unwrap_or((10, "K"));
    format!("{}{unit}", bytes >> shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_read_and_written() {
        assert_eq!(["4G", "512M", "100k"].map(bytes), [Some(4 << 30), Some(512 << 20), Some(100 << 10)]);
        assert_eq!(["", "G", "4", "-1G", "4T", "99999999999999G", "é"].map(bytes), [None; 7]);
        assert_eq!([4 << 30, 1536 << 20, 3 << 10].map(amount), ["4G", "1536M", "3K"]);
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
