//! The table of settings: how keys are declared. [`section!`](crate::section) declares keys with type, default, range and
//! documentation; reading, checking, showing and documenting follow from that declaration.
//!
//! ```text
//!  file ──► XSettings (written keys only) ──Setting::read──► XConfig (every key, checked, typed)
//!  show ◄── XSettings (every key)         ◄─Setting::write── XConfig
//!  docs ◄── KeyInfo (name, kind, range, documentation)
//! ```

mod aim;
mod checker;
mod choice;
mod key;
mod numbers;
mod preset;
mod section;
mod texts;

pub use aim::{Aim, Base};
pub use checker::{Checker, ConfigError, ConfigErrors};
pub use choice::Choice;
pub use key::{KeyInfo, Kind};
pub use numbers::{Number, ZeroIsNone};
pub use preset::{Preset, UnknownPreset};

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// A type of key: how its value is written in files, and how that is checked.
pub trait Setting {
    /// The value as a file, a log or the API has it.
    type Written: Debug + Clone + PartialEq + Serialize + DeserializeOwned;
    /// The checked value that the program uses.
    type Value: Debug + Clone + PartialEq;
    /// What may be written, for documentation and messages.
    const KIND: Kind;
    /// The range of a key that declares none.
    const RANGE: Option<(f64, f64)> = None;

    /// Checks a written value that replaces `base`; `None`: it is wrong, and `check` knows why.
    fn read(written: &Self::Written, base: Option<&Self::Value>, key: &KeyInfo, check: &mut Checker) -> Option<Self::Value>;

    /// The value as it would be written; `None`: the key is left out.
    fn write(value: &Self::Value) -> Option<Self::Written>;
}

/// A group of keys, itself the value of a key: `[admission]`.
pub trait Section: Setting<Value = Self> {
    /// The values to start from.
    fn of(base: Base) -> Self;
}

/// A key that may be left out; then it has no value.
impl<S: Setting> Setting for Option<S> {
    type Written = S::Written;
    type Value = Option<S::Value>;
    const KIND: Kind = S::KIND;
    const RANGE: Option<(f64, f64)> = S::RANGE;

    fn read(written: &Self::Written, base: Option<&Self::Value>, key: &KeyInfo, check: &mut Checker) -> Option<Self::Value> {
        S::read(written, base.and_then(Option::as_ref), key, check).map(Some)
    }

    fn write(value: &Self::Value) -> Option<Self::Written> {
        value.as_ref().and_then(S::write)
    }
}
