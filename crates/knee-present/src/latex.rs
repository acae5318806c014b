//! Tables as LaTeX, for papers.

use crate::Table;
use crate::words::NONE;

/// Renders a table without rules at the sides, numbers flush right.
pub(crate) fn tabular(table: &Table) -> String {
    let sides = table.heads.iter().map(|head| if head.numeric { 'r' } else { 'l' });
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        format!("{} \\\\\n", cells.map(escaped).collect::<Vec<_>>().join(" & "))
    };
    let mut text = String::new();
    if !table.title.is_empty() {
        text += &format!("% {}\n", table.title.replace('\n', " "));
    }
    text += &format!("\\begin{{tabular}}{{{}}}\n\\hline\n", sides.collect::<String>());
    text += &line(&mut table.heads.iter().map(|head| head.text.as_str()));
    text += "\\hline\n";
    for row in &table.rows {
        text += &line(&mut row.cells.iter().map(|cell| cell.shown.as_str()));
    }
    text + "\\hline\n\\end{tabular}\n"
}

/// Escapes what has a meaning in LaTeX, and what its fonts lack.
pub(crate) fn escaped(text: &str) -> String {
    if text == NONE {
        return "--".to_string();
    }
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => shown.extend(['\\', c]),
            '~' => shown.push_str("\\textasciitilde{}"),
            '^' => shown.push_str("\\textasciicircum{}"),
            '\\' => shown.push_str("\\textbackslash{}"),
            '<' => shown.push_str("\\textless{}"),
            '>' => shown.push_str("\\textgreater{}"),
            '|' => shown.push_str("\\textbar{}"),
            '\u{202f}' => shown.push_str("\\,"),
            'µ' => shown.push_str("\\ensuremath{\\mu}"),
            '×' => shown.push_str("\\ensuremath{\\times}"),
            '–' => shown.push_str("--"),
            '…' => shown.push_str("\\ldots{}"),
            '’' => shown.push('\''),
            '\n' => shown.push(' '),
            c => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use crate::{Cell, Document, Table, number, text};
    use knee_record::Unit;

    #[test]
    fn a_table_is_a_tabular_and_its_text_is_escaped() {
        let heads = [text("flow_name"), number("RTT p95"), number("packets")];
        let mut table = Table::new(heads).titled("Flows");
        table.row([Cell::from("a & b"), Cell::us(Some(250.0)), Cell::count(31_878_u64)]);
        table.row([Cell::from("5 %"), Cell::figure(Unit::Seconds, None), Cell::count(1_u64)]);
        let document = Document::default().words("not this\n").table(table).said("100 % of it.");
        assert_eq!(
            document.latex(),
            "% Flows\n\\begin{tabular}{lrr}\n\\hline\nflow\\_name & RTT p95 & packets \\\\\n\\hline\n\
             a \\& b & 250 \\ensuremath{\\mu}s & 31\\,878 \\\\\n5 \\% & -- & 1 \\\\\n\\hline\n\
             \\end{tabular}\n\n100 \\% of it.\n"
        );
    }
}
