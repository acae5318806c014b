//! Loading state into the processor's cache before it is needed.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Begins to load `value` into the cache. It has no other effect.
#[inline(always)]
pub fn prefetch<T: ?Sized>(value: &T) {
    let first = std::ptr::from_ref(value).cast::<u8>();
    // A value need not begin at the start of a line.
    if align_of_val(value) < LINE {
        let last = first.wrapping_add(size_of_val(value).saturating_sub(1));
        branches::prefetch_read_data::<u8, 0>(last);
    }
    for line in 0..size_of_val(value).div_ceil(LINE) {
        branches::prefetch_read_data::<u8, 0>(first.wrapping_add(line * LINE));
    }
}
