//! What the jobs of an array or sweep have in common.

use std::collections::BTreeMap;

use carma_core::ArrayId;

use super::sweep;
use crate::request::{ArrayElement, JobRequest, Parameter};

/// What the jobs of an array or sweep have in common. A job's own request is made when it is needed: a hundred thousand environments need not be in
/// memory, nor in the store.
#[derive(Debug, Clone, PartialEq)]
pub struct Template {
    /// The request.
    pub request: JobRequest,
    /// The parameters of a sweep; none for an array.
    pub parameters: Vec<Parameter>,
}

impl Template {
    /// The request of the job at this place, which counts from 0.
    pub fn request(&self, place: usize, index: u32, array: Option<ArrayId>) -> JobRequest {
        let parameters = if self.parameters.is_empty() { BTreeMap::new() } else { sweep::values_at(&self.parameters, place) };
        self.request.as_element(ArrayElement { index, array, parameters })
    }

    /// The same without environments, for everything that does not need them.
    pub(crate) fn without_environment(&self) -> Self {
        let mut template = self.clone();
        template.request.environment.clear();
        template
    }
}
