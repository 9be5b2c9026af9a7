//! GPUs of other servers as a table, with the name of the node above those of each server.

use std::io::{self, Write};

use carma_core::{Metric, ServerId};
use carma_format::{fitted, printable, shortened};
use carma_manager::api::{GpuDetail, GpuTenant};
use carma_manager::store::label;

use super::report::{drained, silent};
use super::table::{Columns, gibibytes, limits, short, throttled};

pub(super) fn write(gpus: &[GpuDetail], output: &mut impl Write) -> io::Result<()> {
    if gpus.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(&gpus.iter().map(|gpu| gpu.utilisation));
    columns.write_heads(output)?;
    let mut last: Option<ServerId> = None;
    for gpu in gpus {
        let server = gpu.device.server();
        if last.replace(server) != Some(server) {
            let line = format!("{} (server s{})", printable(gpu.node.as_deref().unwrap_or("the manager's host")), server.0);
            writeln!(output, "{}", fitted(&line))?;
        }
        write_gpu(gpu, &columns, output)?;
    }
    Ok(())
}

fn write_gpu(gpu: &GpuDetail, columns: &Columns, output: &mut impl Write) -> io::Result<()> {
    let number = gpu.device.instance.map_or_else(|| gpu.device.gpu.ordinal.to_string(), |_| String::new());
    let name = gpu.device.instance.map_or_else(String::new, |instance| format!("{instance} "));
    let name = shortened(&format!("{name}{}", short(&printable(&gpu.name))), columns.name);
    writeln!(
        output,
        "{number:>3}  {name:<width$}  {}  {:>9}  {:>3}",
        columns.text((gpu.memory_used, gpu.memory), gpu.utilisation[Metric::Utilisation], &gpu.utilisation),
        gpu.power.map_or_else(|| "-".to_owned(), |watts| format!("{:.0}", watts.0)),
        gpu.temperature.map_or_else(|| "-".to_owned(), |degrees| degrees.to_string()),
        width = columns.name,
    )?;
    for tenant in &gpu.tenants {
        writeln!(output, "{}", fitted(&tenant_line(tenant)))?;
    }
    let others = (gpu.foreign > 0).then(|| format!("{} processes of others", gpu.foreign));
    let notes = [gpu.lost.then(|| "the driver lost it".to_owned()), silent(gpu), drained(gpu), throttled(&gpu.throttling), others];
    notes.into_iter().flatten().try_for_each(|note| writeln!(output, "{}", fitted(&format!("     ! {note}"))))
}

/// A job in the place of a process: the processes are on another host.
fn tenant_line(tenant: &GpuTenant) -> String {
    let memory = tenant.memory.map_or_else(|| "?".to_owned(), gibibytes);
    let (job, user) = (label(tenant.attempt.job, tenant.array).to_string(), printable(&tenant.user));
    let name = tenant.name.as_deref().map(printable).unwrap_or_default();
    format!("     {job:>8}  {memory:>6} GiB  {user:<10} {name}{}", limits(tenant)).trim_end().to_owned()
}
