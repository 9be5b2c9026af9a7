//! The number of a user or group in a written configuration.

use std::fmt;

use serde::Deserializer;
use serde::de::{Error, Visitor};

/// Reads a number. Digits in quotes count too: who reads the file puts them there for names.
pub(super) fn number<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
    from.deserialize_any(AccountNumber)
}

/// The same for a key that may be missing.
pub(super) fn optional_number<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u32>, D::Error> {
    number(from).map(Some)
}

struct AccountNumber;

impl Visitor<'_> for AccountNumber {
    type Value = u32;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("the number of a user or group")
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<u32, E> {
        number.try_into().map_err(|_| E::invalid_value(serde::de::Unexpected::Unsigned(number), &self))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<u32, E> {
        number.try_into().map_err(|_| E::invalid_value(serde::de::Unexpected::Signed(number), &self))
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<u32, E> {
        text.parse().map_err(|_| E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

#[cfg(test)]
mod tests {
    use crate::config::{ShareSettings, UserQuotaSettings};

    #[test]
    fn accounts_are_numbers_or_digits() {
        let uid = |json: &str| serde_json::from_str::<UserQuotaSettings>(json).map(|read| read.uid).map_err(|error| error.to_string());
        assert_eq!((uid(r#"{"uid": 7}"#), uid(r#"{"uid": "7"}"#)), (Ok(7), Ok(7)));
        assert!(uid(r#"{"uid": "ada"}"#).unwrap_err().contains("the number of a user or group"));
        assert!(uid(r#"{"uid": -1}"#).is_err());
        let share: ShareSettings = serde_json::from_str(r#"{"gid": "7", "share": 2}"#).unwrap();
        assert_eq!((share.uid, share.gid), (None, Some(7)));
    }
}
