//! JSON Schemas of the files, as checked in under `schemas/`.

use crate::{Comparison, Manifest, RepeatSummary, Summary};
use schemars::{Schema, schema_for};

/// The JSON Schema (draft 2020-12) of each JSON document, with its file name
/// under `schemas/`.
pub fn json_schemas() -> [(&'static str, Schema); 4] {
    [
        ("summary.schema.json", schema_for!(Summary)),
        ("manifest.schema.json", schema_for!(Manifest)),
        ("repeat.schema.json", schema_for!(RepeatSummary)),
        ("comparison.schema.json", schema_for!(Comparison)),
    ]
}
