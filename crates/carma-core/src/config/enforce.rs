//! `[enforce]`: memory limits of jobs that the driver enforces.

use crate::{choice, section};

section! {
    /// Memory limits of jobs that the driver enforces: driver 615 or later, root, control groups of version 2, no MIG.
    EnforceSettings => #[derive(Copy, Eq)] EnforceConfig {
        /// How strictly the driver keeps a job to its reserved memory. Unset: soft where the driver can limit memory, off elsewhere.
        memory: Option<Enforcement> = None;
        /// A job that uses more than reserved is stopped when other jobs of its GPU lack the rest of what is reserved for them.
        stop_borrowers: bool = true;
    }
}

choice! {
    /// How strictly the driver keeps a job to its reserved memory.
    #[cfg_attr(feature = "schema", derive(utoipa::ToSchema))]
    Enforcement {
        /// No limits are set.
        Off = "off",
        /// A job may borrow free memory beyond what is reserved, and is evicted when another needs its own.
        Soft = "soft",
        /// A job never gets more than reserved, unless nothing is known about its memory.
        Hard = "hard",
    }
}

impl EnforceConfig {
    /// The enforcement on a device whose driver can limit memory.
    pub fn where_possible(&self) -> Enforcement {
        self.memory.unwrap_or(Enforcement::Soft)
    }
}
