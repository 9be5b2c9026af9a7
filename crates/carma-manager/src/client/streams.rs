//! Streamed answers: logs, and one job per line.

use std::io::{self, BufRead, BufReader, Read};
use std::marker::PhantomData;

use http_body_util::BodyExt;
use hyper::body::{Buf, Bytes, Incoming};

use super::connection::Connection;
use super::error::ClientError;
use crate::api::JobDetail;

/// A stream of bytes. It borrows the client.
#[derive(Debug)]
pub struct Log<'a> {
    connection: &'a Connection,
    body: Incoming,
    rest: Bytes,
}

impl<'a> Log<'a> {
    pub(super) fn new(connection: &'a Connection, body: Incoming) -> Self {
        Self { connection, body, rest: Bytes::new() }
    }
}

impl Read for Log<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.rest.is_empty() {
            match self.connection.runtime.block_on(self.body.frame()) {
                None => return Ok(0),
                Some(frame) => self.rest = frame.map_err(io::Error::other)?.into_data().unwrap_or_default(),
            }
        }
        let length = self.rest.len().min(buffer.len());
        self.rest.copy_to_slice(&mut buffer[..length]);
        Ok(length)
    }
}

/// A stream of documents, one per line.
#[derive(Debug)]
pub struct Export<'a, T = JobDetail> {
    lines: io::Lines<BufReader<Log<'a>>>,
    kind: PhantomData<T>,
}

impl<'a, T> Export<'a, T> {
    pub(super) fn new(log: Log<'a>) -> Self {
        Self { lines: BufReader::new(log).lines(), kind: PhantomData }
    }
}

impl<T: serde::de::DeserializeOwned> Iterator for Export<'_, T> {
    type Item = Result<T, ClientError>;

    fn next(&mut self) -> Option<Self::Item> {
        let line = self.lines.next()?.map_err(|error| ClientError::BrokenOff(error.to_string()));
        Some(line.and_then(|line| serde_json::from_str(&line).map_err(|error| ClientError::Incomprehensible(error.to_string()))))
    }
}
