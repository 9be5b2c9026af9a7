//! The filter of listed jobs: words that must all match.

use carma_manager::api::QueueRow;

use crate::manager::{devices, identity};

/// A filter for jobs: `user:ada state:run gpu:3 resnet`.
#[derive(Debug, Default)]
pub(crate) struct Filter {
    /// As it was typed.
    pub(crate) text: String,
    /// Only jobs of the current user.
    pub(crate) mine: bool,
}

impl Filter {
    /// Whether a job is listed for this user.
    pub(super) fn fits(&self, job: &QueueRow, uid: u32) -> bool {
        (!self.mine || job.uid == uid) && self.text.split_whitespace().all(|word| fits(word, job))
    }

    /// Whether the filter hides anything.
    pub(super) fn is_set(&self) -> bool {
        self.mine || !self.text.trim().is_empty()
    }
}

fn fits(word: &str, job: &QueueRow) -> bool {
    let word = word.to_lowercase();
    let name = || job.name.as_deref().unwrap_or_default().to_lowercase();
    match word.split_once(':') {
        Some(("user", user)) => job.user.to_lowercase().starts_with(user),
        Some(("state", state)) => job.state.to_string().starts_with(state),
        Some(("gpu", gpu)) => gpu.is_empty() || devices(job.devices.iter().copied()).split(',').any(|device| device == gpu),
        _ => name().contains(&word) || job.user.to_lowercase().contains(&word) || identity(job.id, job.array).starts_with(&word),
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::fixtures::{running, waiting};
    use super::*;

    #[test]
    fn filters_match_all_words_and_prefixes() {
        let jobs = [running(7, "resnet50", "ada", &[0, 1], 8), waiting(12, "bert", "bob", 20)];
        let listed = |text: &str| -> Vec<u64> {
            let filter = Filter { text: text.to_owned(), mine: false };
            jobs.iter().filter(|job| filter.fits(job, 0)).map(|job| job.id.0).collect()
        };
        for (text, ids) in [
            ("", &[7, 12][..]),
            ("  ", &[7, 12]),
            ("RES", &[7]),
            ("user:b", &[12]),
            ("user:b res", &[]),
            ("state:run", &[7]),
            ("gpu:1", &[7]),
            ("gpu:3", &[]),
            ("12", &[12]),
            ("ada", &[7]),
            ("user:", &[7, 12]),
            ("gpu:", &[7, 12]),
        ] {
            assert_eq!(listed(text), ids, "{text}");
        }
    }

    #[test]
    fn only_mine_filters_by_uid() {
        let job = waiting(12, "bert", "bob", 20);
        let filter = Filter { mine: true, ..Filter::default() };
        assert!(filter.fits(&job, job.uid) && !filter.fits(&job, job.uid + 1));
    }
}
