//! The server: a process with a context on each of the daemon's GPUs, which serves until its input is closed.

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{self, ExitCode};
use std::{env, fmt};

use super::log::Log;
use super::{Folders, SERVER_LOG};
use crate::machine::Machine;
use crate::state::{ContextKind, ContextRecord, NONE, State, is_open_to, started, visible};

/// Memory of a server on each GPU.
const MEMORY: u64 = 30 << 20;

/// Runs as `nvidia-cuda-mps-server`.
pub(crate) fn serve(name: &Path) -> ExitCode {
    let folder = Machine::folder_of(name);
    let Ok(log) = Log::open(&Folders::of(&folder).logs, SERVER_LOG, "Server") else { return ExitCode::FAILURE };
    log.line("Startup");
    match serve_until_closed(&folder, &log) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            log.line(error);
            ExitCode::FAILURE
        }
    }
}

fn serve_until_closed(folder: &Path, log: &Log) -> Result<(), String> {
    let machine = Machine::open(folder).map_err(text)?;
    let opened = machine.with(open_contexts).map_err(text)??;
    for (number, product) in opened.into_iter().enumerate() {
        log.line(format_args!("Creating server context on device {number} ({product})"));
    }
    log.line("Server has started");
    writeln!(io::stdout(), "ready").map_err(text)?;
    // The daemon sends nothing: it closes our input, or ends.
    io::stdin().read_to_end(&mut Vec::new()).map_err(text)?;
    let pid = process::id();
    machine.with(|state| state.detach(|context| context.pid == pid)).map_err(text)?;
    log.line("Exit");
    Ok(())
}

/// Opens a context on each GPU that we see; returns their names.
fn open_contexts(state: &mut State<'_>) -> Result<Vec<&'static str>, String> {
    let [devices, order] = ["CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER"].map(|name| env::var(name).ok());
    let places = visible(state, devices.as_deref(), order.as_deref());
    if places.is_empty() {
        return Err("Failed to start: no CUDA-capable device is detected".to_owned());
    }
    let pid = process::id();
    let open = |place| is_open_to(state, place, pid) && state.memory(place).free() >= MEMORY;
    if !places.iter().copied().all(open) {
        return Err("Failed to start: CUDA-capable device(s) is/are busy or unavailable".to_owned());
    }
    for place in &places {
        let instance = place.instance.map_or(NONE, |instance| instance as u32);
        let context = ContextRecord { pid, gpu: place.gpu as u32, instance, bytes: MEMORY, ..ContextRecord::new(ContextKind::MpsServer) };
        state.attach(context, started(pid).unwrap_or_default()).map_err(|_| "Failed to start: too many contexts".to_owned())?;
    }
    Ok(places.iter().map(|place| state.profile(place.gpu).facts.product.as_str()).collect())
}

fn text(error: impl fmt::Display) -> String {
    error.to_string()
}
