//! Parts of a document in JSON of which the type is not certain: exporters disagree about it, and a
//! part that is of no use must not make the rest unreadable.

use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;
use std::marker::PhantomData;

/// Bytes of a text that are kept.
const TEXT_MAX: usize = 2048;

/// A single value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Loose {
    /// A text, of which at most [`TEXT_MAX`] bytes are kept.
    Text(String),
    /// A number.
    Number(f64),
    /// Yes or no.
    Bool(bool),
    /// Anything else, or nothing.
    #[default]
    Other,
}

impl Loose {
    /// Returns the text; `None` if it is empty or something else.
    pub fn text(&self) -> Option<&str> {
        match self {
            Loose::Text(text) => Some(text.as_str()).filter(|text| !text.is_empty()),
            _ => None,
        }
    }

    /// Returns the number, also of a text with one; `None` if it is something else.
    pub fn number(&self) -> Option<f64> {
        match self {
            Loose::Number(number) => Some(*number).filter(|number| number.is_finite()),
            Loose::Text(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
            _ => None,
        }
    }

    /// Returns the number unless it is negative, which stands for "unknown".
    pub fn amount(&self) -> Option<f64> {
        self.number().filter(|number| *number >= 0.0)
    }

    /// Returns whether it says yes, in whatever way.
    pub fn is_set(&self) -> bool {
        match self {
            Loose::Text(text) => !text.is_empty(),
            Loose::Number(number) => *number != 0.0,
            Loose::Bool(set) => *set,
            Loose::Other => false,
        }
    }
}

/// An object of the document, or a text in its place, or something else, which is passed over.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) enum Node<T> {
    /// An object.
    Map(T),
    /// A text.
    Text(String),
    /// Anything else, or nothing.
    #[default]
    Other,
}

impl<T> Node<T> {
    /// Returns the object.
    pub fn map(&self) -> Option<&T> {
        match self {
            Node::Map(map) => Some(map),
            _ => None,
        }
    }

    /// Returns the object.
    pub fn into_map(self) -> Option<T> {
        match self {
            Node::Map(map) => Some(map),
            _ => None,
        }
    }
}

/// A list of at most `MAX` objects; what is no list counts as an empty one.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct List<T, const MAX: usize>(pub Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> List<T, MAX> {
        List(Vec::new())
    }
}

fn cut(text: &str) -> String {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    text[..end].to_owned()
}

/// Reads the rest of a list, of which nothing is kept.
fn drain<'de, A: SeqAccess<'de>>(mut list: A) -> Result<(), A::Error> {
    while list.next_element::<IgnoredAny>()?.is_some() {}
    Ok(())
}

/// Methods of a visitor that take values of other kinds for nothing.
macro_rules! others {
    ($value:ty) => {
        fn visit_bool<E>(self, _: bool) -> Result<$value, E> {
            Ok(Default::default())
        }
        fn visit_i64<E>(self, _: i64) -> Result<$value, E> {
            Ok(Default::default())
        }
        fn visit_u64<E>(self, _: u64) -> Result<$value, E> {
            Ok(Default::default())
        }
        fn visit_f64<E>(self, _: f64) -> Result<$value, E> {
            Ok(Default::default())
        }
        fn visit_unit<E>(self) -> Result<$value, E> {
            Ok(Default::default())
        }
    };
}

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Loose, D::Error> {
        struct Any;
        impl<'de> Visitor<'de> for Any {
            type Value = Loose;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a value")
            }
            fn visit_bool<E>(self, value: bool) -> Result<Loose, E> {
                Ok(Loose::Bool(value))
            }
            fn visit_i64<E>(self, value: i64) -> Result<Loose, E> {
                Ok(Loose::Number(value as f64))
            }
            fn visit_u64<E>(self, value: u64) -> Result<Loose, E> {
                Ok(Loose::Number(value as f64))
            }
            fn visit_f64<E>(self, value: f64) -> Result<Loose, E> {
                Ok(Loose::Number(value))
            }
            fn visit_str<E>(self, value: &str) -> Result<Loose, E> {
                Ok(Loose::Text(cut(value)))
            }
            fn visit_unit<E>(self) -> Result<Loose, E> {
                Ok(Loose::Other)
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Loose, A::Error> {
                drain(list).map(|()| Loose::Other)
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Loose, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(Loose::Other)
            }
        }
        from.deserialize_any(Any)
    }
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Node<T> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Node<T>, D::Error> {
        struct Any<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Any<T> {
            type Value = Node<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Node<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Node::Map)
            }
            fn visit_str<E>(self, value: &str) -> Result<Node<T>, E> {
                Ok(Node::Text(cut(value)))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Node<T>, A::Error> {
                drain(list).map(|()| Node::Other)
            }
            others!(Node<T>);
        }
        from.deserialize_any(Any(PhantomData))
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<List<T, MAX>, D::Error> {
        struct Any<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Any<T, MAX> {
            type Value = List<T, MAX>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<List<T, MAX>, A::Error> {
                let mut found = Vec::new();
                while let Some(one) = list.next_element::<Node<T>>()? {
                    if found.len() == MAX {
                        return Err(A::Error::custom(format!("a list of more than {MAX} objects")));
                    }
                    found.extend(one.into_map());
                }
                Ok(List(found))
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<List<T, MAX>, A::Error> {
                while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
                Ok(List::default())
            }
            fn visit_str<E>(self, _: &str) -> Result<List<T, MAX>, E> {
                Ok(List::default())
            }
            others!(List<T, MAX>);
        }
        from.deserialize_any(Any(PhantomData))
    }
}
