//! The list of mapping policies.

use std::io::Write;

use anyhow::Result;
use carma_core::{POLICIES, VARIANTS};
use carma_format::{labelled, wrapped};

/// Prints every policy with its description.
pub(crate) fn list(output: &mut impl Write) -> Result<()> {
    for policy in POLICIES {
        writeln!(output, "{}", labelled(policy.name, 11, policy.about))?;
    }
    let variants = VARIANTS.map(|(prefix, about)| format!("{prefix}POLICY {about}"));
    writeln!(output, "\n{}", wrapped(&format!("{}.", variants.join("; "))))?;
    Ok(())
}
