//! Telling users what became of their jobs: by a webhook, a letter, their desktop or a command of theirs.
//!
//! ```text
//!  events in the store ──► news (what is worth telling) ──► outbox (when, and together with what)
//!                                                                │
//!  told, or an event of the job ◄── Courier ◄────────────────────┘
//!                                     │ a shim, as the user, in their home
//!                                     └──► carma deliver ──► webhook, sendmail, notify-send, sh
//! ```
//!
//! The notifier reads what is committed and writes down what it has told, so that a manager that is killed in between tells it after all: sooner twice
//! than never. For users who want nothing, nothing is read and nothing is started.

mod courier;
mod delivery;
mod desk;
mod message;
mod news;
mod notifier;
mod outbox;
mod trials;
mod wishes;

pub use delivery::{DeliveryError, TOLD, deliver};
pub use message::Message;
pub(crate) use notifier::Notifier;
pub use wishes::{WishError, check};

use crate::api::{Problem, ProblemKind};

/// What is answered where nobody is told anything.
pub(crate) fn switched_off() -> Problem {
    ProblemKind::Conflict.because("notifications are switched off here: manager.notifications.enabled is false")
}
