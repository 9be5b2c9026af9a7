//! `[power]`: how much a server may draw, and whether jobs are packed or spread.

use crate::keys::ZeroIsNone;
use crate::units::Watts;
use crate::{choice, section};

section! {
    /// Power.
    PowerSettings => #[derive(Copy)] PowerConfig {
        /// Maximum power of all GPUs of a server together, predicted and measured. 0: no limit.
        budget: ZeroIsNone<Watts> [0.0..=1_000_000.0] = None;
        /// Power limit that is set on each GPU, where the driver permits it. 0: unchanged.
        cap: ZeroIsNone<Watts> [0.0..=1_000_000.0] = None;
        /// Prefer idle GPUs, or GPUs in use where sharing saves energy.
        prefer: PowerPreference = PowerPreference::Spread;
    }
}

choice! {
    /// Where a job goes when both an idle GPU and one in use are possible.
    #[derive(Default)]
    PowerPreference {
        /// To the idle GPU: the job ends sooner.
        #[default]
        Spread = "spread",
        /// To the GPU in use, where that pays: an idle GPU draws less.
        Pack = "pack",
    }
}
