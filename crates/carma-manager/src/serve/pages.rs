//! The files of the web page. They need no authentication: the page gets its data through the API.

use std::collections::HashMap;
use std::io::Write;

use axum::body::{Body, Bytes};
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG, HeaderName, IF_NONE_MATCH,
    REFERRER_POLICY, VARY, X_CONTENT_TYPE_OPTIONS,
};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use axum::response::{IntoResponse, Response};
use flate2::Compression;
use flate2::write::GzEncoder;
use sha2::{Digest, Sha256};

use crate::token::hexadecimal;

/// The page runs its own scripts only, and connects to the manager only.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      base-uri 'none'; form-action 'none'; frame-ancestors 'none'";
/// The file for the path `/`.
const INDEX: &str = "/index.html";

/// A file of the page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageFile {
    /// Its path, as in `/app.js`.
    pub path: &'static str,
    /// Its content type, as in `text/javascript`.
    pub kind: &'static str,
    /// Its content.
    pub body: &'static [u8],
}

/// The files, ready to be sent.
#[derive(Debug)]
pub(crate) struct Pages(HashMap<&'static str, PreparedFile>);

#[derive(Debug)]
struct PreparedFile {
    kind: &'static str,
    plain: Bytes,
    packed: Bytes,
    /// A hash of its content.
    tag: String,
}

impl Pages {
    pub(crate) fn new(files: &[PageFile]) -> Self {
        let ready = |file: &PageFile| {
            let tag = format!("\"{}\"", hexadecimal(&Sha256::digest(file.body)[..8]));
            (file.path, PreparedFile { kind: file.kind, plain: Bytes::from_static(file.body), packed: pack(file.body).into(), tag })
        };
        Self(files.iter().map(ready).collect())
    }

    /// The requested file, if it is one of the page.
    pub(crate) fn answer<B>(&self, request: &Request<B>) -> Option<Response> {
        let path = match request.uri().path() {
            "/" => INDEX,
            path => path,
        };
        let file = self.0.get(path)?;
        Some(match *request.method() {
            Method::GET | Method::HEAD => file.answer(request.headers()),
            _ => StatusCode::METHOD_NOT_ALLOWED.into_response(),
        })
    }
}

impl PreparedFile {
    fn answer(&self, headers: &HeaderMap) -> Response {
        let says = |name: HeaderName, wanted: &str| {
            headers.get_all(name).iter().filter_map(|value| value.to_str().ok()).any(|value| value.contains(wanted))
        };
        // A new program has a new page: browsers check each time, and get it only if it differs.
        let common = [
            (CACHE_CONTROL, "no-cache"),
            (CONTENT_SECURITY_POLICY, POLICY),
            (REFERRER_POLICY, "no-referrer"),
            (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            (VARY, "accept-encoding"),
            (ETAG, &self.tag),
        ];
        if says(IF_NONE_MATCH, &self.tag) {
            return (StatusCode::NOT_MODIFIED, common).into_response();
        }
        let kind = [(CONTENT_TYPE, self.kind)];
        if says(ACCEPT_ENCODING, "gzip") {
            return (common, kind, [(CONTENT_ENCODING, "gzip")], Body::from(self.packed.clone())).into_response();
        }
        (common, kind, Body::from(self.plain.clone())).into_response()
    }
}

fn pack(body: &[u8]) -> Vec<u8> {
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    // Writing to memory does not fail.
    let _ = packer.write_all(body);
    packer.finish().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: &[PageFile] = &[PageFile { path: "/index.html", kind: "text/html; charset=utf-8", body: b"<!doctype html>" }];

    fn ask(method: Method, path: &str, headers: &[(HeaderName, &str)]) -> Option<Response> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(name, *value);
        }
        Pages::new(FILES).answer(&request.body(()).unwrap())
    }

    #[test]
    fn page_files_have_types_and_other_paths_are_refused() {
        let first = ask(Method::GET, "/", &[]).unwrap();
        assert_eq!(first.status(), StatusCode::OK);
        assert_eq!(first.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert!(first.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().starts_with("default-src 'none'"));
        assert!(ask(Method::GET, "/v1/queue", &[]).is_none() && ask(Method::GET, "/index.htm", &[]).is_none());
        assert_eq!(ask(Method::POST, "/", &[]).unwrap().status(), StatusCode::METHOD_NOT_ALLOWED);
    }

    #[test]
    fn cached_files_are_not_sent_again_and_others_are_compressed() {
        let first = ask(Method::GET, "/", &[(ACCEPT_ENCODING, "gzip, br")]).unwrap();
        assert_eq!(first.headers()[CONTENT_ENCODING], "gzip");
        let tag = first.headers()[ETAG].to_str().unwrap();
        assert_eq!(ask(Method::GET, "/", &[(IF_NONE_MATCH, tag)]).unwrap().status(), StatusCode::NOT_MODIFIED);
        assert_eq!(ask(Method::GET, "/", &[(IF_NONE_MATCH, "\"0\"")]).unwrap().status(), StatusCode::OK);
    }
}
