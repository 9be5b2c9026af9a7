//! Traces of all formats, compressed or not.

#![no_main]

use std::sync::LazyLock;

use carma_sim::Catalogue;
use carma_sim::trace::{ReadLimits, Trace};
use libfuzzer_sys::fuzz_target;

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(Catalogue::shipped);

fuzz_target!(|bytes: &[u8]| {
    let limits = ReadLimits { line_bytes: 1 << 16, total_bytes: 1 << 20, jobs: 10_000 };
    if let Ok(trace) = Trace::parse("trace", bytes, &CATALOGUE, &limits) {
        let mut written = Vec::new();
        trace.write_csv(&CATALOGUE, &[], &mut written).expect("a vector takes everything");
        let again = Trace::parse("trace.csv", written.as_slice(), &CATALOGUE, &ReadLimits::default());
        assert!(trace.jobs.is_empty() || again.is_ok(), "what we write, we read: {again:?}");
    }
});
