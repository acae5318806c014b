//! Words that are not to appear in anything that is printed: in the golden outputs, in the help of the
//! commands, in the templates of pages, in the scenarios of `knee evaluate`, and in the documentation.

use std::fs;
use std::path::{Path, PathBuf};

/// What is not to appear, and what to write instead. A letter or digit beside it makes it another
/// word.
const AVOIDED: [(&str, &str); 25] = [
    ("sent again", "retransmitted"),
    ("send again", "retransmit"),
    ("sends again", "retransmits"),
    ("would have found it no faster", "would have found no difference"),
    ("not all of which are ahead", "cannot be told from one of them"),
    ("than each other one at any", "no value is best for any"),
    ("takes of", "share beside"),
    ("0 of them without payload", "all with payload"),
    ("has not one controller", "has several controllers"),
    ("mend", "fix"),
    ("1 rules", "1 rule"),
    ("sent_again", "retransmitted"),
    ("Too narrow for", "the table continues below"),
    ("thousand packets", "million packets"),
    ("To repeat it", "Again"),
    ("expected at most as much", "expected at most 1 times"),
    ("modprobe tcp_bbr3", "there is no such module"),
    ("more completion time", "takes … longer"),
    ("less completion time", "takes … less time"),
    ("all transfers under the first", "all transfers under one against all under the other"),
    ("is the best that chance allows", "is what chance alone leaves"),
    ("to order experiments", "tells you which experiment to run first"),
    ("expected u8", "the range, and what is counted"),
    ("expected u16", "the range, and what is counted"),
    ("expected u32", "the range, and what is counted"),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Files of a folder and of those in it, with these endings.
fn files(folder: &Path, endings: &[&str], found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let ending = path.extension().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            files(&path, endings, found);
        } else if endings.contains(&ending.as_str()) {
            found.push(path);
        }
    }
}

/// Whether a line has the words, not as a part of others.
fn has(line: &str, words: &str) -> bool {
    let is_part = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '.');
    line.match_indices(words).any(|(at, _)| {
        let (before, after) = (&line[..at], &line[at + words.len()..]);
        !is_part(before.chars().next_back()) && !after.starts_with(char::is_alphanumeric)
    })
}

#[test]
fn avoided_words_are_not_printed() {
    let mut found = vec![root().join("README.md")];
    files(&root().join("docs"), &["md"], &mut found);
    files(&root().join("crates/knee/tests/net"), &["txt"], &mut found);
    files(&root().join("crates/knee/tests/cmd"), &["trycmd"], &mut found);
    files(&root().join("evaluation"), &["toml"], &mut found);
    let others = found.len();
    for entry in fs::read_dir(root().join("crates")).unwrap() {
        let assets = entry.unwrap().path().join("assets");
        if assets.is_dir() {
            files(&assets, &["html", "js"], &mut found);
        }
    }
    assert!(others > 50 && found.len() > others + 10, "{found:?}");
    let mut bad = Vec::new();
    for path in found {
        for (number, line) in fs::read_to_string(&path).unwrap().lines().enumerate() {
            for (words, instead) in AVOIDED.iter().filter(|(words, _)| has(line, words)) {
                let place = path.strip_prefix(root()).unwrap_or(&path).display();
                bad.push(format!("{place}:{}: \"{words}\": {instead}", number + 1));
            }
        }
    }
    assert!(bad.is_empty(), "{} lines:\n{}", bad.len(), bad.join("\n"));
}

#[test]
fn words_are_found_whole() {
    assert!(has("a, sent again", "sent again") && has("1 rules", "1 rules"));
    assert!(
        !has("recommend", "mend") && !has("11 rules", "1 rules") && !has("2.1 rules", "1 rules")
    );
}
