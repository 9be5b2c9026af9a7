//! `carma servers`: the servers of agents.

use std::io::Write;

use anyhow::Result;
use carma_format::{duration, left, printable, right, write_table};
use carma_manager::api::ServerDetail;
use carma_manager::store::UnixMillis;

use super::common::{AnswerArguments, write_json};

pub(super) fn run(arguments: &AnswerArguments, output: &mut impl Write) -> Result<()> {
    let client = &mut arguments.manager.connect()?;
    let servers = client.servers()?;
    if arguments.json {
        return write_json(&servers, output);
    }
    if servers.is_empty() {
        eprintln!("carma: no agent has connected: jobs run on the manager's own host");
        return Ok(());
    }
    table(&servers, client.status()?.now, output)
}

fn table(servers: &[ServerDetail], now: UnixMillis, output: &mut impl Write) -> Result<()> {
    let row = |server: &ServerDetail| {
        let ends = server.ends.map(|ends| duration(ends.0.saturating_sub(now.0) as f64 / 1000.0));
        let state = match (&server.draining, server.connected) {
            (_, false) => "not connected".to_owned(),
            (Some(reason), true) => format!("takes nothing new: {}", printable(reason)),
            (None, true) => "connected".to_owned(),
        };
        [
            format!("s{}", server.id.0),
            printable(&server.node),
            server.gpus.to_string(),
            server.jobs.to_string(),
            ends.unwrap_or_else(|| "-".to_owned()),
            server.pool.clone().unwrap_or_else(|| "-".to_owned()),
            server.batch_job.clone().unwrap_or_else(|| "-".to_owned()),
            state,
        ]
    };
    let columns = [
        left("SERVER", 7),
        left("NODE", 12),
        right("GPUS", 5),
        right("JOBS", 5),
        right("ENDS IN", 9),
        left("POOL", 10),
        left("BATCH JOB", 10),
        left("STATE", 48),
    ];
    Ok(write_table(columns, &servers.iter().map(row).collect::<Vec<_>>(), output)?)
}
