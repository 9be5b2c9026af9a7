//! The available estimators and software stacks.

use std::io::Write;

use anyhow::Result;
use carma_estimate::estimators::Estimator;
use carma_estimate::stack::Stack;

pub(super) fn list(output: &mut impl Write) -> Result<()> {
    writeln!(output, "{:<23}what it looks at", "estimator")?;
    for estimator in Estimator::ALL {
        writeln!(output, "{:<23}{}", estimator.name(), estimator.summary())?;
    }
    writeln!(output, "\n{:<23}{:>8}  {:<11}what it is", "stack", "context", "evidence")?;
    for stack in Stack::built_in() {
        let evidence = format!("{:?}", stack.evidence).to_lowercase();
        writeln!(output, "{:<23}{:>4.0} MiB  {evidence:<11}{}", stack.name, stack.context, stack.description)?;
    }
    Ok(())
}
