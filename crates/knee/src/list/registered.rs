//! Registered controllers, schedulers and AQMs with their presets.

use knee_present::{Document, Table, text};
use knee_units::registry::{Entry, Preset};

/// All names of a registry, each followed by its presets.
pub fn names<B>(entries: &'static [Entry<B>]) -> Vec<String> {
    let named = |entry: &'static Entry<B>| {
        std::iter::once(entry.name).chain(entry.presets.iter().map(|preset| preset.name))
    };
    entries.iter().flat_map(named).map(str::to_string).collect()
}

/// All entries with their parameters and presets.
pub fn document<B>(entries: &[Entry<B>]) -> Document {
    let all = entries.iter().map(one);
    all.reduce(|all, next| all.words("\n").then(next)).unwrap_or_default()
}

fn one<B>(entry: &Entry<B>) -> Document {
    let mut document = Document::default()
        .words(format!("{}: {}\n  source: {}\n", entry.name, entry.summary, entry.source));
    if !entry.parameters.is_empty() {
        let heads = ["parameter", "default", "takes", "meaning"];
        let mut table = Table::new(heads.map(text)).called(entry.name);
        for parameter in entry.parameters {
            let kind = parameter.kind.describe();
            table.row([parameter.name, parameter.default, &kind, parameter.summary]);
        }
        document = document.words("\n").table(table);
    }
    document.words(entry.presets.iter().map(preset).collect::<String>())
}

fn preset(preset: &Preset) -> String {
    let sets = preset.parameters.iter().map(|(name, value)| format!("{name} = {value}"));
    let sets = sets.collect::<Vec<_>>().join(", ");
    format!("\npreset {}: {}\n  sets {sets}\n", preset.name, preset.summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen;

    /// All AQMs in the scenario template are listed, with source and parameters.
    #[test]
    fn aqms_of_the_template_are_listed() {
        let names = names(knee_link::aqms());
        for name in ["drop-tail", "codel", "fq-codel", "pie", "red", "threshold"] {
            assert!(knee_scenario::template().contains(name), "{name}");
            assert!(names.iter().any(|known| known == name), "{name} {names:?}");
        }
        let text = document(knee_link::aqms()).text(screen::layout());
        assert!(text.contains("source: RFC 8289"), "{text}");
        let quantum = text.lines().find(|line| line.starts_with("quantum")).unwrap_or_default();
        assert!(quantum.contains("1514 B") && quantum.contains("a turn"), "{quantum}");
    }
}
