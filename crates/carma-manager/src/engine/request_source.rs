//! The request of a job: its own, or made from what the jobs of its array have in common.

use std::borrow::Cow;
use std::sync::Arc;

use carma_core::ArrayId;

use crate::request::JobRequest;
use crate::submission::Template;

/// Where the request of a job comes from.
#[derive(Debug, Clone)]
pub(crate) enum RequestSource {
    /// Its own.
    Own(Box<JobRequest>),
    /// The job at this place of an array.
    Member { template: Arc<Template>, array: ArrayId, place: usize, index: u32 },
}

impl RequestSource {
    /// The request.
    pub(crate) fn request(&self) -> Cow<'_, JobRequest> {
        match self {
            Self::Own(request) => Cow::Borrowed(request),
            Self::Member { template, array, place, index } => Cow::Owned(template.request(*place, *index, Some(*array))),
        }
    }

    /// The name of the job.
    pub(crate) fn name(&self) -> Option<&str> {
        match self {
            Self::Own(request) => request.name.as_deref(),
            Self::Member { template, .. } => template.request.name.as_deref(),
        }
    }

    /// Its index in an array whose jobs share a request.
    pub(crate) const fn index(&self) -> Option<u32> {
        match self {
            Self::Own(_) => None,
            Self::Member { index, .. } => Some(*index),
        }
    }
}

impl From<JobRequest> for RequestSource {
    fn from(request: JobRequest) -> Self {
        Self::Own(Box::new(request))
    }
}
