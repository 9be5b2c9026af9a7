//! How a section of the configuration is declared.

/// Declares a section: its keys with type, range, default, other defaults per preset, and documentation.
///
/// It makes two structs, one of the keys that were written and one of the checked values of all keys. A default is that
/// of preset `paper`; presets and aims that differ from it, or from what they build on, are named behind it. A key without
/// a default is a section itself. A former name stands in brackets: `courtesy` in `fair_share_reserve ("courtesy"): Seconds`. A rule over several
/// keys is a function behind `checked by`.
///
/// ```
/// carma_core::section! {
///     /// Doors.
///     DoorSettings => DoorConfig {
///         /// Width of a door.
///         width: f64 [0.5..=3.0] = 0.9, Aegis: 1.2;
///         /// Whether doors are locked.
///         locked: bool = false;
///     }
/// }
/// # use carma_core::{Base, Section};
/// assert_eq!(DoorConfig::of(Base::Aegis).width, 1.2);
/// ```
#[macro_export]
macro_rules! section {
    (
        $(#[$doc:meta])*
        $settings:ident => $(#[$meta:meta])* $config:ident $(, checked by $rule:path)? {
            $($(#[doc = $about:literal])+ $key:ident $(($old:literal))?: $kind:ty $([$least:literal..=$most:expr])? $(= $value:expr $(, $preset:ident: $own:expr)*)?;)+
        }
    ) => {
        $(#[$doc])*
        /// Only the keys that were written.
        #[derive(Debug, Clone, PartialEq, Default, serde::Serialize, serde::Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct $settings {
            $($(#[doc = $about])+ #[serde($(alias = $old,)? skip_serializing_if = "Option::is_none")] pub $key: Option<<$kind as $crate::Setting>::Written>,)+
        }

        $(#[$doc])*
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $config {
            $($(#[doc = $about])+ pub $key: <$kind as $crate::Setting>::Value,)+
        }

        impl $crate::Section for $config {
            fn of(base: $crate::Base) -> Self {
                Self { $($key: $crate::section!(@base base, $kind $(, $value $(, $preset: $own)*)?),)+ }
            }
        }

        impl Default for $config {
            fn default() -> Self {
                <Self as $crate::Section>::of($crate::Base::Carma)
            }
        }

        impl $crate::Setting for $config {
            type Written = $settings;
            type Value = Self;
            const KIND: $crate::Kind = $crate::Kind::Section(&[
                $($crate::section!(@key $key, [$($old)?], $kind, concat!($($about),+) $(, ($least, $most))?),)+
            ]);

            fn read(written: &$settings, base: Option<&Self>, _: &$crate::KeyInfo, check: &mut $crate::Checker) -> Option<Self> {
                let base = base?;
                let config = Self {
                    $($key: {
                        const KEY: $crate::KeyInfo = $crate::section!(@key $key, [$($old)?], $kind, concat!($($about),+) $(, ($least, $most))?);
                        let read = |given| check.inside(KEY.name, |check| <$kind as $crate::Setting>::read(given, Some(&base.$key), &KEY, check));
                        written.$key.as_ref().and_then(read).unwrap_or_else(|| base.$key.clone())
                    },)+
                };
                $($rule(&config, check);)?
                Some(config)
            }

            fn write(value: &Self) -> Option<$settings> {
                Some(value.into())
            }
        }

        impl From<&$config> for $settings {
            fn from(config: &$config) -> Self {
                Self { $($key: <$kind as $crate::Setting>::write(&config.$key),)+ }
            }
        }
    };

    (@base $at:ident, $kind:ty) => { <$kind as $crate::Section>::of($at) };
    (@base $at:ident, $kind:ty, $value:expr $(, $preset:ident: $own:expr)*) => {
        $at.value(&[$(($crate::Base::$preset, || $own)),*], || $value)
    };

    (@key $key:ident, $old:tt, $kind:ty, $about:expr $(, $range:expr)?) => {
        $crate::KeyInfo {
            name: stringify!($key),
            formerly: $crate::section!(@formerly $old),
            doc: $about,
            kind: <$kind as $crate::Setting>::KIND,
            range: $crate::section!(@range $kind $(, $range)?),
        }
    };

    (@formerly []) => { None };
    (@formerly [$old:literal]) => { Some($old) };

    (@range $kind:ty) => { <$kind as $crate::Setting>::RANGE };
    (@range $kind:ty, $range:expr) => { Some($range) };
}
