//! The page as a browser parses it.

use html5ever::tendril::TendrilSink;
use markup5ever_rcdom::{Handle, NodeData, RcDom};
use std::collections::BTreeMap;

/// An element with its attributes.
pub struct Element {
    pub name: String,
    pub attributes: BTreeMap<String, String>,
    /// All text inside, including scripts.
    pub text: String,
}

impl Element {
    pub fn attribute(&self, name: &str) -> &str {
        self.attributes.get(name).map_or("", String::as_str)
    }
}

/// Parses a document by the rules of HTML; any parse error fails the test.
pub fn parse(html: &str) -> Vec<Element> {
    let dom: RcDom = html5ever::parse_document(RcDom::default(), Default::default()).one(html);
    let errors = dom.errors.borrow();
    assert!(errors.is_empty(), "{:?}", &errors[..errors.len().min(5)]);
    let mut elements = Vec::new();
    visit(&dom.document, &mut elements);
    elements
}

fn visit(node: &Handle, elements: &mut Vec<Element>) {
    if let NodeData::Element { name, attrs, .. } = &node.data {
        let attrs = attrs.borrow();
        let pair = |attribute: &html5ever::Attribute| {
            (attribute.name.local.to_string(), attribute.value.to_string())
        };
        let mut text = String::new();
        collect(node, &mut text);
        elements.push(Element {
            name: name.local.to_string(),
            attributes: attrs.iter().map(pair).collect(),
            text,
        });
    }
    node.children.borrow().iter().for_each(|child| visit(child, elements));
}

fn collect(node: &Handle, text: &mut String) {
    if let NodeData::Text { contents } = &node.data {
        text.push_str(&contents.borrow());
    }
    node.children.borrow().iter().for_each(|child| collect(child, text));
}
