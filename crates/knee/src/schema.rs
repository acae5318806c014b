//! `knee schema`.

use crate::arguments::{Described, Schema};
use crate::failure::{Ending, Failure};
use crate::screen;
use knee_lab::{RunsCompared, StudyRecords};
use schemars::generate::SchemaSettings;

/// Prints the JSON Schema of a file.
pub fn schema(arguments: &Schema) -> Result<Ending, Failure> {
    let record = match arguments.file {
        Described::Scenario => return printed(&knee_scenario::json_schema()),
        Described::Study => return printed(&knee_scenario::study_json_schema()),
        Described::Reproduce => return printed(&schemars::schema_for!(StudyRecords)),
        Described::Sweep => return printed(&schemars::schema_for!(knee_record::SweepSummary)),
        Described::Origin => return printed(&schemars::schema_for!(knee_lab::Origin)),
        Described::Rank => return printed(&schemars::schema_for!(knee_record::RankSummary)),
        Described::Observed => return printed(&schemars::schema_for!(knee_record::ObservedReport)),
        Described::Logs => return printed(&schemars::schema_for!(knee_record::LogReport)),
        Described::Policy => return printed(&schemars::schema_for!(knee_policy::PolicyFile)),
        Described::Evaluation => return printed(&schemars::schema_for!(knee_record::Evaluation)),
        Described::Grounds => {
            return printed(&schemars::schema_for!(knee_record::EvaluationsCompared));
        }
        Described::Fidelity => return printed(&schemars::schema_for!(knee_record::Fidelity)),
        Described::FidelityGrid => {
            return printed(&schemars::schema_for!(knee_record::FidelityGrid));
        }
        Described::Answers => return printed(&schemars::schema_for!(knee_record::Answers)),
        Described::Comparisons => {
            let settings = SchemaSettings::draft2020_12().for_serialize();
            let schema = settings.into_generator().into_root_schema_for::<RunsCompared>();
            return printed(&schema);
        }
        Described::Summary => "summary.schema.json",
        Described::Manifest => "manifest.schema.json",
        Described::Repeat => "repeat.schema.json",
        Described::Comparison => "comparison.schema.json",
    };
    let schemas = knee_record::json_schemas();
    let (_, schema) = schemas
        .iter()
        .find(|(name, _)| *name == record)
        .ok_or_else(|| Failure::Internal(format!("there is no {record}")))?;
    printed(schema)
}

fn printed(schema: &impl serde::Serialize) -> Result<Ending, Failure> {
    screen::print_json(schema)?;
    Ok(Ending::Done)
}
