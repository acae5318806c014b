//! What a program writes, kept as far as there is room for it.

use knee_units::printable;
use std::fs::File;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;

/// Maximum size of a file with the output of a program, bytes. What is beyond is read and discarded,
/// since a program that nobody reads would stop.
pub const OUTPUT_BYTES_MAX: u64 = 1 << 20;
/// Bytes kept of the end, for messages.
const TAIL_BYTES: usize = 4096;
/// Maximum length of a line in a message, characters.
const LINE_CHARACTERS_MAX: usize = 200;
/// Size of the buffer for reading, bytes.
const READ_BYTES: usize = 1 << 16;

/// The output of a program, which a thread reads until its end.
#[derive(Clone, Debug)]
pub struct Output(Arc<Mutex<Kept>>);

#[derive(Debug, Default)]
struct Kept {
    /// File that has the beginning.
    file: Option<File>,
    /// The last bytes.
    tail: Vec<u8>,
    bytes: u64,
    /// Bytes that did not fit into the file, or that the disk had no room for.
    discarded_bytes: u64,
    /// Whether the file could not be written.
    is_broken: bool,
    /// Text that is looked for; empty once it is found, or if there is none.
    wanted: Vec<u8>,
}

impl Output {
    /// Starts to read. The thread ends when all programs that could write have ended.
    ///
    /// # Errors
    ///
    /// There is no room for another thread.
    pub fn read(
        from: impl Read + Send + 'static,
        file: Option<File>,
        wanted: Option<&str>,
    ) -> io::Result<Output> {
        let wanted = wanted.unwrap_or_default().as_bytes().to_vec();
        let output = Output(Arc::new(Mutex::new(Kept { file, wanted, ..Kept::default() })));
        let shared = output.clone();
        thread::Builder::new().name("output".to_owned()).spawn(move || shared.read_all(from))?;
        Ok(output)
    }

    fn read_all(&self, mut from: impl Read) {
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match from.read(&mut buffer) {
                Ok(0) => return,
                Ok(len) => self.kept().take(&buffer[..len]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => return,
            }
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the text that is looked for was written.
    pub fn has_wanted(&self) -> bool {
        self.kept().wanted.is_empty()
    }

    /// Bytes that were not kept.
    pub fn discarded_bytes(&self) -> u64 {
        self.kept().discarded_bytes
    }

    /// Returns the last line that is not empty, without hidden characters; `None` if there is none.
    pub fn last_line(&self) -> Option<String> {
        let kept = self.kept();
        let text = String::from_utf8_lossy(&kept.tail);
        let line = text.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
        let short: String = line.chars().take(LINE_CHARACTERS_MAX).collect();
        Some(printable(&short, |_| false).into_owned())
    }
}

impl Kept {
    fn take(&mut self, bytes: &[u8]) {
        if !self.wanted.is_empty() {
            // Also where it begins in what was read before.
            let before = self.tail.len().min(self.wanted.len() - 1);
            let joined = [&self.tail[self.tail.len() - before..], bytes].concat();
            if joined.windows(self.wanted.len()).any(|part| part == self.wanted) {
                self.wanted.clear();
            }
        }
        let room = OUTPUT_BYTES_MAX.saturating_sub(self.bytes).min(bytes.len() as u64);
        self.bytes += bytes.len() as u64;
        if let Some(file) = &mut self.file {
            // A full disk does not end the run, which says so when its own files do not fit.
            self.is_broken |= file.write_all(&bytes[..room as usize]).is_err();
        }
        let kept = if self.is_broken { 0 } else { room };
        self.discarded_bytes += bytes.len() as u64 - kept;
        let end = &bytes[bytes.len().saturating_sub(TAIL_BYTES)..];
        let surplus = (self.tail.len() + end.len()).saturating_sub(TAIL_BYTES);
        self.tail.drain(..surplus.min(self.tail.len()));
        self.tail.extend_from_slice(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// However output is cut into pieces, the text is found, and the end is the end.
    fn kept(pieces: &[&[u8]], wanted: &str) -> Kept {
        let mut kept = Kept { wanted: wanted.as_bytes().to_vec(), ..Kept::default() };
        pieces.iter().for_each(|piece| kept.take(piece));
        kept
    }

    #[test]
    fn a_text_is_found_across_reads() {
        for (pieces, is_found) in [
            (&[&b"it is re"[..], b"ady\n"][..], true),
            (&[b"r", b"e", b"a", b"d", b"y"], true),
            (&[b"rea", b"d", b" y"], false),
            (&[], false),
        ] {
            assert_eq!(kept(pieces, "ready").wanted.is_empty(), is_found, "{pieces:?}");
        }
    }

    #[test]
    fn output_beyond_the_limit_is_counted_and_discarded() {
        let file = tempfile::tempfile().unwrap();
        let mut kept = Kept { file: Some(file.try_clone().unwrap()), ..Kept::default() };
        for _ in 0..20 {
            kept.take(&[b'x'; 100_000]);
        }
        kept.take(b"\nend \x1b[1m\n \n");
        assert_eq!(file.metadata().unwrap().len(), OUTPUT_BYTES_MAX);
        let output = Output(Arc::new(Mutex::new(kept)));
        assert_eq!(output.discarded_bytes(), 2_000_000 + 12 - OUTPUT_BYTES_MAX);
        assert_eq!(output.last_line().as_deref(), Some("end \\u{1b}[1m"));
    }

    /// /dev/full has never room for anything (full(4)).
    #[test]
    fn what_a_full_disk_does_not_take_is_counted() {
        let file = File::options().write(true).open("/dev/full").unwrap();
        let mut kept = Kept { file: Some(file), ..Kept::default() };
        kept.take(b"first\n");
        kept.take(b"second\n");
        assert_eq!((kept.discarded_bytes, &kept.tail[..]), (13, &b"first\nsecond\n"[..]));
    }

    proptest! {
        #[test]
        fn the_tail_is_the_end_of_all(pieces in prop::collection::vec(0..9000_usize, 0..6)) {
            let mut all = Vec::new();
            let mut kept = Kept::default();
            for (number, len) in pieces.into_iter().enumerate() {
                let piece: Vec<u8> = (0..len).map(|at| (at * 7 + number) as u8).collect();
                kept.take(&piece);
                all.extend(piece);
            }
            prop_assert_eq!(&kept.tail[..], &all[all.len().saturating_sub(TAIL_BYTES)..]);
        }
    }
}
