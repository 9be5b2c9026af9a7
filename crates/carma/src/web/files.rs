//! The page as it is built from `web/` (`make web`), which is kept beside its sources so that nothing but Rust is needed to build the program.

use carma_manager::serve::PageFile;

macro_rules! file {
    ($name:literal, $kind:literal) => {
        PageFile { path: concat!("/", $name), kind: $kind, body: include_bytes!(concat!("../../../../web/dist/", $name)) }
    };
}

/// All of it.
pub(crate) const FILES: &[PageFile] = &[
    file!("index.html", "text/html; charset=utf-8"),
    file!("app.js", "text/javascript; charset=utf-8"),
    file!("app.css", "text/css; charset=utf-8"),
    file!("favicon.svg", "image/svg+xml"),
];
