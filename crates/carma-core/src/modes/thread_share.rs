//! How much of a GPU's SMs an MPS client is given.

use crate::forecast::InterferenceProfile;

/// The share of the SMs for an MPS client, in percent; unset: all of them.
///
/// A client gets its SM activity alone and a quarter more, rounded up to the next ten and at least ten. A heavy client has all of them,
/// and light ones beside it cannot spread over more than they need. Shares may sum to more than a hundred: they are limits, not reservations.
///
/// ```
/// use carma_core::{InterferenceProfile, thread_share};
/// let client = |smact| thread_share(InterferenceProfile { smact, ..InterferenceProfile::IDLE });
/// assert_eq!([client(0.02), client(0.2), client(0.5), client(0.85)], [Some(10), Some(30), Some(70), None]);
/// ```
pub fn thread_share(client: InterferenceProfile) -> Option<u8> {
    // Less than a rounding error above a ten is that ten.
    let tens = (client.smact * 12.5 - 1e-9).ceil().clamp(1.0, 10.0);
    Some(tens as u8 * 10).filter(|percent| *percent < 100)
}
