//! What is added to a submission, what is kept, and why. Pure.

use anyhow::{Result, bail, ensure};
use carma_core::MiB;
use carma_format::memory as size;
use carma_manager::request::Resources;
use carma_manager::slurm::{Settings, gres_list};

use super::need::Need;
use super::request::{Explicit, Request};
use super::site::{Kind, ShardedGpu, fewest_shards, sharded};
use super::wrapper::Recovery;

/// The least host memory of a job with shards, if a GPU's part of the node is that large: Python and PyTorch take half of it before any data.
const LEAST_HOST: MiB = MiB(4096);

/// What a plan is made from.
#[derive(Debug)]
pub(super) struct Facts<'a> {
    pub(super) request: &'a Request,
    pub(super) resources: &'a Resources,
    /// The memory it needs on its GPU, if that is known.
    pub(super) need: Option<&'a Need>,
    /// Free memory beyond the need, as the manager keeps it.
    pub(super) margin: MiB,
    pub(super) kinds: &'a [Kind],
    /// The memory of a GPU, if the user tells it.
    pub(super) gpu_memory: Option<MiB>,
    pub(super) settings: &'a Settings,
    pub(super) retries: u32,
}

/// An option for sbatch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AddedOption {
    pub(super) option: String,
    pub(super) reason: String,
}

/// What becomes of a submission.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    pub(super) additions: Vec<AddedOption>,
    /// What stays as the user requests it, and what is not done, and why.
    pub(super) notes: Vec<String>,
    /// How it is requeued after an out-of-memory error, if it is.
    pub(super) recovery: Option<Recovery>,
}

/// The GPUs of a job on each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gpus {
    None,
    Whole(u64),
    Shards(u64),
    /// GPUs that are not requested by node.
    Unclear,
}

/// The GPUs or shards that a user requests.
pub(super) fn explicit_gpus(request: &Request) -> Option<Explicit<'_>> {
    let listed = request
        .first(&["gres"])
        .filter(|gres| gres_list(gres.value).iter().any(|one| ["gpu", "shard", "mps"].contains(&one.name.as_str())));
    let task = request.first(&["tres-per-task"]).filter(|tres| tres.value.contains("gpu") || tres.value.contains("shard"));
    request.first(&["gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"]).or(listed).or(task)
}

/// Whether the GPUs of a job depend on how much memory it needs.
pub(super) fn depends_on_need(request: &Request, resources: &Resources, kinds: &[Kind]) -> bool {
    explicit_gpus(request).is_none() && whole(request, resources).is_none() && kinds.iter().any(|kind| kind.shards > 0)
}

/// Why a job gets no shards whatever it needs, with its GPUs on each node.
fn whole(request: &Request, resources: &Resources) -> Option<(u64, &'static str)> {
    match resources.gpus {
        0 => Some((0, "it needs no GPU")),
        1 if request.many_nodes() => Some((1, "on each node: shards are for jobs of one node")),
        1 if request.first(&["exclusive"]).is_some() => Some((1, "it has its node for itself")),
        1 => None,
        many => Some((many.into(), "shards of one job are on one GPU")),
    }
}

impl Plan {
    /// Makes the plan.
    pub(super) fn of(facts: &Facts<'_>) -> Result<Self> {
        let mut plan = Self::default();
        if let Some(clusters) = facts.request.first(&["clusters"]) {
            bail!("{clusters} names another cluster, whose GPUs are not known here: run carma sbatch on that cluster");
        }
        let gpus = plan.gpus(facts)?;
        plan.host_memory(facts, gpus);
        if plan.recovery.is_some() {
            plan.requeue(facts);
        }
        Ok(plan)
    }

    fn add(&mut self, option: impl Into<String>, reason: impl Into<String>) {
        self.additions.push(AddedOption { option: option.into(), reason: reason.into() });
    }

    fn gpus(&mut self, facts: &Facts<'_>) -> Result<Gpus> {
        if let Some(explicit) = explicit_gpus(facts.request) {
            self.notes.push(format!("kept: {explicit}"));
            return Ok(self.kept(facts, explicit));
        }
        let (option, reason, gpus) = match whole(facts.request, facts.resources) {
            Some((0, _)) => return Ok(Gpus::None),
            Some((count, why)) => (format!("gpu:{count}"), why.to_owned(), Gpus::Whole(count)),
            None => self.shards_or_gpu(facts)?,
        };
        ensure!(!facts.kinds.is_empty(), "no node of the partition has GPUs in Slurm (Gres=gpu:...): give another with --partition");
        // A list of the user for other resources would be replaced.
        let others = facts.request.value("gres").map_or_else(String::new, |gres| format!("{gres},"));
        self.additions.insert(0, AddedOption { option: format!("--gres={others}{option}"), reason });
        Ok(gpus)
    }

    /// The GPUs that a request of the user gives on each node.
    fn kept(&mut self, facts: &Facts<'_>, explicit: Explicit<'_>) -> Gpus {
        let list = if explicit.name == "gres" { gres_list(explicit.value) } else { Vec::new() };
        let count = |name: &str| list.iter().filter(|one| one.name == name).map(|one| one.count).sum::<u64>();
        let (gpus, shards) = (count("gpu"), count("shard"));
        if shards > 0 && gpus == 0 {
            match sharded(facts.kinds, facts.gpu_memory).map(|gpus| gpus.into_iter().min_by_key(|gpu| gpu.memory_of(1))) {
                Ok(gpu) => self.recover(facts, gpu),
                Err(error) => self.notes.push(format!("it cannot be requeued with more shards: {error:#}")),
            }
            return Gpus::Shards(shards);
        }
        let by_node = explicit.name == "gpus-per-node" || explicit.name == "gpus" && !facts.request.many_nodes();
        let number =
            explicit.value.rsplit(':').next().and_then(|count| count.parse().ok()).filter(|_| by_node && !explicit.value.contains(','));
        match number.unwrap_or(gpus) {
            0 => Gpus::Unclear,
            count => Gpus::Whole(count),
        }
    }

    fn shards_or_gpu(&mut self, facts: &Facts<'_>) -> Result<(String, String, Gpus)> {
        let one = |reason: String| Ok(("gpu:1".to_owned(), reason, Gpus::Whole(1)));
        if facts.kinds.iter().all(|kind| kind.shards == 0) {
            return one("a whole GPU: the site has no shards".to_owned());
        }
        let Some(Need { memory, known_by }) = facts.need else {
            return one(
                "a whole GPU: its memory is unknown; declare it with --gpu-mem SIZE, or describe the model with --model FILE".to_owned()
            );
        };
        let sum = *memory + facts.margin;
        let told = format!("{} ({known_by}; {} of margin)", size(sum), size(facts.margin));
        let Some((shards, gpu)) = fewest_shards(&sharded(facts.kinds, facts.gpu_memory)?, sum) else {
            return one(format!("a whole GPU: {told} is more than all shards of one GPU"));
        };
        self.recover(facts, Some(gpu));
        let each = format!("a shard is {}, 1/{} of a GPU with {}", size(gpu.memory_of(1)), gpu.shards, size(gpu.memory));
        Ok((format!("shard:{shards}"), format!("{told}; {each}"), Gpus::Shards(shards)))
    }

    fn recover(&mut self, facts: &Facts<'_>, gpu: Option<ShardedGpu>) {
        let requeue = facts.request.first(&["requeue", "no-requeue"]);
        match (gpu, requeue) {
            _ if facts.retries == 0 => {}
            (_, Some(refused)) if refused.name == "no-requeue" => {
                self.notes.push(format!("it is not requeued after an out-of-memory error: {refused}"));
            }
            (gpu, _) => self.recovery = gpu.map(|gpu| Recovery { gpu, retries: facts.retries }),
        }
    }

    fn host_memory(&mut self, facts: &Facts<'_>, gpus: Gpus) {
        if let Some(explicit) = facts.request.first(&["mem", "mem-per-cpu", "mem-per-gpu"]) {
            self.notes.push(format!("kept: {explicit}"));
            return;
        }
        if let Some(memory) = facts.resources.host_memory {
            return self.add(format!("--mem={}M", memory.0), "#CARMA --host-mem in the script");
        }
        let Some(share) = facts.kinds.iter().map(|kind| kind.host).min().filter(|share| *share > MiB::ZERO) else { return };
        match gpus {
            Gpus::None => {}
            Gpus::Unclear => self.notes.push("no --mem is added: how many GPUs it has on a node is not known".to_owned()),
            Gpus::Whole(count) => {
                let reason = format!("host memory: the {} that a node has for each GPU", size(share));
                self.add(format!("--mem={}M", share.0 * count), reason);
            }
            Gpus::Shards(shards) => {
                let of_gpu = facts.kinds.iter().map(|kind| kind.shards).filter(|shards| *shards > 0).min().unwrap_or(1);
                let (shards, least) = (shards.min(of_gpu), LEAST_HOST.min(share));
                let memory = MiB(share.0 * shards / of_gpu).max(least);
                let of_share = format!("{shards}/{of_gpu} of the {} that a node has for each GPU", size(share));
                self.add(format!("--mem={}M", memory.0), format!("host memory: {of_share}, at least {}", size(least)));
            }
        }
    }

    /// What a job needs to be requeued under its own number.
    fn requeue(&mut self, facts: &Facts<'_>) {
        if !facts.settings.requeues && facts.request.first(&["requeue"]).is_none() {
            self.add("--requeue", "so that it can be requeued with more shards");
        }
        // A fixed name may hold the output of another job.
        let own_file = facts.request.value("output").is_none_or(|output| ["%j", "%J", "%A"].iter().any(|mark| output.contains(mark)));
        if own_file && !facts.settings.appends && facts.request.first(&["open-mode"]).is_none() {
            self.add("--open-mode=append", "so that the output of an attempt that ran out of memory stays");
        }
    }
}

#[cfg(test)]
mod tests;
