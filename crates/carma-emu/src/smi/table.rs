//! `nvidia-smi` without arguments: a table for people.

use std::fmt::Write as _;

use super::gpu::{App, Gpu};
use crate::state::ContextKind;

const WIDTHS: [usize; 3] = [41, 24, 22];
const ALL: usize = WIDTHS[0] + WIDTHS[1] + WIDTHS[2] + 2;

/// The table.
pub(super) fn table(gpus: &[&Gpu]) -> String {
    let version = gpus.first().map(|gpu| gpu.driver).unwrap_or_default();
    let (driver, cuda) = (version.driver(), version.cuda());
    let cuda = format!("{}.{}", cuda / 1000, cuda % 1000 / 10);
    let title = format!(" NVIDIA-SMI {driver:<22} Driver Version: {driver:<14} CUDA Version: {cuda:<8}");
    let mut text = format!("+{}+\n|{title:<ALL$}|\n", "-".repeat(ALL));
    text += &rule('|', '-', '+');
    text += &line([" GPU  Name                 Persistence-M ", " Bus-Id          Disp.A ", " Volatile Uncorr. ECC "]);
    text += &line([" Fan  Temp   Perf          Pwr:Usage/Cap ", "           Memory-Usage ", " GPU-Util  Compute M. "]);
    text += &line(["", "", "               MIG M. "]);
    text += &rule('|', '=', '|');
    for gpu in gpus {
        text += &lines(gpu);
        text += &rule('+', '-', '+');
    }
    text + "\n" + &processes(gpus)
}

fn line(cells: [&str; 3]) -> String {
    let [first, second, third] = cells;
    let [a, b, c] = WIDTHS;
    format!("|{first:<a$}|{second:<b$}|{third:<c$}|\n")
}

fn rule(first: char, fill: char, last: char) -> String {
    let parts = WIDTHS.map(|width| fill.to_string().repeat(width));
    format!("{first}{}{last}\n", parts.join("+"))
}

fn lines(gpu: &Gpu) -> String {
    let on = |on: bool| if on { "On" } else { "Off" };
    let readings = &gpu.readings;
    let errors = if gpu.facts.ecc { gpu.uncorrected.to_string() } else { "N/A".to_owned() };
    let fan = readings.fan.map_or_else(|| "N/A".to_owned(), |fan| format!("{fan}%"));
    let busy = if gpu.mig == Some(true) { "N/A".to_owned() } else { format!("{}%", readings.utilisation) };
    let mode = match gpu.mode() {
        "Exclusive_Process" => "E. Process",
        "Exclusive_Thread" => "E. Thread",
        mode => mode,
    };
    let mig = gpu.mig.map_or("N/A", |on| if on { "Enabled" } else { "Disabled" });
    let watts = |milliwatts: u32| format!("{:.0}W", f64::from(milliwatts) / 1000.0);
    let (draw, limit) = (watts(readings.milliwatts), watts(gpu.power_limit));
    let memory = |bytes: u64| format!("{}MiB", bytes >> 20);
    let (used, total) = (memory(gpu.memory.used), memory(gpu.memory.total));
    let (index, name, bus_id) = (gpu.index, &gpu.facts.product, &gpu.bus_id);
    let state = format!("P{}", readings.performance_state);
    let rows = [
        [
            format!(" {index:>3}  {name:<28}{:>5}  ", on(gpu.persistence)),
            format!("   {bus_id} {:<3} ", on(gpu.display)),
            format!("{errors:>21} "),
        ],
        [
            format!(" {fan:<4}{:>4}C    {state:<10}{draw:>8} / {limit:>5} ", readings.temperature),
            format!("{used:>11} / {total:>9} "),
            format!("{busy:>8} {mode:>12} "),
        ],
        [String::new(), String::new(), format!("{mig:>21} ")],
    ];
    rows.iter().map(|[first, second, third]| line([first, second, third])).collect()
}

fn processes(gpus: &[&Gpu]) -> String {
    let frame = "-".repeat(ALL);
    let full = |text: &str| format!("|{text:<ALL$}|\n");
    let mut text = format!("+{frame}+\n{}", full(" Processes:"));
    text += &full("  GPU   GI   CI              PID   Type   Process name                        GPU Memory ");
    text += &full("        ID   ID                                                               Usage      ");
    let _ = writeln!(text, "|{}|", "=".repeat(ALL));
    let mut none = true;
    for gpu in gpus {
        for App { pid, name, kind, bytes, instance } in &gpu.apps {
            none = false;
            let kind = match kind {
                ContextKind::Graphics => "G",
                ContextKind::MpsClient => "M+C",
                ContextKind::Compute | ContextKind::MpsServer => "C",
            };
            let (gi, ci) = instance.map_or_else(|| ("N/A".to_owned(), "N/A"), |instance| (instance.to_string(), "0"));
            // The end of a long path is more useful than its beginning.
            let cut = name.char_indices().rev().nth(31).filter(|(place, _)| *place > 0);
            let name = cut.map_or_else(|| name.clone(), |(place, _)| format!("...{}", &name[place..]));
            let row = format!("  {:>3}   {gi:<4} {ci:<4}  {pid:>13} {kind:>6}   {name:<35} {:>7}MiB ", gpu.index, bytes >> 20);
            text += &full(&row);
        }
    }
    if none {
        text += &full("  No running processes found");
    }
    let _ = writeln!(text, "+{frame}+");
    text
}
