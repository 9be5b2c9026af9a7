//! `[window]`: samples of GPUs and the window over them.

use crate::keys::Checker;
use crate::telemetry::WindowRule;
use crate::units::Seconds;
use crate::{choice, section};

section! {
    /// Samples of GPUs, and the window over which they are averaged.
    WindowSettings => #[derive(Copy, Eq)] WindowConfig, checked by samples_fit {
        /// Length of a window of samples.
        length: Seconds [1.0..=3600.0] = Seconds::from_secs(30), First: Seconds::from_secs(90);
        /// Time between two samples.
        period: Seconds [0.01..=60.0] = Seconds::from_secs(1);
        /// A GPU without a sample for this long gets no job.
        stale_after: Seconds [0.01..=3600.0] = Seconds::from_secs(30);
        /// What waits until the first window of a GPU is full: every placement, or only sharing.
        first: FirstWindow = FirstWindow::Always, Standard: FirstWindow::ToShare;
    }
}

choice! {
    /// What waits until the first window of a GPU is full.
    FirstWindow {
        /// Every placement, as published.
        Always = "always",
        /// Sharing only; an idle GPU is used after one sample.
        ToShare = "to_share",
    }
}

impl WindowConfig {
    /// Length and period of windows.
    pub const fn rule(&self) -> WindowRule {
        WindowRule { length: self.length, period: self.period }
    }
}

/// A window and the time without samples must span at least one period, whichever of the keys was changed.
fn samples_fit(window: &WindowConfig, check: &mut Checker) {
    let least = window.period;
    for (key, span) in [("length", window.length), ("stale_after", window.stale_after)] {
        if span < least {
            check.refuse_key(key, span.get(), format!("a number from {} to 3600 s (window.period or more)", least.get()));
        }
    }
}
