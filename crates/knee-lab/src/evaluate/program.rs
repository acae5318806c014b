//! A candidate that is a program: the flow of a scenario file, as in `programs/`.

use super::EvaluateError;
use knee_scenario::{Override, load_file};
use std::path::Path;
use std::sync::Arc;

/// Payload of its flows, which the run ends before it has arrived.
const ENDLESS: &str = "1 GB";

/// What the flows of a candidate that is a program have.
#[derive(Clone, Debug)]
pub(super) struct ProgramCandidate {
    /// Name of the flow.
    pub name: String,
    /// What its `cc` is said to be.
    pub cc: String,
    /// Its programs.
    pub program: Override,
    /// The file.
    pub bytes: Arc<[u8]>,
}

/// Whether a candidate is typed as the name of a scenario file.
pub(super) fn is_file(candidate: &str) -> bool {
    candidate.ends_with(".toml")
}

impl ProgramCandidate {
    /// Reads the one flow of a file that has programs; `kept` are its bytes if they are known.
    pub fn read(typed: &str, kept: Option<Arc<[u8]>>) -> Result<ProgramCandidate, EvaluateError> {
        let wrong = |problem: String, advice: &str| EvaluateError::Candidate {
            problem: format!("{typed}: {problem}"),
            advice: advice.to_string(),
        };
        let form = "write the scenario file of one flow with [flow.program], as in programs/";
        let bytes = match kept {
            Some(bytes) => bytes,
            None => {
                let bytes = load_file(Path::new(typed));
                bytes.map_err(|reason| wrong(format!("cannot be read: {reason}"), form))?.into()
            }
        };
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("no text".to_string(), form))?;
        let table: toml::Table = text
            .parse()
            .map_err(|error: toml::de::Error| wrong(error.message().to_string(), form))?;
        let flows = table.get("flow").and_then(toml::Value::as_array);
        let mut with = flows.into_iter().flatten().filter(|flow| flow.get("program").is_some());
        let (Some(flow), None) = (with.next(), with.next()) else {
            return Err(wrong("not one flow with programs".to_string(), form));
        };
        let said = |key: &str| flow.get(key).and_then(toml::Value::as_str).map(str::to_string);
        let (Some(name), Some(cc)) = (said("name"), said("cc")) else {
            return Err(wrong("the flow has no name or no cc".to_string(), form));
        };
        let mut program = flow.get("program").cloned().unwrap_or(toml::Value::Boolean(false));
        if let Some(size) = program.as_table_mut().and_then(|table| table.get_mut("bytes")) {
            *size = toml::Value::String(ENDLESS.to_string());
        }
        let program = Override::new("program", &program.to_string());
        Ok(ProgramCandidate { name, cc, program, bytes })
    }
}
