//! Looks up the facts about the host that a job needs.

use std::path::Path;

use super::host_facts::{Lookup, LookupQuestion};
use super::user_task::UserTask;
use crate::attempt::RunAs;
use crate::credentials::Credentials;
use crate::open_files::limit_of_jobs;
use crate::request::JobRequest;

/// Looks up the facts that this job needs, in the folders of its user with the user's rights. `program` is the one that becomes that process.
pub fn look_up(request: &JobRequest, user: Option<&RunAs>, program: &Path) -> Result<Lookup, String> {
    let question = LookupQuestion::of(request, user);
    let found = match user.filter(|_| question.is_about_files()) {
        Some(user) => UserTask::LookUp(question)
            .run(Credentials::of(user), program)
            .map_err(|error| format!("cannot look up its environment or container as {}: {error}", user.name))?,
        None => question.answer(),
    };
    let uname = rustix::system::uname();
    let node = uname.nodename().to_string_lossy().split('.').next().unwrap_or_default().to_owned();
    Ok(Lookup { open_files: limit_of_jobs(), node, ..found })
}
