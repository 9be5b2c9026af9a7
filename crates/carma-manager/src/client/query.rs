//! Paths with queries, from parts that may hold anything.

use serde::Serialize;
use serde_json::Value;

use super::ClientError;

/// A part of a path or of a query, where nothing in it means anything but itself.
pub(super) fn escaped(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~@".contains(&byte);
    text.bytes().map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") }).collect()
}

/// A path with the fields of a query.
pub(super) fn with_query(path: &str, query: &impl Serialize) -> Result<String, ClientError> {
    let fields = match serde_json::to_value(query) {
        Ok(Value::Object(fields)) => fields,
        other => return Err(ClientError::Incomprehensible(format!("{other:?} is no query"))),
    };
    let pair = |(name, value): (String, Value)| match value {
        Value::Null => None,
        Value::String(text) => Some(format!("{name}={}", escaped(&text))),
        other => Some(format!("{name}={other}")),
    };
    let pairs: Vec<String> = fields.into_iter().filter_map(pair).collect();
    Ok(if pairs.is_empty() { path.to_owned() } else { format!("{path}?{}", pairs.join("&")) })
}

#[cfg(test)]
mod tests {
    use carma_core::UserId;

    use super::*;
    use crate::api::{HistoryQuery, LogQuery, LogStream};
    use crate::store::Phase;

    #[test]
    fn queries_are_their_fields_and_nothing_gets_out_of_a_value() {
        let name = Some("a&state=held #é/..".to_owned());
        let query = HistoryQuery { user: Some(UserId(7)), state: Some(Phase::Done), name, ..HistoryQuery::default() };
        assert_eq!(with_query("/v1/history", &query).unwrap(), "/v1/history?name=a%26state%3Dheld%20%23%C3%A9%2F..&state=done&user=7");
        assert_eq!(with_query("/v1/history", &HistoryQuery::default()).unwrap(), "/v1/history");
        let query = LogQuery { stream: LogStream::Stderr, follow: true, ..LogQuery::default() };
        assert_eq!(with_query("/l", &query).unwrap(), "/l?follow=true&stream=stderr");
        assert_eq!(format!("/v1/jobs/{}", escaped("@a/b?c")), "/v1/jobs/@a%2Fb%3Fc");
    }
}
