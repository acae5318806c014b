//! Converts the tree of a document to typed tables and back, and collects every problem on the way.
//!
//! A table of the file is declared once, with [`table!`]: its keys, their types and their meaning.
//! Reader, writer, the check for unknown keys and the JSON Schema all come from that declaration.

mod values;

pub(crate) use values::Whole;

use crate::source::Reading;
use crate::tree::{Entries, Key, Kind, Node, Span};
use knee_units::registry::did_you_mean;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use std::borrow::Cow;

/// A value of a key.
pub(crate) trait Value: Sized {
    /// Reads the value; on failure, reports why and returns `None`.
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<Self>;
    /// Returns the value as a tree, without places.
    fn write(&self) -> Node;
}

/// A value with its place.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct At<T> {
    pub value: T,
    pub span: Span,
}

impl<T: Value> Value for At<T> {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<At<T>> {
        T::read(node, reading).map(|value| At { value, span: node.span })
    }
    fn write(&self) -> Node {
        self.value.write()
    }
}

/// The value of an optional key.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Optional<T> {
    /// Not given.
    #[default]
    Absent,
    /// An invalid value, already reported. Nothing that depends on it is reported again.
    Broken,
    /// A valid value.
    Given(At<T>),
}

impl<T> Optional<T> {
    pub(crate) fn new(value: T) -> Optional<T> {
        Optional::Given(At { value, span: Span::default() })
    }
    pub(crate) fn at(&self) -> Option<&At<T>> {
        if let Optional::Given(at) = self { Some(at) } else { None }
    }
    pub(crate) fn get(&self) -> Option<&T> {
        self.at().map(|at| &at.value)
    }
    pub(crate) fn span(&self) -> Option<Span> {
        self.at().map(|at| at.span)
    }
    pub(crate) fn is_broken(&self) -> bool {
        matches!(self, Optional::Broken)
    }
    pub(crate) fn is_given(&self) -> bool {
        matches!(self, Optional::Given(_))
    }
}

impl<T: Clone> Optional<T> {
    /// Returns the value. If there is none, stores and returns `default`, as if it had been given.
    pub(crate) fn fill(&mut self, default: T) -> T {
        match self {
            Optional::Given(at) => at.value.clone(),
            Optional::Broken => default,
            Optional::Absent => {
                *self = Optional::new(default.clone());
                default
            }
        }
    }
}

/// The value of a required key: never `Absent` after reading.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Required<T>(pub Optional<T>);

impl<T> Default for Required<T> {
    fn default() -> Required<T> {
        Required(Optional::Absent)
    }
}

impl<T> Required<T> {
    pub(crate) fn at(&self) -> Option<&At<T>> {
        self.0.at()
    }
    pub(crate) fn get(&self) -> Option<&T> {
        self.0.get()
    }
}

/// Tables by name, in the order of the file: `[link.NAME]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named<T>(pub Vec<(At<String>, Optional<T>)>);

impl<T> Default for Named<T> {
    fn default() -> Named<T> {
        Named(Vec::new())
    }
}

/// Unnamed tables: `[[flow]]`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T>(pub Vec<Optional<T>>);

impl<T> Default for List<T> {
    fn default() -> List<T> {
        List(Vec::new())
    }
}

/// A type that a key of a table can be declared as.
pub(crate) trait Field: Sized {
    /// Whether the table must have the key.
    const REQUIRED: bool = false;
    fn read_field(node: Option<&Node>, reading: &mut Reading<'_>) -> Self;
    /// Returns the value to write, or `None` if the key is left out.
    fn write_field(&self) -> Option<Node>;
}

impl<T: Value> Field for Optional<T> {
    fn read_field(node: Option<&Node>, reading: &mut Reading<'_>) -> Optional<T> {
        let Some(node) = node else { return Optional::Absent };
        At::read(node, reading).map_or(Optional::Broken, Optional::Given)
    }
    fn write_field(&self) -> Option<Node> {
        self.get().map(Value::write)
    }
}

impl<T: Value> Field for Required<T> {
    const REQUIRED: bool = true;
    fn read_field(node: Option<&Node>, reading: &mut Reading<'_>) -> Required<T> {
        match Optional::read_field(node, reading) {
            // The table reports missing keys, because it knows its own place.
            Optional::Absent => Required(Optional::Broken),
            entry => Required(entry),
        }
    }
    fn write_field(&self) -> Option<Node> {
        self.0.write_field()
    }
}

const NAMED_HELP: &str = "write a header with a name, such as [link.bottleneck]";

impl<T: Value> Field for Named<T> {
    fn read_field(node: Option<&Node>, reading: &mut Reading<'_>) -> Named<T> {
        let Some(node) = node else { return Named::default() };
        let Some(entries) = node.entries() else {
            let message = format!("expected tables with a name, found {}", node.kind.describe());
            reading.problem(node.span, message, NAMED_HELP);
            return Named::default();
        };
        let named = |(key, node): &(Key, Node)| {
            let name = At { value: key.name.clone(), span: key.span };
            if node.entries().is_none() {
                let is = node.kind.describe();
                let message = format!("expected a name with a table, but \"{}\" is {is}", key.name);
                reading.problem(key.span, message, NAMED_HELP);
                return (name, Optional::Broken);
            }
            (name, Optional::read_field(Some(node), reading))
        };
        Named(entries.iter().map(named).collect())
    }
    fn write_field(&self) -> Option<Node> {
        let entry = |(name, entry): &(At<String>, Optional<T>)| {
            Some((key(&name.value), entry.write_field()?))
        };
        let entries: Entries = self.0.iter().filter_map(entry).collect();
        (!entries.is_empty()).then(|| Node::new(Kind::Table(entries)))
    }
}

impl<T: Value> Field for List<T> {
    fn read_field(node: Option<&Node>, reading: &mut Reading<'_>) -> List<T> {
        match node.map(|node| (&node.kind, node.span)) {
            None => List::default(),
            Some((Kind::Array(items), _)) => {
                List(items.iter().map(|item| Optional::read_field(Some(item), reading)).collect())
            }
            Some((kind, span)) => {
                let message = format!("expected a list, found {}", kind.describe());
                reading.problem(
                    span,
                    message,
                    "write each in double brackets, such as [[flow]], or a list of tables",
                );
                List(vec![Optional::Broken])
            }
        }
    }
    fn write_field(&self) -> Option<Node> {
        let items: Vec<Node> = self.0.iter().filter_map(Optional::write_field).collect();
        (!items.is_empty()).then(|| Node::new(Kind::Array(items)))
    }
}

pub(crate) fn key(name: &str) -> Key {
    Key { name: name.to_string(), span: Span::default() }
}

/// Reports keys that a table does not have.
pub(crate) fn refuse_unknown(
    entries: &Entries,
    what: &str,
    known: &[&str],
    reading: &mut Reading<'_>,
) {
    for (key, _) in entries.iter().filter(|(key, _)| !known.contains(&key.name.as_str())) {
        let message = format!("{what} has no key \"{}\"", key.name);
        reading.problem(key.span, message, did_you_mean(&key.name, known.iter().copied()));
    }
}

/// Reports a value of the wrong kind.
pub(crate) fn refuse_kind(node: &Node, wanted: &str, example: &str, reading: &mut Reading<'_>) {
    let message = format!("expected {wanted}, found {}", node.kind.describe());
    reading.problem(node.span, message, format!("write {example}"));
}

/// Declares a table of the file: `"what it is, with its article" Name { keys }`. `with` adds
/// another table whose keys belong to this one, too.
macro_rules! table {
    (
        $(#[$meta:meta])*
        $what:literal $name:ident {
            $($(#[$field_meta:meta])* $field:ident: $type:ty,)*
        }
        $(with $flat:ident: $flat_type:ty)?
    ) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, schemars::JsonSchema)]
        #[schemars(deny_unknown_fields, transform = $crate::read::require::<$name>)]
        pub(crate) struct $name {
            $($(#[$field_meta])* #[schemars(default)] pub $field: $type,)*
            $(#[schemars(flatten)] pub $flat: $flat_type,)?
        }

        impl $crate::read::Table for $name {
            const WHAT: &'static str = $what;
            fn keys() -> Vec<&'static str> {
                #[allow(unused_mut, reason = "only tables with another one in them add keys")]
                let mut keys = vec![$(stringify!($field)),*];
                $(keys.extend(<$flat_type as $crate::read::Table>::keys());)?
                keys
            }
            fn required() -> Vec<&'static str> {
                let keys = [$((stringify!($field), <$type as $crate::read::Field>::REQUIRED)),*];
                keys.iter().filter(|(_, required)| *required).map(|(key, _)| *key).collect()
            }
            fn read_keys(node: &$crate::tree::Node, reading: &mut $crate::source::Reading<'_>) -> $name {
                $name {
                    $($field: $crate::read::Field::read_field(node.get(stringify!($field)), reading),)*
                    $($flat: <$flat_type as $crate::read::Table>::read_keys(node, reading),)?
                }
            }
            fn write_keys(&self, entries: &mut $crate::tree::Entries) {
                $(if let Some(node) = $crate::read::Field::write_field(&self.$field) {
                    entries.push(($crate::read::key(stringify!($field)), node));
                })*
                $($crate::read::Table::write_keys(&self.$flat, entries);)?
            }
        }
    };
}
pub(crate) use table;

/// Implemented by what [`table!`] declares.
pub(crate) trait Table: Sized {
    /// The table's noun with its article: "a link".
    const WHAT: &'static str;
    fn keys() -> Vec<&'static str>;
    fn required() -> Vec<&'static str>;
    fn read_keys(node: &Node, reading: &mut Reading<'_>) -> Self;
    fn write_keys(&self, entries: &mut Entries);
}

impl<T: Table> Value for T {
    fn read(node: &Node, reading: &mut Reading<'_>) -> Option<T> {
        let Some(entries) = node.entries() else {
            let example = format!("{} with its keys: {}", T::WHAT, T::keys().join(", "));
            refuse_kind(node, "a table", &example, reading);
            return None;
        };
        refuse_unknown(entries, T::WHAT, &T::keys(), reading);
        for missing in T::required().into_iter().filter(|key| node.get(key).is_none()) {
            let message = format!("{} needs \"{missing}\"", T::WHAT);
            reading.problem(node.span, message, format!("add {missing} = …"));
        }
        Some(T::read_keys(node, reading))
    }
    fn write(&self) -> Node {
        let mut entries = Entries::new();
        self.write_keys(&mut entries);
        Node::new(Kind::Table(entries))
    }
}

/// Lists the required keys in a table's schema.
pub(crate) fn require<T: Table>(schema: &mut Schema) {
    let required = T::required();
    if !required.is_empty() {
        schema.insert("required".to_string(), required.into());
    }
}

/// Declares a set of words, one of which is the value of a key.
macro_rules! words {
    (
        $(#[$meta:meta])*
        $what:literal $name:ident {
            $($(#[$word_meta:meta])* $variant:ident = $word:literal,)*
        }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, schemars::JsonSchema)]
        pub(crate) enum $name {
            $($(#[$word_meta])* #[schemars(rename = $word)] $variant,)*
        }

        impl $name {
            pub(crate) const WORDS: &'static [(&'static str, $name)] =
                &[$(($word, $name::$variant)),*];
        }

        impl $crate::read::Value for $name {
            fn read(
                node: &$crate::tree::Node,
                reading: &mut $crate::source::Reading<'_>,
            ) -> Option<$name> {
                $crate::read::word(node, $what, $name::WORDS, reading)
            }
            fn write(&self) -> $crate::tree::Node {
                let word = $name::WORDS.iter().find(|(_, value)| value == self);
                $crate::tree::Node::text(word.map_or("", |(word, _)| word))
            }
        }
    };
}
pub(crate) use words;

/// Reads one of a set of words.
pub(crate) fn word<T: Copy>(
    node: &Node,
    what: &str,
    words: &[(&str, T)],
    reading: &mut Reading<'_>,
) -> Option<T> {
    let names = words.iter().map(|(word, _)| *word);
    let Some(text) = node.as_str() else {
        let wanted = format!("a word for {what}");
        let help = did_you_mean("", names);
        reading.problem(
            node.span,
            format!("expected {wanted}, found {}", node.kind.describe()),
            help,
        );
        return None;
    };
    let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
    if found.is_none() {
        let message = format!("there is no {what} \"{text}\"");
        reading.problem(node.span, message, did_you_mean(text, names));
    }
    found
}

/// Gives a wrapper the schema of what it wraps.
macro_rules! same_schema {
    ($($wrapper:ident as $inner:ty),*) => {$(
        impl<T: JsonSchema> JsonSchema for $wrapper<T> {
            fn inline_schema() -> bool {
                <$inner>::inline_schema()
            }
            fn schema_name() -> Cow<'static, str> {
                <$inner>::schema_name()
            }
            fn schema_id() -> Cow<'static, str> {
                <$inner>::schema_id()
            }
            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                <$inner>::json_schema(generator)
            }
        }
    )*};
}
same_schema!(
    At as T,
    Optional as T,
    Required as T,
    List as Vec<T>,
    Named as std::collections::BTreeMap<String, T>
);
