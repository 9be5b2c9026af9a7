//! `[mps]`: limits of MPS clients.

use crate::keys::{Checker, KeyInfo, Kind, Setting};
use crate::section;

section! {
    /// Limits of MPS clients.
    MpsSettings => #[derive(Copy, Eq)] MpsConfig {
        /// Share of the SMs that an MPS client may use. 100: all.
        active_threads: SmShare [1.0..=100.0] = None;
        /// MPS clients are limited to their declared memory.
        limit_memory: bool = true;
    }
}

/// A share of the SMs in percent; 100 is no limit.
#[derive(Debug)]
pub struct SmShare;

impl Setting for SmShare {
    type Written = f64;
    type Value = Option<u8>;
    const KIND: Kind = Kind::Whole("%");

    fn read(written: &f64, _: Option<&Option<u8>>, key: &KeyInfo, check: &mut Checker) -> Option<Option<u8>> {
        let percent = u32::read(written, None, key, check)?;
        Some((percent < 100).then_some(percent as u8))
    }

    fn write(value: &Option<u8>) -> Option<f64> {
        Some(value.unwrap_or(100).into())
    }
}
