//! `carma pool list` and `carma pool show`.

use std::io::Write;

use anyhow::{Context, Result};
use carma_format::{duration, left, printable, right, write_table};
use carma_manager::api::PoolDetail;
use carma_manager::cluster::PilotState;

use crate::manager::{AnswerArguments, write_json};

pub(super) fn list(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let pools = arguments.manager.connect()?.pools()?;
    if arguments.json {
        return write_json(&pools, output);
    }
    if pools.is_empty() {
        eprintln!("carma: no pools; `carma pool add slurm NAME` adds one");
        return Ok(());
    }
    table(&pools, output)
}

fn table(pools: &[PoolDetail], output: &mut impl Write) -> Result<()> {
    let row = |detail: &PoolDetail| {
        let settings = &detail.pool.settings;
        let connected = detail.pilots.iter().filter(|pilot| pilot.state == PilotState::Connected).count();
        [
            detail.pool.name.to_string(),
            settings.partition.clone().unwrap_or_else(|| "default".to_owned()),
            settings.gpus.to_string(),
            duration(settings.time.get()),
            format!("{connected} of {}", settings.max),
            (detail.pilots.len() - connected).to_string(),
            printable(&detail.note.clone().unwrap_or_else(|| "a pilot is requested next".to_owned())),
        ]
    };
    let columns = [
        left("POOL", 12),
        left("PARTITION", 10),
        right("GPUS", 5),
        right("TIME", 8),
        right("PILOTS", 8),
        right("PENDING", 8),
        left("NOW", 60),
    ];
    Ok(write_table(columns, &pools.iter().map(row).collect::<Vec<_>>(), output)?)
}

pub(super) fn show(name: &str, arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let pools = arguments.manager.connect()?.pools()?;
    let detail = pools.into_iter().find(|detail| detail.pool.name.as_str() == name).with_context(|| format!("unknown pool {name:?}"))?;
    if arguments.json {
        return write_json(&detail, output);
    }
    describe(&detail, output)
}

fn describe(detail: &PoolDetail, output: &mut impl Write) -> Result<()> {
    let (pool, settings) = (&detail.pool, &detail.pool.settings);
    writeln!(output, "pool {}: {} GPUs for {} each", pool.name, settings.gpus, duration(settings.time.get()))?;
    let names = [
        ("partition", settings.partition.clone()),
        ("account", settings.account.clone()),
        ("qos", settings.qos.clone()),
        ("constraint", settings.constraint.clone()),
        ("GPU memory", pool.gpu_memory().map(|memory| memory.to_string())),
        ("host memory", settings.mem.map(|memory| memory.to_string())),
        ("setup", settings.setup.clone()),
        ("teardown", settings.teardown.clone()),
        ("sbatch", Some(settings.extra.join(" ")).filter(|extra| !extra.is_empty())),
        ("last wait in the queue", pool.queue_wait.map(|wait| duration(wait.get()))),
        ("last failure", pool.last_failure.clone()),
    ];
    for (name, value) in names.into_iter().filter_map(|(name, value)| Some((name, value?))) {
        writeln!(output, "  {name}: {}", printable(&value))?;
    }
    writeln!(
        output,
        "  at most {} pilots, {} of them in the queue; returned after {} without a job; requested for waits above {}",
        settings.max,
        settings.backlog,
        duration(settings.idle.get()),
        duration(settings.patience.get())
    )?;
    writeln!(output, "  now: {}", printable(&detail.note.clone().unwrap_or_else(|| "a pilot is requested next".to_owned())))?;
    for pilot in &detail.pilots {
        let job = pilot.batch_job.as_deref().map_or_else(|| "no number yet".to_owned(), |job| format!("Slurm job {job}"));
        let state = match (pilot.state, pilot.server) {
            (PilotState::Connected, Some(server)) => format!("is {server}"),
            (PilotState::Requesting, _) => "is being requested".to_owned(),
            _ => "has not connected yet".to_owned(),
        };
        let batch = pilot.batch_state.as_deref().map(|text| format!(", {}", printable(text))).unwrap_or_default();
        writeln!(output, "  pilot {} ({job}{batch}) {state}", pilot.name)?;
    }
    Ok(())
}
