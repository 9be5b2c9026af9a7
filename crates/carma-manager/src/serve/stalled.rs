//! A connection whose client does not read its answer is closed: the answer would stay in memory for as long as the client likes.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::response::Response;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

/// Whether the answer under way is held in memory as a whole. Logs, events and terminals are not: they are read piece by piece, and a client may
/// pause for as long as it wants.
#[derive(Debug, Clone, Default)]
pub(super) struct BufferedAnswer(Arc<AtomicBool>);

impl BufferedAnswer {
    /// Notes what kind of answer is sent next.
    pub(super) fn note(&self, answer: &Response<Body>) {
        self.0.store(answer.body().size_hint().exact().is_some(), Ordering::Relaxed);
    }
}

/// A connection that fails when a held answer is not read for too long.
#[derive(Debug)]
pub(super) struct StallGuard<S> {
    stream: S,
    limit: Duration,
    held: BufferedAnswer,
    stalled: Option<Pin<Box<Sleep>>>,
}

impl<S> StallGuard<S> {
    pub(super) fn new(stream: S, limit: Duration, held: BufferedAnswer) -> Self {
        Self { stream, limit, held, stalled: None }
    }

    /// The result of a write: an error if it has waited too long.
    fn guard<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() || !self.held.0.load(Ordering::Relaxed) {
            self.stalled = None;
            return written;
        }
        let limit = self.limit;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(limit)));
        ready!(stalled.as_mut().poll(context));
        self.stalled = None;
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client does not read its answer")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for StallGuard<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for StallGuard<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.guard(written, context)
    }

    fn poll_write_vectored(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[io::IoSlice<'_>]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, bytes);
        self.guard(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        self.guard(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::*;

    fn guarded(answer: Body) -> (StallGuard<tokio::io::DuplexStream>, tokio::io::DuplexStream) {
        let (near, far) = duplex(16);
        let held = BufferedAnswer::default();
        held.note(&Response::new(answer));
        (StallGuard::new(near, Duration::from_millis(20), held), far)
    }

    #[tokio::test]
    async fn an_answer_that_is_not_read_ends_the_connection() {
        let (mut server, mut client) = guarded(Body::from("a long answer"));
        assert_eq!(server.write_all(&[0; 64]).await.unwrap_err().kind(), io::ErrorKind::TimedOut);
        // One that is read in time is sent whole, however slowly.
        let reader = tokio::spawn(async move {
            let mut all = Vec::new();
            client.read_to_end(&mut all).await.unwrap();
            all.len()
        });
        server.write_all(&[0; 64]).await.unwrap();
        drop(server);
        assert_eq!(reader.await.unwrap(), 16 + 64);
    }

    #[tokio::test]
    async fn a_client_may_pause_a_stream() {
        let (mut server, _client) = guarded(Body::from_stream(tokio_stream::pending::<io::Result<Vec<u8>>>()));
        assert!(tokio::time::timeout(Duration::from_millis(100), server.write_all(&[0; 64])).await.is_err(), "it still waits");
    }
}
