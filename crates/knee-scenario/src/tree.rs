//! A TOML document as a tree in which every node has its place.
//!
//! Places are offsets into the concatenation of all texts that are read, so that a value from a
//! `--set` argument can be part of a file's tree and still refer to its origin.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A place: bytes from `start` to before `end`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Span {
    pub start: usize,
    pub end: usize,
}

impl Span {
    fn of<T>(spanned: &Spanned<T>, base: usize) -> Span {
        let span = spanned.span();
        Span { start: span.start + base, end: span.end + base }
    }
}

/// A key with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    pub name: String,
    pub span: Span,
}

/// A value with its place.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub kind: Kind,
    pub span: Span,
}

/// Entries of a table, in the order of the text.
pub(crate) type Entries = Vec<(Key, Node)>;

/// The kind of a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    String(String),
    Integer(i128),
    Float(f64),
    Bool(bool),
    Datetime(String),
    Array(Vec<Node>),
    Table(Entries),
}

impl Kind {
    /// Returns its noun with the article, for messages.
    pub(crate) fn describe(&self) -> &'static str {
        match self {
            Kind::String(_) => "a string",
            Kind::Integer(_) | Kind::Float(_) => "a bare number",
            Kind::Bool(_) => "true or false",
            Kind::Datetime(_) => "a date",
            Kind::Array(_) => "a list",
            Kind::Table(_) => "a table",
        }
    }
}

impl Node {
    /// Creates a value that is not part of a text.
    pub(crate) fn new(kind: Kind) -> Node {
        Node { kind, span: Span::default() }
    }
    pub(crate) fn text(text: impl Into<String>) -> Node {
        Node::new(Kind::String(text.into()))
    }
    pub(crate) fn entries(&self) -> Option<&Entries> {
        if let Kind::Table(entries) = &self.kind { Some(entries) } else { None }
    }
    pub(crate) fn entries_mut(&mut self) -> Option<&mut Entries> {
        if let Kind::Table(entries) = &mut self.kind { Some(entries) } else { None }
    }
    pub(crate) fn as_str(&self) -> Option<&str> {
        if let Kind::String(text) = &self.kind { Some(text) } else { None }
    }
    /// Returns the value of a key, if this is a table that has it.
    pub(crate) fn get(&self, name: &str) -> Option<&Node> {
        self.entries()?.iter().find(|(key, _)| key.name == name).map(|(_, node)| node)
    }
}

/// A syntax error: its place and the TOML parser's message.
pub(crate) type SyntaxError = (Span, String);

/// A text with more syntax errors than this is no TOML.
pub(crate) const SYNTAX_ERRORS_MAX: usize = 20;
/// Bytes at the beginning of a text that are tried first.
const TRIED_BYTES: usize = 1 << 17;

/// Parses a TOML document that begins at `base` in the concatenation of all texts. If the beginning
/// of a long text has more than [`SYNTAX_ERRORS_MAX`] errors, they are all that is returned.
pub(crate) fn parse(text: &str, base: usize) -> Result<Node, Vec<SyntaxError>> {
    // Whole lines; a value that goes on beyond them is one error.
    let tried = text.get(..TRIED_BYTES).and_then(|start| Some(&start[..start.rfind('\n')?]));
    let beginning = tried.map(|start| DeTable::parse_recoverable(start).1).unwrap_or_default();
    if beginning.len() > SYNTAX_ERRORS_MAX {
        return Err(syntax_errors(&beginning, base));
    }
    let (table, errors) = DeTable::parse_recoverable(text);
    if errors.is_empty() {
        let span = Span { start: base, end: base };
        return Ok(Node { kind: Kind::Table(entries(table.get_ref(), base)), span });
    }
    Err(syntax_errors(&errors, base))
}

fn syntax_errors(errors: &[toml::de::Error], base: usize) -> Vec<SyntaxError> {
    let place = |error: &toml::de::Error| {
        let span = error.span().unwrap_or(0..0);
        Span { start: span.start + base, end: span.end + base }
    };
    errors.iter().map(|error| (place(error), error.message().to_string())).collect()
}

/// Parses one TOML value; `None` if the text is not one.
pub(crate) fn parse_value(text: &str, base: usize) -> Option<Node> {
    DeValue::parse(text).ok().map(|value| node(&value, base))
}

fn entries(table: &DeTable<'_>, base: usize) -> Entries {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key = Key {
            name: AsRef::<str>::as_ref(key.get_ref()).to_string(),
            span: Span::of(key, base),
        };
        (key, node(value, base))
    };
    let mut entries: Entries = table.iter().map(entry).collect();
    entries.sort_by_key(|(key, _)| key.span);
    entries
}

fn node(value: &Spanned<DeValue<'_>>, base: usize) -> Node {
    let kind = match value.get_ref() {
        DeValue::String(text) => Kind::String(text.to_string()),
        DeValue::Integer(number) => integer(number.as_str(), number.radix()),
        DeValue::Float(number) => Kind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(value) => Kind::Bool(*value),
        DeValue::Datetime(date) => Kind::Datetime(date.to_string()),
        DeValue::Array(items) => Kind::Array(items.iter().map(|item| node(item, base)).collect()),
        DeValue::Table(table) => Kind::Table(entries(table, base)),
    };
    Node { kind, span: Span::of(value, base) }
}

/// Parses an integer. One too large for any key becomes a float, which is then refused.
fn integer(digits: &str, radix: u32) -> Kind {
    i128::from_str_radix(digits, radix).map_or(Kind::Float(f64::INFINITY), Kind::Integer)
}

/// Writes a document. Tables of the first level, and tables within them, get a header; deeper
/// values are written inline.
pub(crate) fn print(document: &Entries) -> String {
    let mut text = String::new();
    for (key, value) in document.iter().filter(|(_, value)| !has_header(value)) {
        line(&mut text, key, value);
    }
    for (key, value) in document.iter().filter(|(_, value)| has_header(value)) {
        match &value.kind {
            Kind::Array(items) => {
                for item in items {
                    section(&mut text, &format!("[[{}]]", bare(&key.name)), item);
                }
            }
            Kind::Table(entries) if entries.iter().all(|(_, inner)| inner.entries().is_some()) => {
                for (inner, value) in entries {
                    let header = format!("[{}.{}]", bare(&key.name), bare(&inner.name));
                    section(&mut text, &header, value);
                }
            }
            _ => section(&mut text, &format!("[{}]", bare(&key.name)), value),
        }
    }
    text
}

fn has_header(value: &Node) -> bool {
    match &value.kind {
        Kind::Table(_) => true,
        Kind::Array(items) => !items.is_empty() && items.iter().all(|i| i.entries().is_some()),
        _ => false,
    }
}

fn section(text: &mut String, header: &str, value: &Node) {
    text.push('\n');
    text.push_str(header);
    text.push('\n');
    for (key, value) in value.entries().into_iter().flatten() {
        line(text, key, value);
    }
}

fn line(text: &mut String, key: &Key, value: &Node) {
    text.push_str(&format!("{} = {}\n", bare(&key.name), inline(value)));
}

/// Writes a key, quoted if necessary.
fn bare(name: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if !name.is_empty() && name.chars().all(plain) { name.to_string() } else { quoted(name) }
}

fn quoted(text: &str) -> String {
    toml::Value::String(text.to_string()).to_string()
}

/// Writes a value in one line, or a string with line breaks in several.
fn inline(value: &Node) -> String {
    match &value.kind {
        Kind::String(text) => quoted(text),
        Kind::Integer(number) => number.to_string(),
        Kind::Float(number) => toml::Value::Float(*number).to_string(),
        Kind::Bool(value) => value.to_string(),
        Kind::Datetime(text) => text.clone(),
        Kind::Array(items) => {
            format!("[{}]", items.iter().map(inline).collect::<Vec<_>>().join(", "))
        }
        Kind::Table(entries) => {
            let entry =
                |(key, value): &(Key, Node)| format!("{} = {}", bare(&key.name), inline(value));
            format!("{{ {} }}", entries.iter().map(entry).collect::<Vec<_>>().join(", "))
        }
    }
}
