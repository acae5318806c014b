//! Cells of a line, whatever separates them.

/// What separates the cells of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Separator {
    /// One character; cells may be in double quotes.
    Character(char),
    /// Any number of spaces.
    Spaces,
}

impl Separator {
    /// Returns the separator of a line: of tabs, semicolons and commas the most frequent outside
    /// quotes, or spaces if there is none.
    pub fn of(line: &str) -> Separator {
        let mut counts = [('\t', 0_usize), (';', 0), (',', 0)];
        let mut quoted = false;
        for character in line.chars() {
            quoted ^= character == '"';
            if let Some((_, count)) = counts.iter_mut().find(|(known, _)| *known == character) {
                *count += usize::from(!quoted);
            }
        }
        // Of equal ones the first: numbers with a decimal comma are often separated by semicolons.
        let most = counts.iter().rev().max_by_key(|(_, count)| *count);
        match most {
            Some((character, 1..)) => Separator::Character(*character),
            _ => Separator::Spaces,
        }
    }

    /// Returns what it is called.
    pub fn name(self) -> &'static str {
        match self {
            Separator::Character('\t') => "tab-separated values",
            Separator::Character(';') => "semicolon-separated values",
            Separator::Character(_) => "comma-separated values",
            Separator::Spaces => "space-separated values",
        }
    }

    /// Iterates over the cells of a line, trimmed and without their quotes.
    pub fn cells(self, line: &str) -> Cells<'_> {
        Cells { separator: self, rest: Some(line) }
    }
}

/// Iterator over the cells of a line.
pub(crate) struct Cells<'l> {
    separator: Separator,
    rest: Option<&'l str>,
}

impl<'l> Iterator for Cells<'l> {
    type Item = &'l str;

    fn next(&mut self) -> Option<&'l str> {
        let rest = self.rest?;
        let Separator::Character(separator) = self.separator else {
            let rest = rest.trim_start();
            let end = rest.find(char::is_whitespace).unwrap_or(rest.len());
            self.rest = Some(&rest[end..]);
            return (end > 0).then(|| &rest[..end]);
        };
        let (cell, after) = match rest.trim_start_matches(' ').strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => rest.split_at(rest.find(separator).unwrap_or(rest.len())),
        };
        self.rest = after.split_once(separator).map(|(_, rest)| rest);
        Some(cell.trim())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cells(line: &str) -> Vec<&str> {
        Separator::of(line).cells(line).collect()
    }

    #[test]
    fn the_most_frequent_separator_separates() {
        assert_eq!(cells("a,b ,, c"), ["a", "b", "", "c"]);
        assert_eq!(cells("a\tb c\t"), ["a", "b c", ""]);
        assert_eq!(cells("1,5;2,5;3"), ["1,5", "2,5", "3"]);
        assert_eq!(cells("  a   b  "), ["a", "b"]);
        assert_eq!(cells("a"), ["a"]);
        assert_eq!(cells(""), [""; 0]);
    }

    #[test]
    fn separators_within_quotes_belong_to_the_cell() {
        assert_eq!(cells("\"a, b\",\"c\",d"), ["a, b", "c", "d"]);
        assert_eq!(cells("\"\",1"), ["", "1"]);
    }
}
