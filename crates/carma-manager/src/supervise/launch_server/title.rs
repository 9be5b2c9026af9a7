//! What `ps` shows for supervisors: they have the command line of their launch server, unless they change it.

use std::fs;
use std::path::Path;
use std::ptr;

/// The fields of `/proc/self/stat` with the ends of the command line and of the environment, counted behind the name.
const ARGUMENTS: usize = 45;
const ENVIRONMENT_END: usize = 48;

/// A variable of the launch server whose memory the titles of supervisors use.
pub(super) fn room() -> (&'static str, String) {
    ("CARMA_TITLE", " ".repeat(512))
}

/// The memory of this process's command line, and of its environment behind it.
#[derive(Clone, Copy)]
pub(super) struct Title {
    start: usize,
    arguments: usize,
    room: usize,
}

impl Title {
    /// None where the kernel does not tell.
    pub(super) fn find() -> Option<Self> {
        let text = fs::read_to_string("/proc/self/stat").ok()?;
        let fields: Vec<usize> = text.rsplit_once(')')?.1.split_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
        let at = |field: usize| fields.get(field).copied().filter(|address| *address > 0);
        let (start, arguments_end, end) = (at(ARGUMENTS)?, at(ARGUMENTS + 1)?, at(ENVIRONMENT_END)?);
        Some(Self { start, arguments: arguments_end.checked_sub(start)?, room: end.checked_sub(start)? })
    }

    /// Shows this process as the supervisor of a folder.
    pub(super) fn show(&self, folder: &Path) {
        let title = format!("carma shim {}", folder.display());
        let length = title.len().min(self.room.saturating_sub(1));
        // The kernel shows text that is longer than the arguments up to its end.
        let cleared = self.arguments.max(length + 1);
        write(self.start, &title.as_bytes()[..length], cleared);
    }
}

#[expect(unsafe_code, reason = "the kernel shows this memory")]
fn write(start: usize, text: &[u8], cleared: usize) {
    let memory = ptr::with_exposed_provenance_mut::<u8>(start);
    // SAFETY: the memory of arguments and environment is this process's own, is writable, and is at least this long. This process has one thread, and
    // reads neither again.
    unsafe {
        ptr::write_bytes(memory, 0, cleared);
        ptr::copy_nonoverlapping(text.as_ptr(), memory, text.len());
    }
}
