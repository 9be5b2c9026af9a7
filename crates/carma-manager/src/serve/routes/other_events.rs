//! Events of other versions, in the document of the API.

use utoipa::openapi::schema::{ObjectBuilder, Schema, Type};
use utoipa::openapi::{OpenApi, RefOr};
use utoipa::{Modify, PartialSchema};

/// Events of other versions have any kind and any body, next to the kinds that this version knows.
pub(super) struct OtherEvents;

impl Modify for OtherEvents {
    fn modify(&self, document: &mut OpenApi) {
        let schemas = document.components.as_mut().map(|components| &mut components.schemas);
        let Some(RefOr::T(Schema::OneOf(events))) = schemas.and_then(|schemas| schemas.get_mut("JobEvent")) else { return };
        let kind = ObjectBuilder::new().schema_type(Type::String);
        let other = ObjectBuilder::new().property("kind", kind).property("body", serde_json::Value::schema());
        events.items.pop();
        events.items.push(other.required("kind").description(Some("An event of another version, or of another user's job.")).into());
    }
}
