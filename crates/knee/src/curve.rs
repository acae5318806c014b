//! `knee curve`: measures a path with constant windows and draws the result.

use crate::arguments::Curve;
use crate::failure::{Ending, Failure};
use crate::laboratory::{chosen, lab, watched};
use crate::out_file::OutFile;
use crate::print::Print;
use knee_lab::{Error, Measured, SIMULATOR, ScenarioText};
use knee_present::{Cell, Document, Table, number, text};
use knee_record::Unit;
use knee_report::curve_svg;

/// Runs a scenario with each window; prints a table and writes a picture.
pub fn curve(arguments: &Curve) -> Result<Ending, Failure> {
    let lab = lab(arguments.jobs);
    let on = chosen(&lab.grounds, &arguments.on)?;
    let out = OutFile::new(&arguments.out, arguments.force)?;
    let text = arguments.file.as_ref().map(|file| ScenarioText::read(file));
    let text = text.transpose().map_err(Error::from)?;
    let curve = knee_lab::Curve::new(text.as_ref(), on)?;
    let Some(measured) = watched(&lab, || lab.curve(&curve))? else {
        return Ok(Ending::Interrupted);
    };
    out.write_bytes(curve_svg(&curve.picture(&measured)).as_bytes())?;
    let end = format!("\npicture  {}\n", arguments.out.display());
    let document = Document::default().table(table(&curve, &measured)).words(end);
    document.print_tables(arguments.print.format())?;
    Ok(Ending::Done)
}

/// Returns one row for each window, with the difference between the simulator and each other
/// ground.
fn table(curve: &knee_lab::Curve<'_>, measured: &[Measured]) -> Table {
    let mut heads = ["window", "BDP", "rate", "RTT", "retransmitted"].map(number).to_vec();
    for ground in curve.others() {
        heads.extend([number(ground), number("difference")]);
        heads.extend([number(format!("{ground} RTT")), number("difference")]);
        heads.extend([number("retransmitted"), text(format!("{ground}’s run"))]);
    }
    let mut table = Table::new(heads).called("windows");
    let rate = |value| Cell::figure(Unit::BitsPerSecond, Some(value));
    let time = |value| Cell::figure(Unit::Seconds, Some(value));
    let apart = |a: f64, b: f64| {
        let part = a / b - 1.0;
        Cell::shown(format!("{:+.1} %", part * 100.0), part)
    };
    for one in measured.iter().filter(|one| one.ground == SIMULATOR) {
        let point = one.point;
        let mut row = vec![
            multiple(point.window_bytes / curve.path.segment_bytes, 0),
            multiple(point.window_bytes / curve.path.bdp_bytes, 2),
            rate(point.delivered_bps),
            time(point.rtt_s),
            Cell::figure(Unit::Fraction, Some(one.lost)),
        ];
        for ground in curve.others() {
            let same = |other: &&Measured| {
                other.ground == ground && other.point.window_bytes == point.window_bytes
            };
            let Some(other) = measured.iter().find(same) else { continue };
            row.extend([
                rate(other.point.delivered_bps),
                apart(point.delivered_bps, other.point.delivered_bps),
                time(other.point.rtt_s),
                apart(point.rtt_s, other.point.rtt_s),
                Cell::figure(Unit::Fraction, Some(other.lost)),
                other.verdict.to_string().into(),
            ]);
        }
        table.row(row);
    }
    table
}

/// Formats a window as a multiple of the segment size or the BDP.
fn multiple(value: f64, digits: usize) -> Cell {
    Cell::shown(format!("{value:.digits$}"), value)
}
