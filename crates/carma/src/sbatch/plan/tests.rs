//! Plans for sites and scripts of all kinds.

use carma_manager::slurm::Node;

use super::super::options::{Line, of_script};
use super::super::site::kinds;
use super::*;

const SHARDED: &str = "NodeName=a Partitions=gpu Gres=gpu:a100:4,shard:160 RealMemory=400000";
const PLAIN: &str = "NodeName=a Partitions=gpu Gres=gpu:a100:4 RealMemory=400000";

/// The plan for a job with these lines for Slurm and these words on the command line.
fn plan(site: &str, lines: &str, words: &str, need: Option<u64>) -> String {
    planned(site, lines, words, need, &Resources::default())
}

fn planned(site: &str, lines: &str, words: &str, need: Option<u64>, resources: &Resources) -> String {
    let words: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let request = Request::new(&Line::read(&words, |_| None).options, |_| None, &of_script(&format!("#!/bin/sh\n#SBATCH {lines}\n")));
    let need = need.map(|memory| Need { memory: MiB(memory), known_by: "declared".to_owned() });
    let facts = Facts {
        request: &request,
        resources,
        need: need.as_ref(),
        margin: MiB(512),
        kinds: &kinds(&Node::read_all(site), &["gpu"]),
        gpu_memory: None,
        settings: &Settings { requeues: true, appends: false },
        retries: 3,
    };
    match Plan::of(&facts) {
        Ok(plan) => {
            let options: Vec<String> = plan.additions.into_iter().map(|addition| addition.option).collect();
            format!("{}{}", options.join(" "), if plan.recovery.is_some() { " (recovers)" } else { "" })
        }
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn a_known_need_becomes_shards() {
    assert_eq!(plan(SHARDED, "", "", Some(10_000)), "--gres=shard:11 --mem=27500M --open-mode=append (recovers)");
    assert_eq!(plan(SHARDED, "", "", Some(100)), "--gres=shard:1 --mem=4096M --open-mode=append (recovers)");
    assert_eq!(plan(SHARDED, "--gres=tape:1", "", Some(100)), "--gres=tape:1,shard:1 --mem=4096M --open-mode=append (recovers)");
}

#[test]
fn whole_gpus_are_requested_if_shards_are_insufficient() {
    assert_eq!(plan(PLAIN, "", "", Some(10_000)), "--gres=gpu:1 --mem=100000M");
    assert_eq!(plan(SHARDED, "", "", None), "--gres=gpu:1 --mem=100000M");
    assert_eq!(plan(SHARDED, "", "", Some(40_960)), "--gres=gpu:1 --mem=100000M");
    assert_eq!(plan(SHARDED, "-N 2", "", Some(100)), "--gres=gpu:1 --mem=100000M");
    assert_eq!(plan(SHARDED, "--exclusive", "", Some(100)), "--gres=gpu:1 --mem=100000M");
    let several = Resources { gpus: 2, ..Resources::default() };
    assert_eq!(planned(SHARDED, "", "", Some(100), &several), "--gres=gpu:2 --mem=200000M");
}

#[test]
fn requests_of_the_user_are_kept() {
    assert_eq!(plan(SHARDED, "--gres=gpu:2", "", Some(100)), "--mem=200000M");
    assert_eq!(plan(SHARDED, "--gpus=a100:3 --mem=5G", "", Some(100)), "");
    assert_eq!(plan(SHARDED, "--gpus=4 -N 2", "", Some(100)), "", "the GPUs of a node are not known");
    assert_eq!(plan(SHARDED, "", "--gpus-per-node 1 --mem-per-cpu=1G", Some(100)), "");
    assert_eq!(plan(SHARDED, "--gres=shard:5 --mem=1G", "", None), "--open-mode=append (recovers)");
    assert_eq!(plan(SHARDED, "--open-mode=truncate --mem=1G", "", Some(100)), "--gres=shard:1 (recovers)");
    assert_eq!(plan(SHARDED, "-o log.txt --mem=1G", "", Some(100)), "--gres=shard:1 (recovers)");
    assert_eq!(plan(SHARDED, "--no-requeue --mem=1G", "", Some(100)), "--gres=shard:1");
}

#[test]
fn jobs_without_gpus_and_sites_without_them() {
    let none = Resources { gpus: 0, ..Resources::default() };
    assert_eq!(planned(SHARDED, "", "", None, &none), "");
    let host = Resources { host_memory: Some(MiB(9000)), ..Resources::default() };
    assert_eq!(planned(PLAIN, "", "", None, &host), "--gres=gpu:1 --mem=9000M");
    assert!(
        plan("NodeName=a Partitions=gpu Gres=(null) RealMemory=1", "", "", None).starts_with("error: no node of the partition has GPUs")
    );
    assert!(plan(&SHARDED.replace("a100", "big"), "", "", Some(100)).starts_with("error: the memory of a shard is not known"));
    assert!(plan(SHARDED, "-M other", "", None).starts_with("error: --clusters=other in the script names another cluster"));
}
