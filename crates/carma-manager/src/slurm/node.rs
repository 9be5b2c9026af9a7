//! Nodes, partitions and settings of a Slurm cluster.

use carma_core::MiB;

use super::commands::Commands;
use super::error::SlurmError;
use super::gres::{Gres, list};
use super::record::Record;

/// A node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name.
    pub name: String,
    /// The partitions it is in.
    pub partitions: Vec<String>,
    /// Its host memory for jobs.
    pub memory: MiB,
    /// Its GPUs, shards and other resources.
    pub gres: Vec<Gres>,
}

impl Node {
    fn of(record: &Record) -> Option<Self> {
        let words = |key| record.get(key).unwrap_or_default().split(',').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        Some(Self {
            name: record.get("NodeName")?.to_owned(),
            partitions: words("Partitions"),
            memory: MiB(record.number("RealMemory").unwrap_or_default()),
            gres: list(record.get("Gres").unwrap_or_default()),
        })
    }

    /// All nodes of this text, which `scontrol --oneliner show node` printed.
    pub fn read_all(text: &str) -> Vec<Self> {
        text.lines().filter_map(|line| Self::of(&Record::read(line))).collect()
    }
}

/// A partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    /// Its name.
    pub name: String,
    /// Jobs go there that name none.
    pub is_default: bool,
}

/// Settings of the controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Jobs may be requeued unless they say otherwise.
    pub requeues: bool,
    /// A requeued job appends to its output file unless it says otherwise.
    pub appends: bool,
}

impl Commands {
    /// All nodes.
    pub fn nodes(&self) -> Result<Vec<Node>, SlurmError> {
        Ok(Node::read_all(&self.run("scontrol", &["--oneliner", "show", "node"])?))
    }

    /// All partitions.
    pub fn partitions(&self) -> Result<Vec<Partition>, SlurmError> {
        let text = self.run("scontrol", &["--oneliner", "show", "partition"])?;
        let one = |line: &str| {
            let record = Record::read(line);
            Some(Partition { name: record.get("PartitionName")?.to_owned(), is_default: record.get("Default") == Some("YES") })
        };
        Ok(text.lines().filter_map(one).collect())
    }

    /// The settings of the controller.
    pub fn settings(&self) -> Result<Settings, SlurmError> {
        let record = Record::read_settings(&self.run("scontrol", &["show", "config"])?);
        let is_set = |key| record.number(key).is_some_and(|number| number > 0);
        Ok(Settings { requeues: is_set("JobRequeue"), appends: is_set("JobFileAppend") })
    }
}
