//! Paths with queries. All parts are escaped.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;

use super::ClientError;

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~').remove(b'@');

/// A part of a path, escaped.
pub(super) fn escaped(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

/// A path with the fields of a query.
pub(super) fn with_query(path: &str, query: &impl Serialize) -> Result<String, ClientError> {
    let query = serde_urlencoded::to_string(query).map_err(|error| ClientError::Incomprehensible(error.to_string()))?;
    Ok(if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") })
}

#[cfg(test)]
mod tests {
    use carma_core::UserId;

    use super::*;
    use crate::api::{HistoryQuery, LogQuery, LogStream};
    use crate::phase::Phase;

    #[test]
    fn query_values_are_escaped() {
        let name = Some("a&state=held #é/..".to_owned());
        let query = HistoryQuery { user: Some(UserId(7)), state: Some(Phase::Done), name, ..HistoryQuery::default() };
        assert_eq!(with_query("/v1/history", &query).unwrap(), "/v1/history?user=7&state=done&name=a%26state%3Dheld+%23%C3%A9%2F..");
        assert_eq!(with_query("/v1/history", &HistoryQuery::default()).unwrap(), "/v1/history");
        let query = LogQuery { stream: LogStream::Stderr, follow: true, ..LogQuery::default() };
        assert_eq!(with_query("/l", &query).unwrap(), "/l?stream=stderr&follow=true");
        assert_eq!(format!("/v1/jobs/{}", escaped("@a/b?c")), "/v1/jobs/@a%2Fb%3Fc");
    }
}
