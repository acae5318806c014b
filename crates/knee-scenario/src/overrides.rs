//! `--set key=value`, and the changes of a study's run. The values are put into the tree of a
//! scenario before it is read, so that they are checked like everything else.

use crate::ready;
use crate::source::Reading;
use crate::tree::{self, Entries, Key, Kind, Node, Span};
use knee_units::registry::did_you_mean;
use std::str::FromStr;

/// A `--set` argument.
///
/// Keys are written with dots: `duration`, `link.NAME.rate`, `path.NAME.reverse_delay`,
/// `flow.NAME.cc`, `claim.ID.at_most`, `transport.ack_every`, and deeper,
/// `flow.NAME.cc.drain_to_target`. Values are TOML, or a string without quotes: `20 Mbit/s`, `bbr`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Override {
    text: String,
}

impl Override {
    /// Creates an override from a key and its value.
    pub fn new(key: &str, value: &str) -> Override {
        Override { text: format!("{key}={value}") }
    }

    /// Returns the text as given: `key=value`.
    pub fn text(&self) -> &str {
        &self.text
    }
}

/// A text that is not of the form `key=value`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("\"{0}\" is not a key with its value: write link.bottleneck.rate=\"20 Mbit/s\"")]
pub struct OverrideError(pub String);

impl FromStr for Override {
    type Err = OverrideError;
    /// Reads `key=value`; the error says what to write.
    fn from_str(text: &str) -> Result<Override, OverrideError> {
        match text.split_once('=') {
            Some((key, _)) if !key.trim().is_empty() => Ok(Override { text: text.to_string() }),
            _ => Err(OverrideError(text.to_string())),
        }
    }
}

/// A new value for a key.
pub(crate) struct Change {
    pub path: Vec<Key>,
    pub value: Node,
}

/// Parses a `--set` argument; its places refer to a text of its own.
pub(crate) fn change(given: &Override, reading: &mut Reading<'_>) -> Change {
    let base = reading.add_text("--set", &given.text);
    let (path, value) = given.text.split_once('=').unwrap_or((&given.text, ""));
    let text = value.trim();
    let start = base + path.len() + 1 + (value.len() - value.trim_start().len());
    let value = tree::parse_value(text, start).unwrap_or_else(|| {
        let span = Span { start, end: start + text.len() };
        Node { kind: Kind::String(text.to_string()), span }
    });
    let mut end = base;
    let part = |part: &str| {
        let span = Span { start: end, end: end + part.len() };
        end = span.end + 1;
        Key { name: part.trim().to_string(), span }
    };
    Change { path: path.split('.').map(part).collect(), value }
}

/// Collects the changes in a table of settings, whose keys may be dotted or nested down to the
/// values of the scenario.
pub(crate) fn changes(entries: &Entries) -> Vec<Change> {
    let mut found = Vec::new();
    for (key, value) in entries {
        flatten(keys(&key.name, key.span), value, &mut found);
    }
    found
}

fn flatten(path: Vec<Key>, value: &Node, found: &mut Vec<Change>) {
    match value.entries() {
        Some(entries) if path.len() < depth(&path) => {
            for (key, value) in entries {
                let deeper = keys(&key.name, key.span);
                flatten(path.iter().cloned().chain(deeper).collect(), value, found);
            }
        }
        _ => found.push(Change { path, value: value.clone() }),
    }
}

/// Returns the number of keys that lead to a value of a scenario.
fn depth(path: &[Key]) -> usize {
    match path.first().map(|key| key.name.as_str()) {
        Some("link" | "path" | "flow" | "claim") => 3,
        Some("transport") => 2,
        _ => 1,
    }
}

fn keys(path: &str, span: Span) -> Vec<Key> {
    path.split('.').map(|part| Key { name: part.trim().to_string(), span }).collect()
}

/// Puts values into a scenario's document, and gives paths what they lack of those that they are
/// like. Names must exist; unknown keys are reported when the document is read.
pub(crate) fn apply(
    document: &mut Node,
    changes: impl IntoIterator<Item = Change>,
    reading: &mut Reading<'_>,
) {
    let is_like = |change: &Change| match &change.path[..] {
        [path, _, like] => path.name == "path" && like.name == "like",
        _ => false,
    };
    let (likes, others): (Vec<Change>, Vec<Change>) = changes.into_iter().partition(is_like);
    for Change { path, value } in likes {
        put(document, &path, value, reading);
    }
    ready::expand(document, reading);
    for Change { path, value } in others {
        put(document, &path, value, reading);
    }
}

fn put(node: &mut Node, path: &[Key], value: Node, reading: &mut Reading<'_>) {
    let [head, rest @ ..] = path else {
        *node = value;
        return;
    };
    if let [name, _, ..] = rest
        && let "link" | "path" | "flow" | "claim" = head.name.as_str()
    {
        if let Some(inner) = named(node, head, name, reading) {
            put(inner, &rest[1..], value, reading);
        }
        return;
    }
    let Some(entries) = node.entries_mut() else {
        let message =
            format!("\"{}\" is inside {}, which is not a table", head.name, node.kind.describe());
        reading.problem(head.span, message, "set the whole value instead");
        return;
    };
    let at = entries.iter().position(|(key, _)| key.name == head.name).unwrap_or_else(|| {
        let empty = Node { kind: Kind::Table(Vec::new()), span: head.span };
        entries.push((head.clone(), empty));
        entries.len() - 1
    });
    let (key, inner) = &mut entries[at];
    key.span = head.span;
    if !rest.is_empty() {
        spell_out(&head.name, inner);
    }
    put(inner, rest, value, reading);
}

/// Replaces a name with a table, so that a parameter can be added: "bbr" becomes { name = "bbr" },
/// the workload "page" becomes { page = {} }.
fn spell_out(name: &str, node: &mut Node) {
    let Kind::String(word) = &node.kind else { return };
    let (key, inner) = match name {
        "cc" | "aqm" | "scheduler" => ("name".to_string(), node.kind.clone()),
        "workload" => (word.clone(), Kind::Table(Vec::new())),
        _ => return,
    };
    let span = node.span;
    node.kind = Kind::Table(vec![(Key { name: key, span }, Node { kind: inner, span })]);
}

/// Finds the table `[head.name]`, or the `[[head]]` with this name.
fn named<'n>(
    document: &'n mut Node,
    head: &Key,
    name: &Key,
    reading: &mut Reading<'_>,
) -> Option<&'n mut Node> {
    let all = document.entries_mut()?.iter_mut().find(|(key, _)| key.name == head.name);
    let mut tables: Vec<(String, &mut Node)> = match all.map(|(_, node)| &mut node.kind) {
        Some(Kind::Table(entries)) => {
            entries.iter_mut().map(|(key, node)| (key.name.clone(), node)).collect()
        }
        Some(Kind::Array(items)) => {
            items.iter_mut().map(|node| (called(node).unwrap_or_default(), node)).collect()
        }
        _ => Vec::new(),
    };
    if let Some(at) = tables.iter().position(|(known, _)| *known == name.name) {
        return Some(tables.swap_remove(at).1);
    }
    let known = tables.iter().map(|(known, _)| known.as_str());
    let message = format!("there is no {} \"{}\" to set a key of", head.name, name.name);
    reading.problem(name.span, message, did_you_mean(&name.name, known));
    None
}

/// Returns the name of a flow, by default its controller's, or the id of a claim.
fn called(node: &Node) -> Option<String> {
    let controller = || {
        let cc = node.get("cc")?;
        cc.as_str().or_else(|| cc.get("name")?.as_str())
    };
    let name = node.get("name").or(node.get("id")).and_then(Node::as_str);
    name.or_else(controller).map(str::to_string)
}
