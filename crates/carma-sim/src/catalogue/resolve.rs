//! Lookup of a workload by any of its names.

use super::{Catalogue, WorkloadId};

impl Catalogue {
    /// The workload of this name or alias. Ignores suffixes for shortened runs (`_maxbatches1200`, `_maxsteps2000`), GPUs (`_1gpu`) and
    /// epochs (`_12e`).
    pub fn find(&self, name: &str) -> Option<WorkloadId> {
        let exact = |name: &str| self.names.get(name).copied();
        let same_run = || self.iter().find(|(_, workload)| plain(&workload.name) == plain(name)).map(|(id, _)| id);
        exact(name).or_else(|| exact(without_length(name))).or_else(|| exact(plain(name))).or_else(same_run)
    }

    /// The most similar name, as a suggestion for a wrong one.
    pub fn nearest(&self, wrong: &str) -> Option<&str> {
        let wrong = wrong.to_lowercase();
        let shared = |name: &str| name.to_lowercase().chars().zip(wrong.chars()).take_while(|(a, b)| a == b).count();
        self.workloads.iter().map(|workload| workload.name.as_str()).max_by_key(|name| shared(name)).filter(|name| shared(name) >= 3)
    }
}

/// A name without the suffix for the length of the run.
fn without_length(name: &str) -> &str {
    ["_maxbatches", "_maxsteps"].into_iter().fold(name, |name, prefix| without_number(name, prefix, ""))
}

/// A name without the suffixes for length, GPUs and epochs, in any order.
fn plain(name: &str) -> &str {
    let shorter = without_number(without_number(without_length(name), "_", "gpu"), "_", "e");
    if shorter == name { name } else { plain(shorter) }
}

/// The name without a trailing `prefix`, digits and `suffix`.
fn without_number<'a>(name: &'a str, prefix: &str, suffix: &str) -> &'a str {
    let cut = || {
        let numbered = name.strip_suffix(suffix)?;
        let stem = numbered.trim_end_matches(|c: char| c.is_ascii_digit());
        if stem.len() == numbered.len() { None } else { stem.strip_suffix(prefix) }
    };
    cut().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_shortened_runs_find_their_workload() {
        let catalogue = Catalogue::shipped();
        let name = |name| catalogue.find(name).map(|id| catalogue.get(id).name.as_str());
        assert_eq!(name("llama3_width_8layer_wiki_bs1_1gpu_maxsteps2000"), Some("llama3_width_8layer_wiki_bs1"));
        assert_eq!(name("unet_voc_1gpu_10e"), Some("unet_voc"));
        assert_eq!(name("efficientnet_cifar100_bs32_12e_1gpu"), Some("efficientnet_cifar100_bs32_20e"));
        assert_eq!(name("resnet34_cifar100_50e_3"), Some("resnet34_cifar100_bs128_50e"));
        assert_eq!(name("alexnet"), None);
    }

    #[test]
    fn a_misspelt_name_gets_a_suggestion() {
        assert_eq!(Catalogue::shipped().nearest("bert_bose"), Some("bert_base_wiki_bs32"));
        assert_eq!(Catalogue::shipped().nearest("alexnet"), None);
    }
}
