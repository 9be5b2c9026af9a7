//! Reading traces: every format, everything that can be wrong with one, and what tools make of them.

mod formats;
mod limits;
mod malformed;
mod tools;

use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use carma_sim::trace::{ReadLimits, TraceError};
use carma_sim::{Catalogue, Trace};

/// Read once: properties ask for it hundreds of times.
static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::shipped);

fn sample_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

fn read(name: &str) -> Trace {
    Trace::read(&sample_file(name), &CATALOGUE, &ReadLimits::default()).unwrap()
}

fn parse(name: &str, bytes: impl AsRef<[u8]>) -> Result<Trace, TraceError> {
    Trace::parse(name, bytes.as_ref(), &CATALOGUE, &ReadLimits::default())
}
