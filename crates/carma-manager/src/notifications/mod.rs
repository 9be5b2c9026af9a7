//! Notifications: users learn how their jobs end, by webhook, mail, desktop or their own command.
//!
//! ```text
//!  events in the store ──► describe (which are sent, and their text) ──► outbox (when, and together)
//!                                                                           │
//!  sent, or an event of the job ◄── MessageSender ◄─────────────────────────┘
//!                                     │ a shim, as the user, in their home
//!                                     └──► carma deliver ──► webhook, sendmail, notify-send, sh
//! ```
//!
//! The notifier reads committed events and records what it has sent, so that a message is sent after a crash too: rather twice than never. Without
//! subscriptions it reads and starts nothing.

mod delivery;
mod describe;
mod handle;
mod message;
mod notifier;
mod outbox;
mod sender;
mod test_messages;
mod validate;

pub use delivery::{DELIVERED, DeliveryError, deliver};
pub(crate) use handle::NotifierHandle;
pub use message::Message;
pub use validate::{NotificationError, check};

use crate::api::{Problem, ProblemKind};

/// The answer where notifications are disabled.
pub(crate) fn switched_off() -> Problem {
    ProblemKind::Conflict.because("notifications are disabled: manager.notifications.enabled is false")
}
