//! Rows of time series as integers, of which some fields can be read alone.

use crate::{ClassSample, FlowSample, LinkSample};
use std::fmt::Debug;

/// A row of a time series.
pub trait Timed: Copy + Debug {
    /// Number of integers that the row consists of.
    const WIDTH: usize;

    /// Time since the start of the run, nanoseconds.
    fn time_ns(&self) -> u64;

    /// Returns the series that the row belongs to: a flow and its path, or a link and its class.
    fn of(&self) -> (u32, u16);

    /// Stores the row in as many integers, the time first. `texts` are those of the rows before;
    /// new ones are added.
    fn take_apart(&self, values: &mut [u64], texts: &mut Vec<&'static str>);

    /// Creates the row from the integers and texts of [`Timed::take_apart`].
    fn put_together(values: &[u64], texts: &[&'static str]) -> Self;

    /// Place of the text in [`Timed::take_apart`], if the row has one.
    const TEXT: Option<usize> = None;

    /// Returns the text of the row; empty if it has none.
    fn text(&self) -> &'static str {
        ""
    }
}

/// An integer field of a row, of which a [`Track`] can be read alone.
#[derive(Clone, Copy, Debug)]
pub struct Field<R> {
    /// Its place in [`Timed::take_apart`].
    pub(crate) place: usize,
    pub(crate) get: fn(&R) -> u64,
}

/// A time, nanoseconds, and a value then.
pub type Point = (u64, u64);

impl<R: Timed> Field<R> {
    pub(crate) const TIME: Field<R> = Field { place: 0, get: R::time_ns };
}

/// Returns the numbers from zero on.
const fn places<const N: usize>() -> [usize; N] {
    let mut places = [0; N];
    let mut place = 0;
    while place < N {
        places[place] = place;
        place += 1;
    }
    places
}

/// Implements [`Timed`], and declares the fields that can be read alone. Those come first; the
/// sooner one comes, the quicker it is read.
macro_rules! timed {
    ($row:ident, $fields:ident, $width:literal, $of:expr;
     $($field:ident),+; optional: $($optional:ident),*; narrow: $($narrow:ident),+;
     text: $($text:ident)?) => {
        #[doc = concat!("The fields of [`", stringify!($row), "`] that can be read alone.")]
        #[derive(Clone, Copy, Debug)]
        #[allow(missing_docs, reason = "they are those of the row")]
        pub struct $fields {
            $(pub $field: Field<$row>,)+
        }

        impl $fields {
            #[allow(dead_code, reason = "the place of the text, if there is one")]
            const COUNT: usize = [$(stringify!($field)),+].len();
        }

        impl $row {
            /// The fields that can be read alone ([`Track::column`]).
            pub const FIELDS: $fields = {
                let [$($field,)+ ..] = places::<$width>();
                $fields { $($field: Field { place: $field, get: |row| row.$field }),+ }
            };
        }

        impl Timed for $row {
            const WIDTH: usize = $width;

            #[inline]
            fn time_ns(&self) -> u64 {
                self.time_ns
            }

            #[inline]
            fn of(&self) -> (u32, u16) {
                let of: fn(&$row) -> (u32, u16) = $of;
                of(self)
            }

            #[inline]
            #[allow(unused_variables, reason = "most rows have no text")]
            fn take_apart(&self, values: &mut [u64], texts: &mut Vec<&'static str>) {
                let $row { $($field,)+ $($optional,)* $($narrow,)+ $($text)? } = *self;
                if let Some(values) = values.first_chunk_mut::<$width>() {
                    // One more than a value that is known, and zero for one that is not.
                    $(let $optional = $optional.map_or(0, |known: u64| known.saturating_add(1));)*
                    *values = [$($field,)+ $(number_of($text, texts),)? $($optional,)*
                        $($narrow.into()),+];
                }
            }

            $(
                // It follows the fields.
                const TEXT: Option<usize> = Some($fields::COUNT);

                fn text(&self) -> &'static str {
                    self.$text
                }
            )?

            #[allow(unused_variables, reason = "most rows have no text")]
            fn put_together(values: &[u64], texts: &[&'static str]) -> $row {
                let Some(&[$($field,)+ $($text,)? $($optional,)* $($narrow),+]) =
                    values.first_chunk::<$width>()
                else {
                    return $row::default();
                };
                $(let $text = texts.get($text as usize).copied().unwrap_or_default();)?
                $(let $optional = $optional.checked_sub(1);)*
                $row { $($field,)+ $($text,)? $($optional,)* $($narrow: $narrow as _),+ }
            }
        }
    };
}

timed!(FlowSample, FlowFields, 20, |row| (row.flow, row.path);
    time_ns, rtt_ns, srtt_ns, min_rtt_estimate_ns, delivered_bytes, in_flight_bytes, window_bytes,
    sent_bytes, sent_packets, pacing_rate_bps, bandwidth_estimate_bps, lost_bytes,
    retransmitted_bytes, slow_start_threshold_bytes, reassembly_bytes, path_rtt_ns;
    optional: shrink_bytes; narrow: flow, path; text: phase);

timed!(LinkSample, LinkFields, 12, |row| (row.link, 0);
    time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes, used_bytes,
    entered_packets, capacity_bytes, dropped_packets, lost_packets, marked_packets;
    optional:; narrow: link; text:);

timed!(ClassSample, ClassFields, 10, |row| (row.link, row.class);
    time_ns, queue_bytes, queue_packets, queue_delay_ns, departed_bytes, dropped_packets,
    marked_packets;
    optional:; narrow: link, class; text: name);

/// Returns the number of a text in `texts`, to which it is added if it is new.
#[inline]
fn number_of(text: &'static str, texts: &mut Vec<&'static str>) -> u64 {
    let known = texts.iter().position(|known| std::ptr::eq(*known, text));
    let known = known.or_else(|| texts.iter().position(|known| *known == text));
    let number = known.unwrap_or_else(|| {
        texts.push(text);
        texts.len() - 1
    });
    number as u64
}
