//! The page of a sweep: one measure at a time as a map over two settings, or
//! a chart over one; drawn by the page's own script from the summary.

use crate::ReportError;
use crate::page::{environment, json_in_html};
use knee_record::SweepSummary;
use minijinja::Value;

const TEMPLATE: &str = include_str!("../assets/sweep.html");
const STYLE: &str = include_str!("../assets/report.css");
const OWN_STYLE: &str = include_str!("../assets/sweep.css");
const SCRIPT: &str = include_str!("../assets/sweep.js");

/// The page of a sweep as an HTML document.
///
/// # Errors
/// [`ReportError`], when a template of this crate is wrong.
pub fn sweep_page(summary: &SweepSummary) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("sweep.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, OWN_STYLE].join("\n")),
        script => Value::from_safe_string(SCRIPT.to_string()),
        version => env!("CARGO_PKG_VERSION"),
    };
    let sweep = Value::from_serialize(summary);
    let data = Value::from_safe_string(json_in_html(summary)?);
    let template = environment.get_template("sweep.html")?;
    Ok(template.render(minijinja::context! { sweep, data, assets })?)
}
