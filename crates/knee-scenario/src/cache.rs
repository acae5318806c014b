//! Files that were read, and what they contain: each read and parsed once.

use crate::tree::{self, Node, SyntaxError};
use knee_foreign::Manifest;
use knee_link::Trace;
use knee_workload::{AccessLog, PageFile};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// What was read for a scenario: its text as a document, and the files that it names as they are and
/// as parsed. Scenarios that are read through the same value, with other seeds or other overrides,
/// read and parse nothing twice ([`parse_cached`]). A file that changes meanwhile stays as it was.
///
/// One value serves one [`Loader`]: a file is known by its name.
///
/// [`parse_cached`]: crate::parse_cached
/// [`Loader`]: crate::Loader
#[derive(Debug, Default)]
pub struct FileCache {
    /// Documents, each with the place of its first byte.
    documents: Mutex<Vec<(usize, String, Node)>>,
    pub(crate) bytes: Once<Arc<[u8]>>,
    pub(crate) classes: Once<(Arc<[u8]>, Option<PathBuf>)>,
    pub(crate) traces: Once<Trace>,
    pub(crate) losses: Once<Arc<[bool]>>,
    pub(crate) pages: Once<PageFile>,
    pub(crate) manifests: Once<Manifest>,
    pub(crate) logs: Once<AccessLog>,
}

impl FileCache {
    /// Returns a text as a document; `base` is the place of its first byte.
    pub(crate) fn document(&self, base: usize, text: &str) -> Result<Node, Vec<SyntaxError>> {
        let mut documents = self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        let known = documents.iter().find(|(place, known, _)| *place == base && known == text);
        if let Some((_, _, document)) = known {
            return Ok(document.clone());
        }
        let document = tree::parse(text, base)?;
        documents.push((base, text.to_string(), document.clone()));
        Ok(document)
    }
}

/// Values by name, each made once, even if several threads ask for it at the same time. Why one
/// could not be made is kept as well.
#[derive(Debug)]
pub(crate) struct Once<T>(Mutex<BTreeMap<String, Slot<T>>>);

/// A value, or why it could not be made; empty while it is made for the first time.
type Slot<T> = Arc<OnceLock<Result<T, String>>>;

impl<T> Default for Once<T> {
    fn default() -> Once<T> {
        Once(Mutex::default())
    }
}

impl<T: Clone> Once<T> {
    /// Returns the value of this name, made now if it is the first time.
    pub fn get(&self, name: &str, make: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let place = known.entry(name.to_string()).or_default().clone();
        // Others are not kept waiting for this one.
        drop(known);
        place.get_or_init(make).clone()
    }
}
