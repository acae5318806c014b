//! A drawing twice: for a page, and for a narrow screen, where the style sheet shows the
//! other one.

use crate::drawing::Drawing;
use minijinja::Value;
use serde::Serialize;

/// Both forms, as SVG.
#[derive(Serialize)]
pub(crate) struct Fitted {
    wide: Value,
    narrow: Value,
}

impl Fitted {
    /// Draws both; `draw` is told whether the screen is narrow. None: there is nothing to
    /// draw.
    pub(crate) fn new(draw: impl Fn(bool) -> Option<Drawing>) -> Option<Fitted> {
        let safe = |drawing: Drawing| Value::from_safe_string(drawing.inline());
        Some(Fitted { wide: safe(draw(false)?), narrow: safe(draw(true)?) })
    }
}
