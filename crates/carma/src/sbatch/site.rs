//! The GPUs and shards of a site, as far as a job can reach them.

use anyhow::{Result, bail};
use carma_core::MiB;
use carma_manager::slurm::Node;
use carma_sim::GPU_TYPES;

/// Nodes with GPUs of one type and equally many shards.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Kind {
    /// Slurm's name of the type, if it has one.
    pub(super) gpu: Option<String>,
    /// Shards of each GPU; 0 where the site has none.
    pub(super) shards: u64,
    /// Host memory of a node for each of its GPUs.
    pub(super) host: MiB,
}

/// The shards of a GPU.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ShardedGpu {
    /// How many it has.
    pub(super) shards: u64,
    /// Its memory.
    pub(super) memory: MiB,
}

impl ShardedGpu {
    /// The memory of this many shards.
    pub(super) fn memory_of(&self, shards: u64) -> MiB {
        MiB(self.memory.0 * shards / self.shards.max(1))
    }

    /// The fewest shards with this much memory.
    pub(super) fn shards_for(&self, memory: MiB) -> u64 {
        (memory.0 * self.shards).div_ceil(self.memory.0.max(1)).max(1)
    }
}

/// The kinds of GPUs in these partitions.
pub(super) fn kinds(nodes: &[Node], partitions: &[&str]) -> Vec<Kind> {
    let reachable = nodes.iter().filter(|node| node.partitions.iter().any(|name| partitions.contains(&name.as_str())));
    let mut kinds: Vec<Kind> = reachable.flat_map(of_node).collect();
    kinds.sort_by(|a, b| (&a.gpu, a.shards, a.host).cmp(&(&b.gpu, b.shards, b.host)));
    kinds.dedup();
    kinds
}

fn of_node(node: &Node) -> Vec<Kind> {
    let named = |name: &'static str| node.gres.iter().filter(move |gres| gres.name == name);
    let gpus: u64 = named("gpu").map(|gpu| gpu.count).sum();
    let kind = |gpu: &carma_manager::slurm::Gres| {
        let typed: u64 = named("shard").filter(|shard| shard.kind.is_some() && shard.kind == gpu.kind).map(|shard| shard.count).sum();
        let untyped: u64 = named("shard").filter(|shard| shard.kind.is_none()).map(|shard| shard.count).sum();
        let shards = if typed > 0 { typed / gpu.count.max(1) } else { untyped / gpus.max(1) };
        Kind { gpu: gpu.kind.clone(), shards, host: MiB(node.memory.0 / gpus.max(1)) }
    };
    named("gpu").filter(|gpu| gpu.count > 0).map(kind).collect()
}

/// The memory of a GPU by Slurm's name of its type: `a100`, `nvidia_a100-sxm4-80gb`, `rtx3090`. Where the name fits several, the smallest: a job gets
/// more shards then, never too few.
pub(super) fn memory_of(gpu: &str) -> Option<MiB> {
    let lower = gpu.to_ascii_lowercase();
    let words: Vec<&str> = lower.split(|letter: char| !letter.is_ascii_alphanumeric()).map(|word| word.trim_start_matches("rtx")).collect();
    let of_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        let mut parts = name.rsplit('-').map(str::to_owned);
        (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
    };
    let fitting: Vec<(String, MiB)> = GPU_TYPES
        .iter()
        .map(|kind| (of_name(kind.name), kind.memory))
        .filter(|((_, model), _)| words.contains(&model.as_str()))
        .map(|((size, _), memory)| (size, memory))
        .collect();
    let sized = fitting.iter().find(|(size, _)| words.contains(&size.as_str())).map(|(_, memory)| *memory);
    sized.or_else(|| fitting.iter().map(|(_, memory)| *memory).min())
}

/// The GPUs that have shards, with their memory: as given, or by their type.
pub(super) fn sharded(kinds: &[Kind], given: Option<MiB>) -> Result<Vec<ShardedGpu>> {
    let mut found = Vec::new();
    for kind in kinds.iter().filter(|kind| kind.shards > 0) {
        let Some(memory) = given.or_else(|| memory_of(kind.gpu.as_deref()?)) else {
            let which = kind.gpu.as_ref().map_or_else(|| "without a type".to_owned(), |gpu| format!("of type {gpu:?}"));
            bail!("the memory of a shard is not known: Slurm has GPUs {which}; say what memory one has, as in --gpu-memory 40GiB");
        };
        found.push(ShardedGpu { shards: kind.shards, memory });
    }
    Ok(found)
}

/// The fewest shards with at least this much memory wherever they may be, and the GPU with the smallest shards. None where only a whole GPU has it.
pub(super) fn fewest_shards(gpus: &[ShardedGpu], memory: MiB) -> Option<(u64, ShardedGpu)> {
    let (shards, gpu) = gpus.iter().map(|gpu| (gpu.shards_for(memory), *gpu)).max_by_key(|(shards, _)| *shards)?;
    gpus.iter().any(|gpu| gpu.shards >= shards).then_some((shards, gpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn nodes() -> Vec<Node> {
        Node::read_all(
            "NodeName=a Partitions=gpu,all Gres=gpu:a100:4(S:0),shard:a100:160 RealMemory=400000\n\
             NodeName=b Partitions=gpu Gres=gpu:a100:4,shard:160 RealMemory=400000\n\
             NodeName=c Partitions=old,all Gres=gpu:v100:2 RealMemory=100000\n\
             NodeName=d Partitions=all Gres=(null) RealMemory=100000",
        )
    }

    fn gpu(shards: u64, gibibytes: u64) -> ShardedGpu {
        ShardedGpu { shards, memory: MiB(gibibytes * 1024) }
    }

    #[test]
    fn gpu_types_are_those_of_the_partition() {
        let a100 = Kind { gpu: Some("a100".to_owned()), shards: 40, host: MiB(100_000) };
        let v100 = Kind { gpu: Some("v100".to_owned()), shards: 0, host: MiB(50_000) };
        assert_eq!(kinds(&nodes(), &["gpu"]), std::slice::from_ref(&a100));
        assert_eq!(kinds(&nodes(), &["all"]), [a100, v100.clone()]);
        assert_eq!(kinds(&nodes(), &["old"]), [v100]);
        assert_eq!(kinds(&nodes(), &["none"]), []);
    }

    #[test]
    fn gpus_are_known_by_the_names_that_sites_and_drivers_use() {
        let gibibytes = |name| memory_of(name).map(|memory| memory.0 / 1024);
        for (name, expected) in [
            ("a100", Some(40)),
            ("A100_80GB", Some(80)),
            ("nvidia_a100-sxm4-80gb", Some(80)),
            ("nvidia_h100_80gb_hbm3", Some(80)),
            ("tesla_v100-sxm2-32gb", Some(32)),
            ("rtx3090", Some(24)),
            ("nvidia_geforce_rtx_3090", Some(24)),
            ("quadrot4000", None),
            ("gpu", None),
        ] {
            assert_eq!(gibibytes(name), expected, "{name}");
        }
    }

    #[test]
    fn the_shards_are_sufficient_on_any_gpu() {
        let a100 = gpu(40, 40);
        assert_eq!(fewest_shards(&[a100], MiB(10 * 1024)), Some((10, a100)));
        assert_eq!(fewest_shards(&[a100], MiB(10 * 1024 + 1)), Some((11, a100)), "rounded up");
        assert_eq!(fewest_shards(&[a100], MiB(0)), Some((1, a100)));
        assert_eq!(fewest_shards(&[a100], MiB(41 * 1024)), None, "shards of one job are on one GPU");
        let small = gpu(40, 16);
        assert_eq!(fewest_shards(&[a100, small], MiB(10 * 1024)), Some((25, small)), "a shard of the smaller GPU counts");
        assert_eq!(fewest_shards(&[a100, small], MiB(20 * 1024)), None, "20 shards would do on one, but may land on the other");
        assert_eq!(
            fewest_shards(&[a100, gpu(4, 16)], MiB(20 * 1024)).map(|(shards, _)| shards),
            Some(20),
            "20 shards do not fit the other"
        );
        assert_eq!(fewest_shards(&[], MiB(1)), None);
    }

    #[test]
    fn unknown_gpu_types_need_a_declared_memory() {
        let odd = Kind { gpu: Some("big".to_owned()), shards: 10, host: MiB(1) };
        let error = sharded(std::slice::from_ref(&odd), None).unwrap_err().to_string();
        assert!(error.contains("GPUs of type \"big\"") && error.contains("--gpu-memory 40GiB"), "{error}");
        assert_eq!(sharded(&[odd], Some(MiB(1024))).unwrap(), [ShardedGpu { shards: 10, memory: MiB(1024) }]);
    }
}
