//! Keys with a fixed set of words, and lists of such words.

use std::fmt::Debug;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Checker, KeyInfo, Kind, Setting};

/// A type with a fixed set of words; declared by [`choice!`](crate::choice).
pub trait Choice: Debug + Copy + Ord + Serialize + DeserializeOwned {
    /// Its words.
    const WORDS: &'static [&'static str];
}

/// Declares an enum whose variants are written as words, and makes it a type of keys.
#[macro_export]
macro_rules! choice {
    ($(#[$meta:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident = $word:literal,)+ }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize)]
        pub enum $name {
            $($(#[$doc])* #[serde(rename = $word)] $variant,)+
        }

        impl $crate::Choice for $name {
            const WORDS: &'static [&'static str] = &[$($word),+];
        }

        impl $crate::Setting for $name {
            type Written = Self;
            type Value = Self;
            const KIND: $crate::Kind = $crate::Kind::Choice(<Self as $crate::Choice>::WORDS);

            fn read(written: &Self, _: Option<&Self>, _: &$crate::KeyInfo, _: &mut $crate::Checker) -> Option<Self> {
                Some(*written)
            }

            fn write(value: &Self) -> Option<Self> {
                Some(*value)
            }
        }
    };
}

/// A list of words, each once, in the order of their declaration.
impl<C: Choice> Setting for Vec<C> {
    type Written = Self;
    type Value = Self;
    const KIND: Kind = Kind::Choices(C::WORDS);

    fn read(written: &Self, _: Option<&Self>, _: &KeyInfo, _: &mut Checker) -> Option<Self> {
        let mut words = written.clone();
        words.sort_unstable();
        words.dedup();
        Some(words)
    }

    fn write(value: &Self) -> Option<Self> {
        Some(value.clone())
    }
}
