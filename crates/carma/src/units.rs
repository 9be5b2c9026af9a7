//! Values on the command line.

use std::borrow::Cow;

pub(crate) use carma_manager::submission::bytes;

/// A word quoted for a shell. Words of a command line and of the environment have no zero bytes, the only ones that cannot be quoted.
pub(crate) fn quoted(text: &str) -> Cow<'_, str> {
    shlex::try_quote(text).unwrap_or_default()
}
