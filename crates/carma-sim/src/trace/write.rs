//! Writes a trace, and identifies its source file.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use carma_core::Seconds;
use sha2::{Digest, Sha256};

use super::Trace;
use crate::catalogue::Catalogue;

impl Trace {
    /// Writes the trace as a CSV table that [`Trace::read`] reads, with comments on its source.
    pub fn write_csv(&self, catalogue: &Catalogue, comments: &[String], mut output: impl Write) -> io::Result<()> {
        for line in comments.iter().flat_map(|comment| comment.lines()) {
            writeln!(output, "# {line}")?;
        }
        let mut table = csv::Writer::from_writer(output);
        table.write_record(["submit_time_s", "task", "gpus", "duration_s", "user", "name"])?;
        for job in &self.jobs {
            table.write_record([
                job.submitted.get().to_string().as_str(),
                job.workload.map_or("", |id| catalogue.get(id).name.as_str()),
                job.gpus.to_string().as_str(),
                job.duration.map(Seconds::get).map(|time| time.to_string()).unwrap_or_default().as_str(),
                job.owner.as_deref().unwrap_or_default(),
                job.name.as_str(),
            ])?;
        }
        table.flush()
    }
}

/// SHA-256 of a file in hexadecimal: identifies the source of a trace.
pub fn sha256(path: &Path) -> io::Result<String> {
    const CHUNK: usize = 1 << 16;
    let mut file = File::open(path)?;
    let mut buffer = vec![0; CHUNK];
    let mut digest = Sha256::new();
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(format!("{:x}", digest.finalize())),
            read => digest.update(&buffer[..read]),
        }
    }
}
