//! The page of a ranking: the result, the delay-throughput plane over all scenarios and in each of
//! them, one table, and recorded links.

mod plane;
mod table;
mod trace;

pub use table::{rank_data, rank_table};

use crate::ReportError;
use crate::chart::style;
use crate::drawing::Drawing;
use crate::fitted::Fitted;
use crate::page::{CHART_SCRIPT, SCRIPT, environment};
use crate::words;
use knee_record::RankSummary;
use minijinja::Value;
use serde::Serialize;

const TEMPLATE: &str = include_str!("../assets/rank.html");
const STYLE: &str = include_str!("../assets/report.css");
const OWN_STYLE: &str = include_str!("../assets/rank.css");

/// A picture with its heading.
#[derive(Serialize)]
struct Picture {
    title: String,
    note: String,
    drawing: Fitted,
}

impl Picture {
    /// Creates a picture, or returns `None` if there is nothing to draw.
    fn new(
        title: &str,
        note: String,
        draw: impl Fn([f64; 2]) -> Option<Drawing>,
    ) -> Option<Picture> {
        let size = |narrow| if narrow { plane::NARROW } else { plane::WIDE };
        let drawing = Fitted::new(|narrow| draw(size(narrow)))?;
        Some(Picture { title: title.to_string(), note, drawing })
    }
}

/// Returns the page of a ranking as an HTML document.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn rank_page(summary: &RankSummary) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("rank.html", TEMPLATE)?;
    let assets = minijinja::context! {
        style => Value::from_safe_string([STYLE, &style(), OWN_STYLE].join("\n")),
        script => Value::from_safe_string([CHART_SCRIPT, SCRIPT].join("\n")),
        version => env!("CARGO_PKG_VERSION"),
        cite => words::cite("origin.json"),
    };
    let overall = Picture::new("Over all scenarios", plane::caption(summary).to_string(), |size| {
        plane::overall(summary, size)
    });
    let scenarios = &summary.ranking.scenarios;
    let several = scenarios.len() > 1;
    let planes = scenarios.iter().enumerate().filter(|_| several);
    let planes: Vec<Picture> = planes
        .filter_map(|(at, scenario)| {
            Picture::new(&scenario.name, scenario.file.clone(), |size| {
                plane::of_scenario(summary, at, size)
            })
        })
        .collect();
    let traces = summary.traces.iter().filter_map(|trace| {
        let title = &scenarios[trace.scenario].name;
        Picture::new(title, trace::caption(summary, trace), |size| {
            Some(trace::drawing(summary, trace, size[0]))
        })
    });
    let traces: Vec<Picture> = traces.collect();
    let left_out: Vec<String> = scenarios
        .iter()
        .filter(|scenario| !scenario.left_out.is_empty())
        .map(|scenario| format!("{}: {}", scenario.file, scenario.left_out.join(", ")))
        .collect();
    let brief = table::brief(summary);
    let table = table::rank_table(summary);
    let rank = Value::from_serialize(summary);
    let template = environment.get_template("rank.html")?;
    let context =
        minijinja::context! { rank, overall, planes, traces, left_out, brief, table, assets };
    Ok(template.render(context)?)
}

/// Returns the delay-throughput plane of a ranking over all scenarios, as on its page, as an SVG
/// file in a palette for print, `pixels` wide. `None` if no candidate was measured.
pub fn rank_plane_svg(summary: &RankSummary, pixels: f64) -> Option<String> {
    Some(plane::overall(summary, plane::WIDE)?.file(pixels))
}
