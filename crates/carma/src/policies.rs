//! The list of mapping policies.

use std::io::Write;

use anyhow::Result;
use carma_core::POLICIES;

/// Prints every policy with what it does.
pub(crate) fn list(output: &mut impl Write) -> Result<()> {
    for policy in POLICIES {
        writeln!(output, "{:<10} {}", policy.name, policy.about)?;
    }
    writeln!(output, "\nest-POLICY goes by estimates even where a need is declared; or-POLICY asks for")?;
    writeln!(output, "the configured floor of free memory whatever the job, and relies on recovery.")?;
    Ok(())
}
