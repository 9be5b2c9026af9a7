//! Reads a model's description from a file, following a task file to the summary it names.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, Result, bail};
use carma_estimate::parse::{self, Description, Hints};
use carma_estimate::training::Training;

use super::TrainingArguments;

/// Reads `file` twice: shapes depend on the training, which depends on the description.
pub(crate) fn read(file: &Path, arguments: &TrainingArguments) -> Result<(Description, Training)> {
    let bytes = content(file)?;
    let first = parsed(file, &bytes, &arguments.training(&Hints::default()))?;
    let Some(summary) = &first.hints.summary else {
        let training = arguments.training(&first.hints);
        return Ok((parsed(file, &bytes, &training)?, training));
    };
    let pointed = file.parent().unwrap_or(Path::new(".")).join(summary);
    let training = arguments.training(&first.hints);
    let mut description =
        parsed(&pointed, &content(&pointed)?, &training).with_context(|| format!("{} names it as its model", file.display()))?;
    description.hints = first.hints;
    Ok((description, training))
}

fn parsed(file: &Path, bytes: &[u8], training: &Training) -> Result<Description> {
    parse::read(bytes, file.file_name().and_then(|name| name.to_str()), training).with_context(|| match file.extension() {
        Some(extension) if extension == "py" => {
            let name = file.display();
            format!("{name} is a script and no description of a model; carma trace-memory {name} gives its estimate")
        }
        _ => format!("{} cannot be used", file.display()),
    })
}

fn content(file: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let limit = parse::MOST_BYTES as u64;
    let open = File::open(file).with_context(|| format!("cannot read {}", file.display()))?;
    open.take(limit + 1).read_to_end(&mut bytes).with_context(|| format!("cannot read {}", file.display()))?;
    if bytes.len() as u64 > limit {
        bail!("{} is larger than {} MiB: export the graph without its weights", file.display(), limit >> 20);
    }
    Ok(bytes)
}
