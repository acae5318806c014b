//! Links in the pages work: the files exist, and so do the headings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Finds the pages of the repository, except in folders that are not part of the project.
fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("the folder is readable") {
        let path = entry.expect("the folder is readable").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !name.starts_with('.') && !["target", "node_modules", "vendor"].contains(&&*name) {
                pages(&path, found);
            }
        } else if name.ends_with(".md") {
            found.push(path);
        }
    }
}

/// Iterates over the lines outside of fenced blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut fenced = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        fenced ^= fence;
        !fenced && !fence
    })
}

/// Returns the anchors of a page's headings, as GitHub and mdBook form them: lower case, spaces as
/// hyphens, no punctuation except hyphens and underscores.
fn anchors(text: &str) -> BTreeSet<String> {
    let headings = prose(text).filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line.trim_start_matches('#').trim().to_lowercase();
            let kept = kept.chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
            kept.map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// Returns the targets of a page's links, except to other sites.
fn links(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let text: Vec<&str> = prose(text).collect();
    for part in text.join("\n").split("](").skip(1) {
        let target = part.split([')', ' ', '\n']).next().unwrap_or_default();
        if !target.contains("://") && !target.starts_with("mailto:") {
            found.push(target.to_string());
        }
    }
    found
}

#[test]
fn every_relative_link_leads_somewhere() {
    let mut found = Vec::new();
    pages(&root(), &mut found);
    let mut dead = Vec::new();
    let mut checked = 0;
    for page in &found {
        let text = fs::read_to_string(page).expect("a page is a text");
        for link in links(&text) {
            let (file, heading) = link.split_once('#').unwrap_or((&link, ""));
            let folder = page.parent().unwrap_or(page);
            let target = if file.is_empty() { page.clone() } else { folder.join(file) };
            let there = target.exists()
                && (heading.is_empty()
                    || fs::read_to_string(&target).is_ok_and(|t| anchors(&t).contains(heading)));
            if !there {
                dead.push(format!("{}: {link}", page.display()));
            }
            checked += 1;
        }
    }
    assert!(dead.is_empty(), "links that lead nowhere:\n{}", dead.join("\n"));
    assert!(checked > 20, "{checked}");
}

#[test]
fn headings_and_links_are_found() {
    let page = "# A `b`: c\n```sh\n# no heading, [no](link)\n```\n[x](one.md#two) [y](#z)\n";
    assert_eq!(anchors(page).into_iter().collect::<Vec<_>>(), ["a-b-c"]);
    assert_eq!(links(page), ["one.md#two", "#z"]);
    assert!(links("[out](https://example.org/a)").is_empty());
}
