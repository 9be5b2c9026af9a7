//! Files read and written, with errors that name them.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::Path;

use anyhow::{Context, Result};
use carma_format::count;
use carma_sim::{Observations, TableError, Trace};

/// Reads a table with its own reader.
pub(crate) fn read_table<T, E: std::error::Error + Send + Sync + 'static>(
    file: &Path,
    read: impl FnOnce(File) -> Result<T, E>,
) -> Result<T> {
    let table = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    read(table).with_context(|| format!("{} cannot be used", file.display()))
}

/// Reads measurements, and reports unknown workloads.
pub(crate) fn read_observations<Run>(file: &Path, read: impl FnOnce(File) -> Result<Observations<Run>, TableError>) -> Result<Vec<Run>> {
    let Observations { runs, unknown } = read_table(file, read)?;
    if !unknown.is_empty() {
        let names: Vec<String> = unknown.into_iter().collect();
        eprintln!("carma: {}: rows of unknown workloads are left out: {}", file.display(), names.join(", "));
    }
    Ok(runs)
}

/// Creates a file to write to.
pub(crate) fn create(file: &Path) -> Result<BufWriter<File>> {
    Ok(BufWriter::new(File::create(file).with_context(|| format!("cannot create {}", file.display()))?))
}

/// Writes charts, by name and content, into a folder, which is created if missing.
pub(crate) fn write_charts(folder: &Path, charts: &[(String, String)]) -> Result<()> {
    fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, chart) in charts {
        let file = folder.join(name);
        fs::write(&file, chart).with_context(|| format!("cannot write {}", file.display()))?;
    }
    eprintln!("carma: wrote {} charts to {}", charts.len(), folder.display());
    Ok(())
}

/// Reports the skipped jobs of a trace, and why.
pub(crate) fn report_skipped(trace: &Trace) {
    for (why, jobs) in &trace.skipped {
        eprintln!("carma: {} left out: {why}", count(*jobs as usize, "job"));
    }
}

/// Writes to a file; `-` is standard output.
pub(crate) fn write_to(file: &Path, output: &mut impl Write, write: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    if file == Path::new("-") {
        return write(output);
    }
    let mut written = create(file)?;
    write(&mut written)?;
    written.flush().with_context(|| format!("cannot write {}", file.display()))
}
