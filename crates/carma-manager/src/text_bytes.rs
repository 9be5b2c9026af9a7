//! Bytes as a JSON string with a character for each byte: logs are mostly ASCII, and an array of numbers would be four times as long.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serializer};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>())
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(deserializer)?;
    let bytes = text.chars().map(|letter| u8::try_from(u32::from(letter)));
    bytes.collect::<Result<_, _>>().map_err(|_| D::Error::custom("a character above 255 is no byte"))
}

#[cfg(test)]
mod tests {
    use serde::Serialize;

    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Log(#[serde(with = "super")] Vec<u8>);

    #[test]
    fn every_byte_comes_back() {
        let log = Log((0..=255).collect());
        let json = serde_json::to_string(&log).unwrap();
        assert_eq!(serde_json::from_str::<Log>(&json).unwrap(), log);
        assert!(serde_json::from_str::<Log>("\"€\"").is_err());
    }
}
