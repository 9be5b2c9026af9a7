//! How many files may be open at once: more for the manager, and for jobs what everybody here gets.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit that this process was started with.
static AT_START: OnceLock<Option<u64>> = OnceLock::new();

/// The limit for jobs; unset where there is none. Programs that were written for a low one may fail or crawl with another.
pub(crate) fn limit_of_jobs() -> Option<u64> {
    *AT_START.get_or_init(|| getrlimit(Resource::Nofile).current)
}

/// Lets this process open as many as it may.
pub fn raise_limit() {
    limit_of_jobs();
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    // What is refused leaves fewer connections, and nothing else.
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
