//! The limit of open files: raised for the manager, unchanged for jobs.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that this process was started with.
static AT_START: OnceLock<Option<u64>> = OnceLock::new();

/// The limit for jobs; unset: no limit. Some programs fail or become slow with a high limit.
pub(crate) fn limit_of_jobs() -> Option<u64> {
    *AT_START.get_or_init(|| getrlimit(Resource::Nofile).current)
}

/// Raises the limit of this process to the maximum.
pub fn raise_limit() {
    limit_of_jobs();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // If the system refuses, there are fewer connections.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_keep_the_limit_of_the_start() {
        let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
        raise_limit();
        assert_eq!(getrlimit(Resource::Nofile).current, maximum);
        assert_eq!(limit_of_jobs(), current);
    }
}
