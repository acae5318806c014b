//! Golden files in `tests/net`, which `KNEE_WRITE_NET=1` rewrites.

use knee_lab::record::sha256_hex;
use std::path::Path;

/// Compares a text with its golden file, and keeps it in `net` below the folder for temporary files
/// of the tests, where `diff` shows what a hash hides.
pub fn compare(name: &str, text: &str) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/net").join(name);
    if std::env::var_os("KNEE_WRITE_NET").is_some() {
        std::fs::write(&golden, text).expect("it can be written");
        return;
    }
    let known = std::fs::read_to_string(&golden).unwrap_or_default();
    let pairs = text.lines().zip(known.lines()).enumerate();
    let line = pairs.filter(|(_, (now, known))| now != known).map(|(at, _)| at).next();
    let Some(at) = line.or_else(|| (text != known).then_some(usize::MAX)) else { return };
    let now = text.lines().nth(at).unwrap_or("(end)");
    let known = known.lines().nth(at).unwrap_or("(end)");
    panic!(
        "{} differs at line {}:\n- {known}\n+ {now}\nIf that is meant, run the test again with \
         KNEE_WRITE_NET=1 and read the difference.",
        golden.display(),
        at.saturating_add(1),
    );
}

/// The length and the hash of a text.
pub fn hash(text: &str) -> String {
    format!("{} bytes, sha256 {}\n", text.len(), sha256_hex(text.as_bytes()))
}

/// The tables of a page, and a hash of the page without the white space between elements.
pub fn of_page(page: &str) -> String {
    let mut plain = String::with_capacity(page.len());
    for part in page.split_inclusive('>') {
        let text = part.trim_start();
        plain += if text.starts_with('<') { text } else { part };
    }
    let tables = plain.split("<table").skip(1).filter_map(|rest| rest.split("</table>").next());
    let rows = tables.flat_map(|table| table.split("<tr").skip(1)).map(|row| {
        let cells = row.split("<t").skip(1).map(|cell| {
            let (tag, inner) = cell.split_once('>').unwrap_or((cell, ""));
            let mark = if tag.contains("\"figure\"") { "=" } else { "" };
            let parts = inner.split('<').map(|part| part.split_once('>').unwrap_or(("", part)).1);
            let text = inner.split('<').next().unwrap_or("").to_string();
            let text = parts.skip(1).fold(text, |all, part| all + part);
            format!("{mark}{}", text.split_whitespace().collect::<Vec<_>>().join(" "))
        });
        cells.collect::<Vec<_>>().join(" | ") + "\n"
    });
    rows.collect::<String>() + &hash(&plain)
}
