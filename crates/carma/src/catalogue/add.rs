//! Adding workloads to a catalogue file, all or none of them.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use carma_sim::Catalogue;
use toml::{Table, Value};

use super::{extend, own_file, read, read_or_empty, same, view};
use crate::files::read_table;

/// Checks the workloads of `file` together with all others and adds them to the catalogue `to`.
pub(super) fn add(file: &Path, to: &Path, output: &mut impl Write) -> Result<()> {
    let measured = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"));
    let (added, present) = (if measured { from_table(file)? } else { read(file)? }, read_or_empty(to)?);
    let mut catalogue = Catalogue::shipped();
    // The user's own file is always read, so additions to another file must be compatible with it.
    if let Some(own) = own_file().filter(|own| own.exists() && !same(own, to)) {
        extend(&mut catalogue, &own, &read(&own)?)?;
    }
    extend(&mut catalogue, to, &present)?;
    let (before, known) = (catalogue.iter().len(), catalogue.sources().clone());
    extend(&mut catalogue, file, &added)?;
    let workloads = catalogue.iter().len() - before;
    if workloads == 0 {
        bail!("{} has no [[workload]]", file.display());
    }
    let changed = catalogue.sources().iter().find(|(key, text)| known.get(*key).is_some_and(|before| before != *text));
    if let Some((key, _)) = changed {
        bail!("{}: source {key:?} differs from the existing source of this name: use another key", file.display());
    }
    replace(to, &joined(&present, &added)?)?;
    Ok(writeln!(output, "{workloads} added to {}", to.display())?)
}

/// Workloads measured alone, in the form of a catalogue file.
fn from_table(file: &Path) -> Result<String> {
    let measured = read_table(file, Catalogue::from_solo)?;
    view::file(&measured, measured.iter().map(|(_, workload)| workload))
}

/// Both files in one. Where both list sources, tables must be merged, and comments are lost.
fn joined(present: &str, added: &str) -> Result<String> {
    let appended = if present.trim().is_empty() { added.to_owned() } else { format!("{}\n\n{added}", present.trim_end()) };
    if appended.parse::<Table>().is_ok() {
        return Ok(appended);
    }
    let mut all: Table = present.parse()?;
    let added: Table = added.parse()?;
    for (key, value) in added {
        match (all.get_mut(&key), value) {
            (Some(Value::Table(all)), Value::Table(more)) => all.extend(more),
            (Some(Value::Array(all)), Value::Array(more)) => all.extend(more),
            (_, value) => drop(all.insert(key, value)),
        }
    }
    Ok(toml::to_string(&all)?)
}

/// Writes a temporary file and renames it, so that readers see either the old or the new file.
fn replace(file: &Path, text: &str) -> Result<()> {
    let context = || format!("cannot write {}", file.display());
    // Replaces the target of a link, not the link.
    let target = file.canonicalize().unwrap_or_else(|_| file.to_owned());
    let name = target.file_name().ok_or_else(|| anyhow!("{} is not a file", file.display()))?.to_string_lossy().into_owned();
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_owned);
    fs::create_dir_all(&folder).with_context(context)?;
    let beside = folder.join(format!(".{name}.{}", std::process::id()));
    let write = || {
        let mut written = File::create(&beside)?;
        written.write_all(text.as_bytes())?;
        written.sync_all()?;
        fs::rename(&beside, &target)
    };
    write().inspect_err(|_| drop(fs::remove_file(&beside))).with_context(context)
}
