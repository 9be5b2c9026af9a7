//! One test binary for the crate: linking once is quicker than once a file.

mod allocator;
