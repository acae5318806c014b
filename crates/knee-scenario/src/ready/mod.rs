//! Ready-made paths: `like = "leo"` gives a path the links of one, and what is written beside it or
//! in its links goes before.

use crate::read::key;
use crate::source::Reading;
use crate::tree::{self, Entries, Key, Kind, Node, Span};
use knee_units::registry::did_you_mean;

/// A ready-made path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadyPath {
    /// Its name, for `like`.
    pub name: &'static str,
    /// What it is.
    pub says: String,
    /// Whose measurement it stands for.
    pub source: String,
    /// The figures of that measurement.
    pub measured: String,
    /// What is assumed beside them.
    pub assumed: String,
    /// The links, as in a scenario.
    pub links: String,
}

macro_rules! ready {
    ($($name:literal),*) => {
        &[$(($name, include_str!(concat!($name, ".toml")))),*]
    };
}

/// In the order in which they are listed.
const PATHS: &[(&str, &str)] = ready!(
    "adsl",
    "cable",
    "fibre",
    "home-wifi",
    "lte",
    "5g-mid-band",
    "leo",
    "leo-handover",
    "geo",
    "train",
    "congested-evening",
    "data-centre"
);

/// Prefix of the names of files that belong to ready-made paths.
const PREFIX: &str = "ready:/";
const FILES: &[(&str, &[u8])] = &[
    ("leo-handover.csv", include_bytes!("leo-handover.csv")),
    ("train.csv", include_bytes!("train.csv")),
];

/// Returns a file of a ready-made path.
pub(crate) fn file(name: &str) -> Option<&'static [u8]> {
    let name = name.strip_prefix(PREFIX)?;
    FILES.iter().find(|(known, _)| *known == name).map(|(_, bytes)| *bytes)
}

/// Returns all ready-made paths.
pub fn ready_paths() -> Vec<ReadyPath> {
    let path = |(name, text): &(&'static str, &str)| {
        let document = document(text);
        let word = |key| document.get(key).and_then(Node::as_str).unwrap_or_default().to_string();
        let links = text.find("[forward]").map_or("", |at| &text[at..]).trim_end();
        ReadyPath {
            name,
            says: word("says"),
            source: word("source"),
            measured: word("measured"),
            assumed: word("assumed"),
            links: links.to_string(),
        }
    };
    PATHS.iter().map(path).collect()
}

fn document(text: &str) -> Node {
    tree::parse(text, 0).unwrap_or(Node::new(Kind::Table(Vec::new())))
}

/// Gives each path with `like` what it lacks of that path and of its links.
pub(crate) fn expand(document: &mut Node, reading: &mut Reading<'_>) {
    let Some(Kind::Table(paths)) = part(document, "path") else { return };
    let mut links: Vec<(String, Entries)> = Vec::new();
    for (path, node) in paths {
        let Some(entries) = node.entries_mut() else { continue };
        let Some(at) = entries.iter().position(|(key, _)| key.name == "like") else { continue };
        // A wrong one stays, so that the path is not said to lack its links as well.
        let Some(ready) = named(&entries[at].1, reading) else { continue };
        let (_, like) = entries.remove(at);
        let has = |name: &str| entries.iter().any(|(key, _)| key.name == name);
        let mut missing = Vec::new();
        if !has("forward") {
            missing.push(("forward", "forward", path.name.clone()));
        }
        if !has("reverse") && !has("reverse_delay") {
            missing.push(("reverse", "back", format!("{}-back", path.name)));
        }
        for (key, of_link, link) in missing {
            let name = Node { kind: Kind::String(link.clone()), span: like.span };
            let list = Node { kind: Kind::Array(vec![name]), span: like.span };
            entries.push((placed_key(key, like.span), list));
            let given = ready.get(of_link).and_then(Node::entries).cloned().unwrap_or_default();
            links.push((link, given.iter().map(|entry| placed(entry, like.span)).collect()));
        }
    }
    if links.is_empty() {
        return;
    }
    if part(document, "link").is_none()
        && let Some(entries) = document.entries_mut()
    {
        entries.push((key("link"), Node::new(Kind::Table(Vec::new()))));
    }
    let Some(Kind::Table(written)) = part(document, "link") else { return };
    for (name, given) in links {
        let at = written.iter().position(|(key, _)| key.name == name).unwrap_or_else(|| {
            let span = given.first().map_or(Span::default(), |(key, _)| key.span);
            let empty = Node { kind: Kind::Table(Vec::new()), span };
            written.push((placed_key(&name, span), empty));
            written.len() - 1
        });
        let Some(entries) = written[at].1.entries_mut() else { continue };
        for (key, value) in given {
            if !entries.iter().any(|(known, _)| known.name == key.name) {
                entries.push((key, value));
            }
        }
    }
}

/// Returns a part of a document.
fn part<'d>(document: &'d mut Node, name: &str) -> Option<&'d mut Kind> {
    let entries = document.entries_mut()?;
    entries.iter_mut().find_map(|(key, node)| (key.name == name).then_some(&mut node.kind))
}

/// Returns the ready-made path of a name, or reports that there is none.
fn named(like: &Node, reading: &mut Reading<'_>) -> Option<Node> {
    let name = like.as_str()?;
    let found = PATHS.iter().find(|(known, _)| *known == name);
    if found.is_none() {
        let known = PATHS.iter().map(|(known, _)| *known);
        let message = format!("there is no ready-made path \"{name}\"");
        reading.problem(like.span, message, did_you_mean(name, known));
    }
    found.map(|(_, text)| document(text))
}

fn placed_key(name: &str, span: Span) -> Key {
    Key { name: name.to_string(), span }
}

/// Places an entry where `like` is, to which problems with it then refer.
fn placed((key, node): &(Key, Node), span: Span) -> (Key, Node) {
    (placed_key(&key.name, span), placed_node(node, span))
}

fn placed_node(node: &Node, span: Span) -> Node {
    let kind = match &node.kind {
        Kind::Array(items) => {
            Kind::Array(items.iter().map(|item| placed_node(item, span)).collect())
        }
        Kind::Table(entries) => {
            Kind::Table(entries.iter().map(|entry| placed(entry, span)).collect())
        }
        other => other.clone(),
    };
    Node { kind, span }
}
