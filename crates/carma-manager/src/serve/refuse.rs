//! Answers to connections that are not served: in HTTP, and so that the client can read them.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, copy, sink};
use tokio::time::timeout;

/// The answer when all connections are taken.
const FULL: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\nretry-after: 1\r\nconnection: close\r\n\
    content-length: 64\r\n\r\n{\"kind\":\"unavailable\",\"message\":\"too many connections are open\"}";

/// The answer to plain HTTP on a TLS port.
pub(super) const NOT_ENCRYPTED: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: 83\r\n\r\n\
    {\"kind\":\"invalid\",\"message\":\"this port speaks TLS: ask with https://, not http://\"}";

/// Timeout for the request, and for the client to read the answer.
pub(super) const REFUSAL_TIMEOUT: Duration = Duration::from_secs(1);

/// Tells a client that all connections are taken.
pub(super) async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    // An answer before the request would be an error to the client.
    let _ = timeout(REFUSAL_TIMEOUT, stream.read(&mut [0; 4096])).await;
    let answered = async {
        stream.write_all(FULL).await?;
        stream.shutdown().await?;
        // A connection that is closed with unread data is reset, and the answer may be lost.
        copy(&mut stream, &mut sink()).await
    };
    let _ = timeout(REFUSAL_TIMEOUT, answered).await;
}

#[cfg(test)]
mod tests {
    use tokio::net::UnixStream;

    use super::*;
    use crate::api::{Problem, ProblemKind};

    #[test]
    fn refused_clients_get_the_same_form_of_error() {
        for (answer, kind) in [(FULL, ProblemKind::Unavailable), (NOT_ENCRYPTED, ProblemKind::Invalid)] {
            let (head, body) = std::str::from_utf8(answer).unwrap().split_once("\r\n\r\n").unwrap();
            assert!(head.contains(&format!("content-length: {}", body.len())), "{}", body.len());
            assert!(head.contains(&kind.status().to_string()));
            assert_eq!(serde_json::from_str::<Problem>(body).unwrap().kind, kind);
        }
    }

    #[tokio::test]
    async fn a_refused_client_gets_its_answer_however_much_it_sends() {
        let (mut client, server) = UnixStream::pair().unwrap();
        let refused = tokio::spawn(refuse(server));
        let request = format!("POST /v1/jobs HTTP/1.1\r\ncontent-length: 100000\r\n\r\n{}", " ".repeat(100_000));
        client.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        client.read_to_end(&mut answer).await.unwrap();
        assert_eq!(answer, FULL);
        assert!(String::from_utf8(answer).unwrap().contains("retry-after: 1\r\n"));
        drop(client);
        refused.await.unwrap();
    }
}
