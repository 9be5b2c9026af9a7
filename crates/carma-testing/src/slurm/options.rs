//! The options of a test cluster.

/// The nodes of a cluster, and what differs from the usual settings.
#[derive(Clone, Debug)]
pub struct Options {
    /// Nodes, at most 31.
    pub nodes: usize,
    /// GPUs of each node. Without root at most six.
    pub gpus: usize,
    /// The type of the GPUs in Slurm's words, such as `a100`.
    pub gpu_type: String,
    /// Shards of each GPU; 0 for a site without shards.
    pub shards: usize,
    /// Processes are tracked and devices are constrained by control groups. Needs root.
    pub control_groups: bool,
    /// The seconds that a requeued job waits before it starts again (`cred_expire`): 120 as at most sites, at least 5.
    pub requeue_wait: usize,
    /// Further lines of `slurm.conf`. A line with a key of ours replaces ours.
    pub lines: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self { nodes: 1, gpus: 2, gpu_type: "a100".to_owned(), shards: 40, control_groups: false, requeue_wait: 120, lines: Vec::new() }
    }
}

impl Options {
    /// Nodes with this many GPUs each, and default options.
    pub fn of(nodes: usize, gpus: usize) -> Self {
        Self { nodes, gpus, ..Self::default() }
    }

    /// With one more line of `slurm.conf`.
    #[must_use]
    pub fn line(mut self, line: impl Into<String>) -> Self {
        self.lines.push(line.into());
        self
    }
}
