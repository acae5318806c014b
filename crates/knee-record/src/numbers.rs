//! A summary as a list of named numbers, for repeats and comparisons.

use crate::{APPLICATION_VALUES, FlowSummary, Summary};
use serde_json::Value;

/// Numbers that describe the setup rather than the result.
const GIVEN: [&str; 11] = [
    "index",
    "flow_count",
    "start_us",
    "base_rtt_us",
    "path_rate_bps",
    "capacity_bps",
    "size_bytes",
    "one_way_delay_us",
    "rate_bps",
    "at_least_bytes",
    "below_bytes",
];

impl Summary {
    /// Returns every measured number of the summary with its name, in the order of the file:
    /// `flow.bbr[1].rtt_us.p50`, `link.bottleneck.utilisation`, `jain`, `claim.A3`. Null values are
    /// left out.
    pub fn numbers(&self) -> Vec<(String, f64)> {
        let mut numbers = Vec::new();
        for flow in &self.flows {
            let label = format!("flow.{}[{}]", flow.name, flow.index);
            flatten(&label, &json(flow), &mut numbers);
        }
        for link in &self.links {
            flatten(&format!("link.{}", link.name), &json(link), &mut numbers);
        }
        for group in &self.groups {
            let label = format!("group.{}", group.name);
            flatten(&label, &json(group), &mut numbers);
            let members = self.flows.iter().filter(|flow| flow.name == group.name);
            let members: Vec<&FlowSummary> = members.collect();
            numbers.extend(APPLICATION_VALUES.iter().filter_map(|value| {
                Some((format!("{label}.{}", value.name), value.of_group(&members)??))
            }));
        }
        flatten("", &json(&self.measures), &mut numbers);
        let claims = self.claims.iter().filter(|claim| !claim.id.is_empty());
        let measured = claims.filter_map(|claim| Some((&claim.id, claim.measured?)));
        numbers.extend(measured.map(|(id, value)| (format!("claim.{id}"), value)));
        numbers
    }
}

fn json(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).expect("plain structs of numbers and strings")
}

fn flatten(prefix: &str, value: &Value, numbers: &mut Vec<(String, f64)>) {
    match value {
        Value::Object(entries) => {
            for (key, value) in entries {
                if GIVEN.contains(&key.as_str()) {
                    continue;
                }
                let dot = if prefix.is_empty() { "" } else { "." };
                flatten(&format!("{prefix}{dot}{key}"), value, numbers);
            }
        }
        // A list of named objects: `paths.wifi.share`.
        Value::Array(items) => {
            for item in items {
                if let Some(name) = item["name"].as_str() {
                    flatten(&format!("{prefix}.{name}"), item, numbers);
                }
            }
        }
        Value::Number(number) => numbers.extend(number.as_f64().map(|n| (prefix.to_string(), n))),
        _ => {}
    }
}
