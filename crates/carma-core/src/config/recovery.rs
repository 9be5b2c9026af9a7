//! `[recovery]`: what happens after a crash.

use crate::keys::{Checker, KeyInfo, Kind, Setting};
use crate::recovery::Rung;
use crate::section;
use crate::units::{Fraction, MiB};

section! {
    /// What happens after a crash.
    RecoverySettings => RecoveryConfig {
        /// What a job requests after running out of memory, rung by rung.
        ladder: Vec<Rung> = vec![Rung::WholeGpu], Aegis: vec![buckets(), Rung::WholeGpu], Standard: vec![Rung::Add(MiB(2048)), buckets(), Rung::WholeGpu];
        /// No GPU is shared further while a job waits to be recovered.
        suspend_collocation: bool = true, Aegis: false, Standard: false;
        /// How often a job is requeued after its GPU or MPS server failed.
        displacements: u32 [0.0..=1000.0] = 3;
        /// How often a job that hangs is restarted, if its user wants that (`--on-hang restart`). The next time it fails.
        hangs: u32 [0.0..=1000.0] = 3;
    }
}

/// The ladder of AEGIS: quarters of the GPU, in steps of at most 8 GiB.
fn buckets() -> Rung {
    Rung::Buckets { shares: [0.25, 0.50, 0.75].map(Fraction::clamped).to_vec(), largest_step: MiB(8192) }
}

impl Setting for Vec<Rung> {
    type Written = Self;
    type Value = Self;
    const KIND: Kind = Kind::Other("a list of rungs");

    fn read(written: &Self, _: Option<&Self>, _: &KeyInfo, check: &mut Checker) -> Option<Self> {
        for rung in written {
            match rung {
                Rung::Add(MiB(0)) => check.refuse("add 0", "1 MiB or more to add"),
                Rung::Buckets { largest_step: MiB(0), .. } => check.refuse("largest_step 0", "a step of 1 MiB or more"),
                Rung::Buckets { shares, .. } if shares.is_empty() || !shares.is_sorted() => {
                    let shares: Vec<f64> = shares.iter().map(|share| share.get()).collect();
                    check.refuse(format!("{shares:?}"), "rising shares from 0 to 1");
                }
                _ => {}
            }
        }
        Some(written.clone())
    }

    fn write(value: &Self) -> Option<Self> {
        Some(value.clone())
    }
}
