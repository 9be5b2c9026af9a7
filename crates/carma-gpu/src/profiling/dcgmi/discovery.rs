//! The output of `dcgmi discovery`: the devices by DCGM's numbers.

use super::super::counters::Unit;
use super::dmon::Entity;
use crate::identity::DeviceUuid;

/// The GPUs in the tables of `dcgmi discovery -l`.
pub fn gpus(text: &str) -> Vec<(Entity, Unit)> {
    let mut number = None;
    let mut found = Vec::new();
    for (left, right) in text.lines().filter_map(cells) {
        if !left.is_empty() {
            number = left.parse().ok();
        }
        let uuid = right.strip_prefix("Device UUID:").and_then(|uuid| uuid.trim().parse::<DeviceUuid>().ok());
        if let (Some(number), Some(gpu)) = (number, uuid) {
            found.push((Entity::Gpu(number), Unit { gpu, instance: None }));
        }
    }
    found
}

/// The GPU instances in the tree of `dcgmi discovery -c`.
pub fn instances(text: &str) -> Vec<(Entity, Unit)> {
    let mut gpu: Option<DeviceUuid> = None;
    let mut found = Vec::new();
    for (left, right) in text.lines().filter_map(cells) {
        let mut names = left.trim_start_matches("->").split_whitespace();
        match (names.next(), names.next()) {
            (Some("GPU"), Some(_)) => gpu = right.split_whitespace().find_map(|word| word.parse().ok()),
            (Some("I"), Some(path)) => {
                let entity = right.split_once("EntityID:").and_then(|(_, rest)| rest.trim().trim_end_matches(')').parse().ok());
                // The path is the GPU's number and the instance's own.
                let number = path.split('/').nth(1).and_then(|number| number.parse().ok());
                if let (Some(gpu), Some(entity), Some(number)) = (&gpu, entity, number) {
                    found.push((Entity::Instance(entity), Unit { gpu: gpu.clone(), instance: Some(number) }));
                }
            }
            _ => {}
        }
    }
    found
}

/// The two cells of a table's row.
fn cells(line: &str) -> Option<(&str, &str)> {
    let (left, right) = line.trim().strip_prefix('|')?.strip_suffix('|')?.split_once('|')?;
    Some((left.trim(), right.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(gpu: &str, instance: Option<u32>) -> Unit {
        Unit { gpu: gpu.parse().unwrap(), instance }
    }

    #[test]
    fn gpus_are_known_by_their_uuid() {
        let listed = gpus(include_str!("samples/discovery-l.txt"));
        let expected = [
            (Entity::Gpu(0), unit("GPU-5fd15f35-e148-2992-4ecb-9825e534f253", None)),
            (Entity::Gpu(1), unit("GPU-0bba0aaf-3f6a-4a4c-9f3a-5f2b4a5b9c11", None)),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn a_published_list_without_names_is_read() {
        let listed = gpus(include_str!("samples/discovery-l-null.txt"));
        let expected = [
            (Entity::Gpu(0), unit("GPU-00000000-0000-0000-0000-00000000004c", None)),
            (Entity::Gpu(1), unit("GPU-00000000-0000-0000-0000-00000000005d", None)),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn instances_belong_to_their_gpu() {
        let listed = instances(include_str!("samples/discovery-c.txt"));
        let gpu = "GPU-5fd15f35-e148-2992-4ecb-9825e534f253";
        let other = "GPU-0bba0aaf-3f6a-4a4c-9f3a-5f2b4a5b9c11";
        let expected = [
            (Entity::Instance(0), unit(gpu, Some(1))),
            (Entity::Instance(1), unit(gpu, Some(2))),
            (Entity::Instance(7), unit(other, Some(9))),
        ];
        assert_eq!(listed, expected);
    }

    #[test]
    fn other_text_has_no_gpus() {
        assert_eq!(gpus("Error: unable to establish a connection to the specified host: localhost\n"), []);
        assert_eq!(instances("| -> I 0/1          | GPU Instance (EntityID: 0) |\n"), [], "an instance of no GPU");
    }
}
