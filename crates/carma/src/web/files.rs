//! The page as built from `web/` (`make web`). It is kept beside its sources so that only Rust is needed to build the program.

use carma_manager::serve::PageFile;

macro_rules! file {
    ($place:literal, $name:literal, $kind:literal) => {
        PageFile { path: concat!($place, $name), kind: $kind, body: include_bytes!(concat!("../../../../web/dist/", $name)) }
    };
}

/// All files.
pub(crate) const FILES: &[PageFile] = &[
    file!("/", "index.html", "text/html; charset=utf-8"),
    file!("/assets/", "app.js", "text/javascript; charset=utf-8"),
    file!("/assets/", "app.css", "text/css; charset=utf-8"),
    file!("/assets/", "favicon.svg", "image/svg+xml"),
];
