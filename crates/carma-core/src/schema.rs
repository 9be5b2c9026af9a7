//! Schemas of types with a form of their own in JSON, and of the table of settings, for the document of the manager's API.

use std::borrow::Cow;

use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, Schema, SchemaType};
use utoipa::openapi::{KnownFormat, RefOr, SchemaFormat, Type};
use utoipa::{PartialSchema, ToSchema};

use crate::{DeviceId, Fraction, KeyInfo, Kind, Metric, MiB, Seconds, Settings, Time, Utilisation, UtilisationOverTime, Watts};

macro_rules! described {
    ($($name:literal $type:ty: $object:expr, $description:literal;)*) => {$(
        impl PartialSchema for $type {
            fn schema() -> RefOr<Schema> {
                $object.description(Some($description)).into()
            }
        }

        impl ToSchema for $type {
            fn name() -> Cow<'static, str> {
                $name.into()
            }
        }
    )*};
}

described! {
    "MiB" MiB: integer(), "GPU or host memory in MiB.";
    "Fraction" Fraction: fraction(), "A share between 0 and 1.";
    "Watts" Watts: number(), "Power in watts.";
    "Seconds" Seconds: number(), "A span of time in seconds, to the millisecond.";
    "Time" Time: number(), "A point in time, in seconds since the scheduler's epoch.";
    "DeviceId" DeviceId: text(), "A GPU or a MIG instance of it: `s0/gpu3`, `s0/gpu3/mig1`.";
    "Metric" Metric: text().enum_values(Some(Metric::ALL.map(|metric| metric.facts().id))), "A monitored metric of GPUs.";
    "Utilisation" Utilisation: by_metric(&Fraction::schema()), "Utilisation of a GPU by metric, where known.";
    "UtilisationOverTime" UtilisationOverTime: by_metric(&Vec::<Option<f64>>::schema()), "Utilisation of a GPU over time: one column per metric.";
}

/// An object with a value for each metric; each may be absent.
fn by_metric(value: &RefOr<Schema>) -> ObjectBuilder {
    Metric::ALL.into_iter().fold(ObjectBuilder::new(), |object, metric| object.property(metric.facts().id, value.clone()))
}

fn integer() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Integer).format(Some(SchemaFormat::KnownFormat(KnownFormat::Int64))).minimum(Some(0))
}

fn number() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::Number).format(Some(SchemaFormat::KnownFormat(KnownFormat::Double))).minimum(Some(0))
}

fn fraction() -> ObjectBuilder {
    number().maximum(Some(1))
}

fn text() -> ObjectBuilder {
    ObjectBuilder::new().schema_type(Type::String)
}

impl PartialSchema for Settings {
    fn schema() -> RefOr<Schema> {
        keys_schema(Self::KEYS).description(Some("The scheduling settings. Keys that are left out have the values of the preset.")).into()
    }
}

impl ToSchema for Settings {
    fn name() -> Cow<'static, str> {
        "Settings".into()
    }
}

/// The schema of a table of keys.
pub fn keys_schema(keys: &[KeyInfo]) -> ObjectBuilder {
    keys.iter().fold(ObjectBuilder::new(), |object, key| object.property(key.name, key_schema(key)))
}

fn key_schema(key: &KeyInfo) -> RefOr<Schema> {
    let bounded = |object: ObjectBuilder| {
        let range = key.range.filter(|(_, most)| most.is_finite());
        object.minimum(range.map(|(least, _)| least)).maximum(range.map(|(_, most)| most))
    };
    let word = |words: &'static [&'static str]| text().enum_values(Some(words.iter().copied()));
    let object = match key.kind {
        Kind::Number(_) => bounded(ObjectBuilder::new().schema_type(Type::Number)),
        Kind::Whole(_) => bounded(ObjectBuilder::new().schema_type(Type::Integer)),
        Kind::Switch => ObjectBuilder::new().schema_type(Type::Boolean),
        Kind::Choice(words) => word(words),
        Kind::Choices(words) => return ArrayBuilder::new().items(word(words)).description(Some(key.about())).into(),
        Kind::Section(keys) => keys_schema(keys),
        // Text or a list of tables: any value.
        Kind::Other(_) => ObjectBuilder::new().schema_type(SchemaType::AnyValue),
    };
    object.description(Some(key.about())).into()
}
