//! The arguments of `dcgmi`.

use std::time::Duration;

use carma_gpu::profiling::dcgmi::Entity;
use carma_gpu::profiling::fields::{Field, by_id};

/// A command of the program.
#[derive(Debug, PartialEq)]
pub(super) enum Command {
    Help,
    Version,
    /// `dmon -l`.
    Fields,
    /// `discovery -l`.
    Gpus,
    /// `discovery -c`.
    Hierarchy,
    /// `dmon`.
    Watch(Watch),
}

/// Why a command is not carried out.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// The text of the real program.
    Message(String),
    /// Something that only the real program has.
    NotEmulated(String),
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self::Message(message)
    }
}

/// The watched devices and fields.
#[derive(Debug, PartialEq)]
pub(super) struct Watch {
    pub(super) fields: Vec<&'static Field>,
    pub(super) interval: Duration,
    /// Number of ticks to show; unset: no limit.
    pub(super) count: Option<u64>,
    /// The entities to show; empty: all GPUs.
    pub(super) entities: Vec<Entity>,
}

impl Command {
    /// Parses the arguments after the program's name.
    pub(super) fn read(arguments: &[String]) -> Result<Self, Refusal> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] | ["-h" | "--help", ..] => Ok(Self::Help),
            ["-v" | "--version"] => Ok(Self::Version),
            ["dmon", "-l" | "--list"] => Ok(Self::Fields),
            ["discovery", "-l" | "--list"] => Ok(Self::Gpus),
            ["discovery", "-c" | "--compute-hierarchy"] => Ok(Self::Hierarchy),
            ["dmon", options @ ..] => Watch::read(options).map(Self::Watch),
            _ => Err(Refusal::NotEmulated(words.join(" "))),
        }
    }
}

impl Watch {
    fn read(options: &[&str]) -> Result<Self, Refusal> {
        let mut watch = Self { fields: Vec::new(), interval: Duration::from_secs(1), count: None, entities: Vec::new() };
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let value = options.next().ok_or_else(|| not_understood(option, "Missing a value for this argument!"))?;
            let wrong = || not_understood(option, &format!("Couldn't read argument value from string '{value}'"));
            let number = || value.parse::<u64>().ok().filter(|number| *number > 0).ok_or_else(wrong);
            match *option {
                "-e" | "--field-id" => {
                    let field = |id: &str| id.trim().parse().ok().and_then(by_id);
                    let unknown = || format!("Error: Field ids {value}: one is unknown or not emulated.\n");
                    watch.fields = value.split(',').map(field).collect::<Option<_>>().ok_or_else(unknown)?;
                }
                "-d" | "--delay" => watch.interval = Duration::from_millis(number()?),
                "-c" | "--count" => watch.count = Some(number()?),
                "-i" | "--entity-id" | "--gpu-id" => {
                    watch.entities = value.split(',').map(entity).collect::<Option<_>>().ok_or_else(wrong)?;
                }
                _ => return Err(Refusal::NotEmulated(format!("dmon {option}"))),
            }
        }
        if watch.fields.is_empty() {
            return Err("Error: Either provide the field ids, or a field group: dmon -e FIELDS.\n".to_owned().into());
        }
        Ok(watch)
    }
}

/// A GPU by its number, or another entity by its kind and number.
fn entity(text: &str) -> Option<Entity> {
    let (kind, number) = text.trim().split_once(':').unwrap_or(("gpu", text.trim()));
    let number = number.parse().ok()?;
    match kind {
        "gpu" => Some(Entity::Gpu(number)),
        "i" | "instance" => Some(Entity::Instance(number)),
        "ci" | "compute_instance" => Some(Entity::ComputeInstance(number)),
        _ => None,
    }
}

fn not_understood(argument: &str, why: &str) -> String {
    format!("PARSE ERROR: Argument: {argument}\n             {why}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Command, Refusal> {
        Command::read(&text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
    }

    #[test]
    fn a_watch_is_read() {
        let Ok(Command::Watch(watch)) = read("dmon -e 1001,155 -d 250 -c 3 -i 1,i:7,ci:2") else { panic!() };
        assert_eq!(watch.fields.iter().map(|field| field.short_name).collect::<Vec<_>>(), ["GRACT", "POWER"]);
        assert_eq!((watch.interval, watch.count), (Duration::from_millis(250), Some(3)));
        assert_eq!(watch.entities, [Entity::Gpu(1), Entity::Instance(7), Entity::ComputeInstance(2)]);
    }

    #[test]
    fn what_cannot_be_done_is_an_error() {
        for text in ["dmon", "dmon -e", "dmon -e 7", "dmon -e 1001 -d 0", "dmon -e 1001 -i x:1"] {
            let Err(Refusal::Message(message)) = read(text) else { panic!("{text}") };
            assert!(message.starts_with("Error: ") || message.starts_with("PARSE ERROR: "), "{message}");
        }
        for (text, part) in [("dmon -e 1001 -q 1", "dmon -q"), ("stats -g 1", "stats -g 1"), ("discovery", "discovery")] {
            assert_eq!(read(text), Err(Refusal::NotEmulated(part.to_owned())));
        }
    }
}
