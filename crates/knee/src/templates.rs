//! Scenarios written by `knee init`, with the files that they name.

use clap::ValueEnum;

/// A scenario to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Template {
    /// Two flows share a bottleneck; with every key explained
    First,
    /// Which controller for which traffic: classes of transfers, test and control
    Mix,
    /// Two links: together, or one of them alone
    TwoLinks,
    /// A web page over a home connection
    Page,
    /// A video beside a download
    Video,
    /// Two controllers share a bottleneck
    Coexist,
    /// A recorded link
    Trace,
}

/// Name of a file in the scenario, and its text.
pub type NamedFile = (&'static str, &'static str);

impl Template {
    /// The scenario's text.
    pub fn text(self) -> &'static str {
        match self {
            Template::First => knee_scenario::template(),
            Template::Mix => include_str!("../templates/mix.toml"),
            Template::TwoLinks => include_str!("../templates/two-links.toml"),
            Template::Page => include_str!("../templates/page.toml"),
            Template::Video => include_str!("../templates/video.toml"),
            Template::Coexist => include_str!("../templates/coexist.toml"),
            Template::Trace => include_str!("../templates/trace.toml"),
        }
    }

    /// Files that the scenario names, to be written beside it.
    pub fn files(self) -> &'static [NamedFile] {
        match self {
            Template::Page => &[("page.csv", include_str!("../templates/page.csv"))],
            Template::Trace => &[("cellular.down", include_str!("../templates/cellular.down"))],
            _ => &[],
        }
    }

    /// Default file name.
    pub fn default_file(self) -> String {
        let value = self.to_possible_value();
        format!("{}.toml", value.as_ref().map_or("", |value| value.get_name()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_scenario::{Embedded, Source, parse};

    /// The scenario is valid with its files and needs all of them.
    #[test]
    fn every_template_has_the_files_that_it_names() {
        for template in Template::value_variants() {
            let files: Vec<(&str, &[u8])> =
                template.files().iter().map(|(name, text)| (*name, text.as_bytes())).collect();
            let source = Source { name: "a.toml", loader: &Embedded(&files) };
            let scenario = parse(template.text(), &source, &[]).unwrap_or_else(|errors| {
                panic!("{template:?}: {errors}");
            });
            let named: Vec<&str> =
                scenario.files.iter().map(|file| file.written.as_str()).collect();
            let beside: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            assert_eq!(named, beside, "{template:?}");
        }
    }
}
