//! The style of all charts and drawings: named colours in a page, which defines light and dark
//! variants, and a palette for paper in a separate file.

/// Rules by class; `var(--name)` is a colour.
const RULES: &str = include_str!("../../assets/figure.css");

/// Colours on paper: Okabe and Ito (2008), distinguishable with colour blindness and in grey.
const PAPER: [(&str, &str); 35] = [
    ("raised", "#fff"),
    ("text", "#111"),
    ("quiet", "#444"),
    ("line", "#bbb"),
    ("grid", "#e4e4e4"),
    ("good", "#00679e"),
    ("bad", "#d55e00"),
    ("none", "#777"),
    ("flow-0", "#0072b2"),
    ("flow-1", "#d55e00"),
    ("flow-2", "#009e73"),
    ("flow-3", "#cc79a7"),
    ("flow-4", "#e69f00"),
    ("flow-5", "#56b4e9"),
    ("flow-6", "#6b5b00"),
    ("flow-7", "#222"),
    ("estimate", "#0072b2"),
    ("measured", "#444"),
    ("third", "#d55e00"),
    ("capacity", "#d9dde1"),
    ("tint-green", "#b2e2d5"),
    ("tint-orange", "#f7e0ab"),
    ("tint-blue", "#bbe1f6"),
    ("tint-grey", "#f5f6f6"),
    ("tint-purple", "#e3b5cf"),
    ("tint-yellow", "#f8f4aa"),
    ("tint-red", "#eaae80"),
    ("tint-sky", "#ddf0fb"),
    ("tint-none", "none"),
    ("heat", "#4ba3d3"),
    ("worse", "#ee9a5c"),
    ("none-ground", "#f0f1f2"),
    ("region-app", "#f0f6fb"),
    ("region-bandwidth", "#fdf6e8"),
    ("region-buffer", "#fbeceb"),
];

/// Returns the rules for a page, which defines the colours; in print it uses those for paper.
pub(crate) fn style() -> String {
    let colours = PAPER.iter().map(|(name, colour)| format!("--{name}:{colour};"));
    format!("{RULES}@media print {{ :root {{ {} }} }}\n", colours.collect::<String>())
}

/// Returns the rules for a separate file, with the colours for paper inserted: not every SVG
/// renderer supports variables.
pub(crate) fn on_paper(more: &str) -> String {
    let all = [RULES, more].concat();
    let mut rules = String::with_capacity(all.len());
    let mut rest = all.as_str();
    while let Some((before, after)) = rest.split_once("var(--") {
        let Some((name, after)) = after.split_once(')') else { break };
        let colour = PAPER.iter().find(|(known, _)| *known == name);
        rules.push_str(before);
        rules.push_str(colour.map_or("#000", |(_, colour)| colour));
        rest = after;
    }
    rules.push_str(rest);
    rules
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paper_has_a_colour_for_every_name() {
        let names = RULES.split("var(--").skip(1).filter_map(|rest| rest.split(')').next());
        let missing: Vec<&str> =
            names.filter(|name| !PAPER.iter().any(|(known, _)| known == name)).collect();
        assert_eq!(missing, Vec::<&str>::new());
        assert!(!on_paper("").contains("var("));
    }
}
