//! Heat map of a measure over two settings. Cells are drawn separately, so that a page
//! can show another view in the same map.

use super::readings::{Readings, Value, View, along};
use crate::drawing::{Drawing, escaped};

/// Width and height of a cell, with the gap to the next one.
const CELL: (f64, f64) = (130.0, 42.0);
const GAP: f64 = 3.0;
/// Outline of a cell, relative to its centre. A page contains it once.
pub(super) const OUTLINE: &str = r#"x="-63.5" y="-19.5" width="127" height="39" rx="3""#;
/// Height above the first row, for the horizontal key and its values.
const HEAD: f64 = 46.0;
/// Maximum length of a column's and a row's label, and the approximate width of a
/// character.
const COLUMN_CHARACTERS: usize = 17;
const ROW_CHARACTERS: usize = 30;
const CHARACTER: f64 = 6.7;
/// Ratio of the largest to the smallest value from which the colour scale is
/// logarithmic.
const SPAN: f64 = 30.0;
/// Smallest ratio that gets the full colour.
const REACH: f64 = 1.1;

/// Colour scale of a view.
pub(super) enum Shades {
    /// From the lowest to the highest value, linear or logarithmic.
    Values { low: f64, high: f64, by_ratio: bool },
    /// In both directions from a ratio of one, up to this logarithm.
    Ratios { reach: f64, less_is_better: bool },
}

impl Shades {
    /// Returns the scale for all values of a view.
    pub(super) fn new(readings: &Readings<'_>, view: &View, all: &[f64]) -> Shades {
        if view.base.is_some() {
            let reaches = all.iter().filter(|value| **value > 0.0).map(|value| value.ln().abs());
            let reach = reaches.fold(REACH.ln(), f64::max);
            return Shades::Ratios { reach, less_is_better: readings.less_is_better(view) };
        }
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Shades::Values { low, high, by_ratio: low > 0.0 && high / low > SPAN }
    }

    /// Returns the CSS class and the opacity of a value.
    fn of(&self, value: f64) -> (&'static str, f64) {
        match *self {
            Shades::Values { low, high, .. } if high <= low => ("heat", 0.4),
            Shades::Values { low, high, by_ratio: true } => {
                ("heat", (value / low).ln() / (high / low).ln())
            }
            Shades::Values { low, high, .. } => ("heat", (value - low) / (high - low)),
            Shades::Ratios { .. } if value <= 0.0 => ("heat", 0.0),
            Shades::Ratios { reach, less_is_better } => {
                let part = value.ln() / reach;
                let better = part == 0.0 || (part < 0.0) == less_is_better;
                let class = if better { "heat" } else { "worse" };
                (class, part.abs().min(1.0))
            }
        }
    }
}

/// Draws the contents of a cell, relative to its centre.
pub(super) fn cell(value: Option<&Value>, shades: &Shades) -> String {
    let ground =
        |class: &str, opacity: &str| format!("<rect class=\"{class}\" {OUTLINE}{opacity}/>");
    let Some(value) = value else { return ground("blank", "") + "<text y=\"4\">–</text>" };
    let [main, more] = value.text.each_ref().map(|text| escaped(text));
    let (class, opacity) = match value.middle {
        None => ("never", String::new()),
        Some(middle) => {
            let (class, part) = shades.of(middle);
            (class, format!(" fill-opacity=\"{:.2}\"", 0.06 + 0.94 * part))
        }
    };
    let class = if value.best { format!("{class} best") } else { class.to_string() };
    let star = if value.best { "★ " } else { "" };
    let bold = if value.best { " class=\"front\"" } else { "" };
    let words = match more.is_empty() {
        true => format!("<text{bold} y=\"4\">{star}{main}</text>"),
        false => format!(
            "<text{bold} y=\"-2\">{star}{main}</text><text class=\"more\" y=\"13\">{more}</text>"
        ),
    };
    ground(&class, &opacity) + &words
}

/// Contents of a cell whose combination is not possible.
fn impossible() -> String {
    cell(None, &Shades::Ratios { reach: 1.0, less_is_better: true }).replace('–', "not possible")
}

/// Returns the size of a map with one key on the horizontal axis and one on the vertical.
pub(super) fn size(readings: &Readings<'_>, [x, y]: [usize; 2]) -> (f64, f64) {
    let keys = &readings.summary.keys;
    let (columns, rows) = (keys[x].values.len() as f64, keys[y].values.len() as f64);
    let width = row_head(readings, y) + columns * CELL.0 + GAP;
    // The name of the horizontal key may be wider than one column.
    let title = row_head(readings, y) + characters(&keys[x].name, 2) * CHARACTER + GAP;
    (width.max(title), HEAD + rows * CELL.1 + GAP)
}

fn row_head(readings: &Readings<'_>, y: usize) -> f64 {
    let key = &readings.summary.keys[y];
    let names = key.values.iter().map(|value| characters(&short(value, ROW_CHARACTERS), 0));
    names.fold(characters(&key.name, 2), f64::max) * CHARACTER + 16.0
}

fn characters(text: &str, more: usize) -> f64 {
    (text.chars().count() + more) as f64
}

fn short(text: &str, characters: usize) -> String {
    match text.chars().count() > characters {
        true => text.chars().take(characters - 1).chain(['…']).collect(),
        false => text.to_string(),
    }
}

/// Draws a map below `top`, everything but two keys as at a place. `contents` of a point,
/// by its number: as [`cell`] has it, or nothing where a page puts it in.
pub(super) fn draw(
    drawing: &mut Drawing,
    top: f64,
    readings: &Readings<'_>,
    (place, [x, y]): (&[usize], [usize; 2]),
    contents: &dyn Fn(usize) -> String,
) {
    let keys = &readings.summary.keys;
    let left = row_head(readings, y);
    let middle = |column: usize| left + (column as f64 + 0.5) * CELL.0;
    drawing.words("quiet", "start", (left + GAP, top + 16.0), format!("{} →", keys[x].name));
    drawing.words("quiet", "end", (left - 8.0, top + 38.0), format!("{} ↓", keys[y].name));
    for (column, name) in keys[x].values.iter().enumerate() {
        let at = (middle(column), top + 38.0);
        drawing.words("head", "middle", at, short(name, COLUMN_CHARACTERS));
    }
    for (row, name) in keys[y].values.iter().enumerate() {
        let height = top + HEAD + (row as f64 + 0.5) * CELL.1;
        drawing.words("head", "end", (left - 8.0, height + 4.0), short(name, ROW_CHARACTERS));
        for column in 0..keys[x].values.len() {
            let place = along(&along(place, y, row), x, column);
            let name = readings.named(&place, &readings.axes);
            let at = (middle(column), height);
            match (readings.number(&place), readings.reason(&place)) {
                (Some(point), _) => drawing.cell(at, Some(point), name, contents(point)),
                (None, Some(why)) => {
                    drawing.cell(at, None, format!("{name}: {why}"), impossible());
                }
                (None, None) => {
                    let words = format!("{name}: not run yet");
                    let nothing = Shades::Ratios { reach: 1.0, less_is_better: true };
                    drawing.cell(at, None, words, cell(None, &nothing));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between two cells there is the gap, wherever they are.
    #[test]
    fn a_cell_fills_its_place_but_for_the_gap() {
        let (width, height) = (CELL.0 - GAP, CELL.1 - GAP);
        let (left, top) = (-width / 2.0, -height / 2.0);
        let outline =
            format!("x=\"{left}\" y=\"{top}\" width=\"{width}\" height=\"{height}\" rx=\"3\"");
        assert_eq!(OUTLINE, outline);
    }

    /// Over more than SPAN times equal ratios are equally far apart: 10 is in the middle
    /// between 1 and 100.
    #[test]
    fn shades_are_by_ratio_over_a_wide_span() {
        let (low, by_ratio) = (1.0, true);
        let wide = Shades::Values { low, high: 100.0, by_ratio };
        assert!((wide.of(10.0).1 - 0.5).abs() < 1e-12);
        let narrow = Shades::Values { low, high: 3.0, by_ratio: false };
        assert_eq!(narrow.of(2.0), ("heat", 0.5));
    }

    /// Half and twice are equally deep, to either side of what is better.
    #[test]
    fn ratios_are_better_or_worse_around_one() {
        for (less_is_better, half, twice) in [(true, "heat", "worse"), (false, "worse", "heat")] {
            let shades = Shades::Ratios { reach: 2f64.ln(), less_is_better };
            assert_eq!((shades.of(0.5), shades.of(2.0)), ((half, 1.0), (twice, 1.0)));
            assert_eq!(shades.of(1.0), ("heat", 0.0));
        }
    }
}
