//! The available estimators and software stacks.

use std::io::Write;

use anyhow::Result;
use carma_estimate::estimators::Estimator;
use carma_estimate::stack::Stack;
use carma_format::{left, right, write_table};

pub(super) fn list(output: &mut impl Write) -> Result<()> {
    let estimators = Estimator::ALL.map(|estimator| [estimator.name().to_owned(), estimator.summary().to_owned()]);
    write_table([left("estimator", 22), left("what it uses", 80)], &estimators, output)?;
    writeln!(output)?;
    let stack = |stack: &Stack| {
        let evidence = format!("{:?}", stack.evidence).to_lowercase();
        [stack.name.clone(), format!("{:.0} MiB", stack.context), evidence, stack.description.clone()]
    };
    let columns = [left("stack", 30), right("context", 9), left("evidence", 11), left("what it is", 80)];
    Ok(write_table(columns, &Stack::built_in().iter().map(stack).collect::<Vec<_>>(), output)?)
}
