//! What results look like: tables, documents of sentences and tables, and numbers in words; as text,
//! CSV, Markdown, LaTeX and JSON. Pages take the same tables.
//!
//! A [`Table`] has typed heads and cells. A [`Cell`] holds the text shown and the numbers behind it,
//! so nothing parses a text to find its number. [`words`] is where numbers become words, in the
//! units of `knee-record`.
//!
//! This crate never prints, never asks for the width of a terminal, and measures nothing.

mod cell;
mod document;
mod export;
mod latex;
mod table;
pub mod words;

pub use cell::{Cell, Number};
pub use document::{Document, Layout};
pub use table::{Column, Head, INTERVAL, Row, Table, Tone, number, text};
