//! `dcgmi discovery`: the devices by DCGM's numbers.

use std::fmt::Write as _;

use super::observation::instance_number;
use crate::state::State;

/// `dcgmi discovery -l`: all GPUs.
pub(super) fn gpus(state: &State<'_>) -> String {
    let gpus: Vec<[String; 3]> = (0..state.gpus.len())
        .map(|gpu| {
            let record = &state.gpus[gpu];
            let name = &state.profile(gpu).facts.product;
            [format!("Name: {name}"), format!("PCI Bus ID: {}", record.bus_id()), format!("Device UUID: {}", record.uuid.get())]
        })
        .collect();
    list_of_gpus(&gpus)
}

/// `dcgmi discovery -c`: GPUs, their instances, and their compute instances.
pub(super) fn hierarchy(state: &State<'_>) -> String {
    let mut rows: Vec<Vec<(String, String)>> = Vec::new();
    for (gpu, record) in state.gpus.iter().enumerate() {
        let mut of_gpu = vec![(format!("GPU {gpu}"), format!("GPU {} (EntityID: {gpu})", record.uuid.get()))];
        for (place, instance) in record.instances.iter().enumerate().filter(|(_, instance)| instance.used != 0) {
            let (number, id) = (instance_number(gpu, place), instance.id);
            of_gpu.push((format!("-> I {gpu}/{id}"), format!("GPU Instance (EntityID: {number})")));
            if instance.computes != 0 {
                of_gpu.push((format!("   -> CI {gpu}/{id}/0"), format!("Compute Instance (EntityID: {number})")));
            }
        }
        rows.push(of_gpu);
    }
    tree(&rows)
}

fn list_of_gpus(gpus: &[[String; 3]]) -> String {
    let table = |title: &str, rows: &str| {
        let rule = format!("+--------+{}+\n", "-".repeat(70));
        format!("{rule}| {title} | {:<69}|\n{rule}{rows}", "Device Information") + if rows.is_empty() { &rule } else { "" }
    };
    let mut rows = String::new();
    for (number, facts) in gpus.iter().enumerate() {
        for (line, fact) in facts.iter().enumerate() {
            let number = if line == 0 { number.to_string() } else { String::new() };
            let _ = writeln!(rows, "| {number:<7}| {fact:<69}|");
        }
        let _ = writeln!(rows, "+--------+{}+", "-".repeat(70));
    }
    let switches = "0 NvSwitches found.\n+-----------+\n| Switch ID |\n+-----------+\n+-----------+\n";
    format!(
        "{} GPU{} found.\n{}{switches}0 CPUs found.\n{}",
        gpus.len(),
        if gpus.len() == 1 { "" } else { "s" },
        table("GPU ID", &rows),
        table("CPU ID", "")
    )
}

fn tree(gpus: &[Vec<(String, String)>]) -> String {
    let rule = format!("+-------------------+{}+\n", "-".repeat(68));
    let mut text = format!("{rule}| {:<87}|\n{}", "Instance Hierarchy", rule.replace('-', "="));
    for rows in gpus {
        for (left, right) in rows {
            let _ = writeln!(text, "| {left:<18}| {right:<67}|");
        }
        text += &rule;
    }
    text
}

#[cfg(test)]
mod tests {
    use carma_gpu::profiling::dcgmi;

    use super::*;

    #[test]
    fn lists_are_read_back() {
        let gpu = |uuid: &str| ["Name: NVIDIA A100".to_owned(), "PCI Bus ID: 00000000:07:00.0".to_owned(), format!("Device UUID: {uuid}")];
        let text = list_of_gpus(&[gpu("GPU-1"), gpu("GPU-2")]);
        insta::assert_snapshot!(text);
        assert_eq!(dcgmi::gpus(&text).into_iter().map(|(_, unit)| unit.gpu.to_string()).collect::<Vec<_>>(), ["GPU-1", "GPU-2"]);
    }

    #[test]
    fn trees_are_read_back() {
        let row = |left: &str, right: &str| (left.to_owned(), right.to_owned());
        let text = tree(&[vec![
            row("GPU 0", "GPU GPU-1 (EntityID: 0)"),
            row("-> I 0/3", "GPU Instance (EntityID: 2)"),
            row("   -> CI 0/3/0", "Compute Instance (EntityID: 2)"),
        ]]);
        insta::assert_snapshot!(text);
        let read = dcgmi::instances(&text);
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].0, read[0].1.instance), (dcgmi::Entity::Instance(2), Some(3)));
    }
}
