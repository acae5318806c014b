//! The page of open connections.

use super::course::{Panel, panels};
use super::{Picture, TABLE, live_page, on_page};
use crate::ReportError;
use crate::page::environment;
use knee_present::Table;
use knee_present::words::{percent, rate};
use minijinja::Value;

const BODY: &str = include_str!("../../assets/open-body.html");

/// What open connections did in a step of time, and what this host dropped in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpenPoint {
    /// Begin and end, seconds since 1970 (UTC).
    pub span_s: [f64; 2],
    /// Payload sent, retransmissions included, bytes.
    pub sent_bytes: u64,
    /// Payload retransmitted, bytes.
    pub retransmitted_bytes: u64,
    /// Packets that this host dropped.
    pub drops: u64,
}

const PANELS: [Panel<OpenPoint>; 3] = [
    ("sent, Mbit/s", "curve c0", mbit_per_s, |mbit| rate(Some(mbit * 1e6))),
    ("retransmitted, %", "curve c1", retransmitted, |part| percent(Some(part / 100.0))),
    ("dropped by this host, packets per second", "curve c2", drops_per_s, |number| {
        format!("{number:.1} per second")
    }),
];

fn per_second(point: &OpenPoint, number: f64) -> f64 {
    let [from, to] = point.span_s;
    if to > from { number / (to - from) } else { 0.0 }
}

fn mbit_per_s(point: &OpenPoint) -> f64 {
    per_second(point, point.sent_bytes as f64 * 8e-6)
}

fn retransmitted(point: &OpenPoint) -> f64 {
    100.0 * point.retransmitted_bytes as f64 / point.sent_bytes.max(1) as f64
}

fn drops_per_s(point: &OpenPoint) -> f64 {
    per_second(point, point.drops as f64)
}

/// Returns the contents of the page without the document around it: sentences, facts below them, the
/// course of the last hour, and tables with their titles. A live page renders it again after each
/// interval.
///
/// # Errors
/// [`ReportError`] if a template of this crate is invalid.
pub fn open_body(
    says: &[String],
    facts: &[String],
    course: &[OpenPoint],
    tables: Vec<Table>,
) -> Result<String, ReportError> {
    let mut environment = environment();
    environment.add_template("table.html", TABLE)?;
    environment.add_template("open.html", BODY)?;
    let template = environment.get_template("open.html")?;
    let label = "sent, retransmitted and dropped over time";
    let drawing = panels(label, course, &PANELS, |point| point.span_s, |_| None, None);
    let course = drawing.map(|drawing| Picture {
        title: "Over time".to_string(),
        note: "All open connections together (UTC).".to_string(),
        drawing: Value::from_safe_string(drawing.inline()),
    });
    let tables: Vec<Table> = tables.into_iter().map(on_page).collect();
    Ok(template.render(minijinja::context! { says, facts, course, tables })?)
}

/// Returns the document around the live page of open connections ([`live_page`]).
///
/// # Errors
/// The errors of [`open_body`].
pub fn open_live(body: &str) -> Result<String, ReportError> {
    let foot = "Pictures are of the last hour, tables of the last interval.";
    live_page("Open connections of this host, live", body, foot)
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_present::{number, text};

    fn point(second: u64) -> OpenPoint {
        OpenPoint {
            span_s: [second as f64, second as f64 + 1.0],
            sent_bytes: 1_250_000,
            retransmitted_bytes: 125_000,
            drops: 3,
        }
    }

    /// A picture from two steps on, with the values of each; a gap ends the line.
    #[test]
    fn a_page_shows_sentences_tables_and_the_course() {
        let table = || Table::new([text("client"), number("sent")]).titled("The <last> second");
        let body = |course: &[OpenPoint]| {
            let says = ["Lost <here>.".to_string()];
            open_body(&says, &["2 open".to_string()], course, vec![table()]).unwrap()
        };
        let one = body(&[point(100)]);
        assert!(one.contains("Lost &lt;here&gt;.") && one.contains("The &lt;last&gt; second"));
        assert!(!one.contains("<svg") && one.contains("2 open"));
        let more = body(&[point(100), point(101), point(200)]);
        assert!(more.contains("00:01:40 10 Mbit/s") && more.contains("00:03:20 3.0 per second"));
        assert!(more.contains("10 %"), "{more}");
        // Two lines in each of three panels: a gap of 98 s is between them.
        assert_eq!(more.matches("class=\"curve").count(), 6);
    }
}
