//! A drawing in two versions: for a page, and for narrow screens. The style sheet shows one of
//! them.

use crate::drawing::Drawing;
use minijinja::Value;
use serde::Serialize;

/// Both versions, as SVG.
#[derive(Serialize)]
pub(crate) struct Fitted {
    wide: Value,
    narrow: Value,
}

impl Fitted {
    /// Draws both versions; the argument of `draw` is whether the screen is narrow. Returns `None`
    /// if there is nothing to draw.
    pub(crate) fn new(draw: impl Fn(bool) -> Option<Drawing>) -> Option<Fitted> {
        let safe = |drawing: Drawing| Value::from_safe_string(drawing.inline());
        Some(Fitted { wide: safe(draw(false)?), narrow: safe(draw(true)?) })
    }
}
