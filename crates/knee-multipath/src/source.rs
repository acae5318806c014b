//! The source of a connection's data.

/// Waiting bytes from which a source counts as endless.
pub const ENDLESS: u64 = 1 << 63;

/// The data that a connection sends: one stream, or several, among which the
/// source chooses at each cut.
pub trait Source {
    /// Name of a piece of data, for instance its stream and position.
    type Piece: Copy;

    /// Cuts off the next piece, of at most `max` bytes and at least one; `None`
    /// if nothing waits. The connection cuts as late as possible, so that data
    /// that has become urgent comes next.
    fn cut(&mut self, max: u16) -> Option<(Self::Piece, u16)>;

    /// Returns the bytes not cut yet; [`ENDLESS`] or more if they never run out.
    fn waiting(&self) -> u64;
}

/// One stream of bytes without content, for a simulator. The position of a
/// piece is that in the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteCount {
    written: u64,
    cut: u64,
}

impl ByteCount {
    /// Adds `bytes` waiting bytes; `u64::MAX` for an endless stream.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Cuts off `bytes` bytes, which must be waiting.
    pub(crate) fn cut_bytes(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.waiting());
        self.cut += bytes;
    }

    /// Stops the stream after the data already cut.
    pub fn stop(&mut self) {
        self.written = self.cut;
    }
}

impl Source for ByteCount {
    type Piece = ();

    #[inline]
    fn cut(&mut self, max: u16) -> Option<((), u16)> {
        let len = self.waiting().min(u64::from(max)) as u16;
        self.cut += u64::from(len);
        (len > 0).then_some(((), len))
    }

    #[inline]
    fn waiting(&self) -> u64 {
        self.written - self.cut
    }
}
