//! Files that other programs wrote: what they are, by their first bytes, and their lines.
//!
//! Every reader of such files follows the same rules. A byte order mark is dropped; a line ends in
//! LF, CR LF or CR; a compressed file is named as what it is.

use std::io::{self, BufRead, BufReader, ErrorKind, Read};

/// Mark with which some programs begin UTF-8 text.
const BYTE_ORDER_MARK: char = '\u{feff}';
/// Longest line that is read; a longer one is a file of another kind.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Number of lines that are read.
const LINES_MAX: usize = 10_000_000;
/// Longest of the first bytes that identify a format.
const START_BYTES: usize = 10;

/// A format that is not plain UTF-8 text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFormat {
    /// Its name with the article.
    pub name: &'static str,
    /// What to do with the file.
    pub advice: &'static str,
    /// First bytes of such a file.
    start: &'static [u8],
}

const fn format(name: &'static str, advice: &'static str, start: &'static [u8]) -> ForeignFormat {
    ForeignFormat { name, advice, start }
}

/// Gzip (RFC 1952, 2.3.1), which some readers decompress.
pub const GZIP: ForeignFormat = format("a gzip file", "decompress it with gzip -d", &[0x1f, 0x8b]);

/// Formats by their first bytes.
const FORMATS: [ForeignFormat; 13] = [
    GZIP,
    // RFC 8878, 3.1.1.
    format("a Zstandard file", "decompress it with zstd -d", &[0x28, 0xb5, 0x2f, 0xfd]),
    format("an xz file", "decompress it with xz -d", &[0xfd, b'7', b'z', b'X', b'Z', 0]),
    format("a bzip2 file", "decompress it with bzip2 -d", b"BZh"),
    format("an LZ4 file", "decompress it with lz4 -d", &[0x04, 0x22, 0x4d, 0x18]),
    format("a zip file", "unpack it with unzip", &[b'P', b'K', 3, 4]),
    format("a 7z file", "unpack it with 7z x", &[b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c]),
    format("a Parquet file", "write it as comma-separated values", b"PAR1"),
    format("a PDF file", "write it as plain text", b"%PDF-"),
    format("a program", "write the name of a text file", &[0x7f, b'E', b'L', b'F']),
    format("text in UTF-32", "save it as UTF-8", &[0xff, 0xfe, 0, 0]),
    format("text in UTF-16", "save it as UTF-8", &[0xff, 0xfe]),
    format("text in UTF-16", "save it as UTF-8", &[0xfe, 0xff]),
];

/// Returns the format of a file that is not plain text, by its first bytes.
pub fn foreign_format(bytes: &[u8]) -> Option<ForeignFormat> {
    let digit = |at: usize| bytes.get(at).is_some_and(u8::is_ascii_digit);
    let is = |format: &&ForeignFormat| {
        // The letters of bzip2 could begin a text; a block size and a mark follow.
        let is_text = format.start == b"BZh" && !(digit(3) && bytes.get(4..7) == Some(b"1AY"));
        bytes.starts_with(format.start) && !is_text
    };
    FORMATS.iter().find(is).copied()
}

/// Iterates over the lines of a text without their ends and without a byte order mark.
pub fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let Some(at) = end_of_line(rest.as_bytes()) else {
            return Some(std::mem::take(&mut rest));
        };
        let line = &rest[..at];
        let after = &rest[at..];
        rest = after.strip_prefix("\r\n").unwrap_or(&after[1..]);
        Some(line)
    })
}

/// Returns the place of the first LF or CR.
fn end_of_line(bytes: &[u8]) -> Option<usize> {
    bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'))
}

/// Why the next line cannot be read.
#[derive(Debug)]
pub enum LineError {
    /// The file is not plain text.
    Foreign(ForeignFormat),
    /// The line is longer than this many bytes.
    TooLong(usize),
    /// There are more than this many lines.
    TooMany(usize),
    /// The reader failed.
    Io(io::Error),
}

impl LineError {
    /// Says what is wrong.
    pub fn problem(&self) -> String {
        match self {
            LineError::Foreign(format) => format!("it is {}", format.name),
            LineError::TooLong(bytes) => format!("the line is longer than {} MiB", bytes >> 20),
            LineError::TooMany(lines) => format!("there are more than {lines} lines"),
            LineError::Io(error) => error.to_string(),
        }
    }

    /// Says what to do about it.
    pub fn advice(&self) -> &'static str {
        match self {
            LineError::Foreign(format) => format.advice,
            LineError::TooLong(_) => "write the name of a file of short lines",
            LineError::TooMany(_) => "use a part of it",
            LineError::Io(error) if error.kind() == ErrorKind::FileTooLarge => "use a part of it",
            LineError::Io(_) => "write it again, or compress it again",
        }
    }
}

/// Largest file after decompression: 1 GiB.
const UNPACKED_MAX: u64 = 1 << 30;

/// What a gzip file contains, which must not be larger than 1 GiB.
#[derive(Debug)]
pub struct Unpacked<R> {
    reader: R,
    left: u64,
}

impl<R: Read> Unpacked<R> {
    /// Limits what a reader decompresses.
    pub fn new(reader: R) -> Unpacked<R> {
        Unpacked { reader, left: UNPACKED_MAX }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer).map_err(|error| {
            io::Error::new(error.kind(), format!("it is no whole gzip file ({error})"))
        })?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            io::Error::new(ErrorKind::FileTooLarge, "it is larger than 1 GiB unpacked")
        })?;
        Ok(read)
    }
}

/// Lines of a file that is not held in memory. It keeps one line, of at most 4 MiB, and reads at
/// most 10,000,000, unless [`Lines::of_any_number`] lifts that.
#[derive(Debug)]
pub struct Lines<R: Read> {
    reader: BufReader<io::Chain<io::Cursor<Vec<u8>>, R>>,
    line: Vec<u8>,
    number: usize,
    number_max: usize,
    after_cr: bool,
}

impl<R: Read> Lines<R> {
    /// Looks at the first bytes of a file.
    ///
    /// # Errors
    /// [`LineError::Foreign`] for a file that is not plain text, [`LineError::Io`].
    pub fn open(mut reader: R) -> Result<Lines<R>, LineError> {
        let mut start = Vec::new();
        (&mut reader).take(START_BYTES as u64).read_to_end(&mut start).map_err(LineError::Io)?;
        if let Some(format) = foreign_format(&start) {
            return Err(LineError::Foreign(format));
        }
        let mark = BYTE_ORDER_MARK.to_string();
        if start.starts_with(mark.as_bytes()) {
            start.drain(..mark.len());
        }
        let reader = BufReader::with_capacity(1 << 16, io::Cursor::new(start).chain(reader));
        let (line, number_max) = (Vec::new(), LINES_MAX);
        Ok(Lines { reader, line, number: 0, number_max, after_cr: false })
    }

    /// Reads any number of lines: whoever calls keeps nothing of them.
    pub fn of_any_number(self) -> Lines<R> {
        Lines { number_max: usize::MAX, ..self }
    }

    /// Number of the last line read, from 1.
    pub fn number(&self) -> usize {
        self.number
    }

    /// Reads the next line as text, in place of `line`; returns whether there is one. What is not
    /// UTF-8 becomes U+FFFD.
    ///
    /// # Errors
    /// Those of [`Lines::next_line`].
    pub fn next_text(&mut self, line: &mut String) -> Result<bool, LineError> {
        line.clear();
        let Some(bytes) = self.next_line()? else { return Ok(false) };
        line.push_str(&String::from_utf8_lossy(bytes));
        Ok(true)
    }

    /// Returns the next line, without its end; `None` after the last.
    ///
    /// # Errors
    /// A [`LineError`].
    pub fn next_line(&mut self) -> Result<Option<&[u8]>, LineError> {
        self.line.clear();
        loop {
            let chunk = self.reader.fill_buf().map_err(LineError::Io)?;
            let skip = usize::from(self.after_cr && chunk.first() == Some(&b'\n'));
            if !chunk.is_empty() {
                self.after_cr = false;
            }
            let (chunk, is_last) = (&chunk[skip..], chunk.is_empty());
            let end = end_of_line(chunk);
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.line.len() + part.len() > LINE_BYTES_MAX {
                self.number += 1;
                return Err(LineError::TooLong(LINE_BYTES_MAX));
            }
            self.line.extend_from_slice(part);
            let used = skip + part.len() + usize::from(end.is_some());
            self.after_cr = end.is_some_and(|end| chunk[end] == b'\r');
            self.reader.consume(used);
            match (end.is_some(), is_last) {
                (false, true) if self.line.is_empty() => return Ok(None),
                (false, false) => {}
                _ if self.number == self.number_max => {
                    return Err(LineError::TooMany(self.number_max));
                }
                _ => {
                    self.number += 1;
                    return Ok(Some(&self.line));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut lines = Lines::open(bytes).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(line.to_vec());
        }
        assert_eq!(lines.number(), all.len());
        all
    }

    #[test]
    fn a_line_ends_in_lf_crlf_or_cr_and_a_byte_order_mark_is_dropped() {
        for (text, expected) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\nb\rc\nd", &["a", "b", "c", "d"]),
            ("\u{feff}a\n\r\n\rb\r", &["a", "", "", "b"]),
            ("\n", &[""]),
        ] {
            assert_eq!(lines(text).collect::<Vec<_>>(), expected, "{text:?}");
            let bytes: Vec<&[u8]> = expected.iter().map(|line| line.as_bytes()).collect();
            assert_eq!(read(text.as_bytes()), bytes, "{text:?}");
        }
    }

    /// A reader that returns one byte at a time splits CR and LF.
    #[test]
    fn lines_do_not_depend_on_how_they_are_buffered() {
        struct Single<'b>(&'b [u8]);
        impl Read for Single<'_> {
            fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
                let one = self.0.len().min(1).min(buffer.len());
                self.0.read(&mut buffer[..one])
            }
        }
        let mut lines = Lines::open(Single(b"0123456789abc\r\n\r\nd\r")).unwrap();
        let mut all = Vec::new();
        while let Some(line) = lines.next_line().unwrap() {
            all.push(String::from_utf8_lossy(line).into_owned());
        }
        assert_eq!(all, ["0123456789abc", "", "d"]);
    }

    #[test]
    fn compressed_files_and_other_encodings_are_named() {
        let name = |bytes: &[u8]| foreign_format(bytes).map(|format| format.name);
        assert_eq!(name(&[0x28, 0xb5, 0x2f, 0xfd, 4]), Some("a Zstandard file"));
        assert_eq!(name(b"\xfd7zXZ\0\0"), Some("an xz file"));
        assert_eq!(name(&[0x1f, 0x8b, 8]), Some("a gzip file"));
        assert_eq!(name(b"BZh91AY&SY"), Some("a bzip2 file"));
        assert_eq!(name(b"BZh9 is no magic"), None);
        assert_eq!(name(b"\xff\xfed\0"), Some("text in UTF-16"));
        assert_eq!(name(b"\xff\xfe\0\0d"), Some("text in UTF-32"));
        assert_eq!(name("\u{feff}1".as_bytes()), None);
        assert!(matches!(Lines::open(&b"\x1f\x8b"[..]), Err(LineError::Foreign(GZIP))));
    }

    /// A file of one endless line costs no more than the longest line.
    #[test]
    fn a_line_without_an_end_is_refused_at_the_limit() {
        let mut lines = Lines::open(io::repeat(b'x')).unwrap();
        assert!(matches!(lines.next_line(), Err(LineError::TooLong(LINE_BYTES_MAX))));
        assert!(lines.line.len() <= LINE_BYTES_MAX);
    }
}
