//! Where the data of a connection comes from.

/// From so many bytes that wait on, a source has no end.
pub const ENDLESS: u64 = 1 << 63;

/// What a connection sends: one stream, or several, among which the source
/// chooses at each cut.
pub trait Source {
    /// What names a piece of data: its stream and place, for instance.
    type Piece: Copy;

    /// Cuts off the next piece, of at most `max` bytes and at least one;
    /// none: nothing waits. The connection cuts as late as it can, so what
    /// became urgent meanwhile comes next.
    fn cut(&mut self, max: u16) -> Option<(Self::Piece, u16)>;

    /// Bytes not cut yet; [`ENDLESS`] or more: they never run out.
    fn waiting(&self) -> u64;
}

/// One stream of bytes without their content, as a simulator needs it. The
/// place of a piece is that in the connection.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteCount {
    written: u64,
    cut: u64,
}

impl ByteCount {
    /// So many bytes more wait; it never ends with `u64::MAX`.
    pub fn write(&mut self, bytes: u64) {
        self.written = self.written.saturating_add(bytes);
    }

    /// Nothing comes after what was already cut.
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
