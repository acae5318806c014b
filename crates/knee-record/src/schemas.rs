//! JSON Schemas of the files, as checked in under `schemas/`.

use crate::{Manifest, RepeatSummary, Summary, TwoCompared};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema};

/// Returns the JSON Schema (draft 2020-12) of each JSON document, with its file name under
/// `schemas/`. The schemas describe the files as written: every key is present, and null if it has
/// no value.
pub fn json_schemas() -> [(&'static str, Schema); 4] {
    [
        ("summary.schema.json", schema_of::<Summary>()),
        ("manifest.schema.json", schema_of::<Manifest>()),
        ("repeat.schema.json", schema_of::<RepeatSummary>()),
        ("comparison.schema.json", schema_of::<TwoCompared>()),
    ]
}

fn schema_of<T: JsonSchema>() -> Schema {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    settings.into_generator().into_root_schema_for::<T>()
}
