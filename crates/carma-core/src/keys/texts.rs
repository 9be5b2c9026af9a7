//! Keys that are switches, text and paths: every value that parses is allowed.

use std::path::PathBuf;

use super::{Checker, KeyInfo, Kind, Setting};

macro_rules! as_written {
    ($($type:ty: $kind:expr;)+) => {$(
        impl Setting for $type {
            type Written = Self;
            type Value = Self;
            const KIND: Kind = $kind;

            fn read(written: &Self, _: Option<&Self>, _: &KeyInfo, _: &mut Checker) -> Option<Self> {
                Some(written.clone())
            }

            fn write(value: &Self) -> Option<Self> {
                Some(value.clone())
            }
        }
    )+};
}

as_written! {
    bool: Kind::Switch;
    String: Kind::Other("text");
    PathBuf: Kind::Other("a path");
    Vec<String>: Kind::Other("a list of texts");
}
