//! Sizes of transfers and objects, as programs write them.

use crate::error::{FileError, SHOWN, shorten};

/// Maximum size of a transfer or object: 1 PB. A larger number comes from the wrong column, such as
/// a time stamp in nanoseconds.
const BYTES_MAX: u64 = 1_000_000_000_000_000;

/// Why a field is not a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NotASize {
    /// 0 or "-": an answer without a body.
    NoBody,
    /// Nothing.
    Missing,
    /// No whole number of bytes.
    NotBytes,
    /// More than [`BYTES_MAX`].
    TooLarge,
}

/// Parses a size in whole bytes, which programs also write as 1234.0.
pub(crate) fn size(field: &str) -> Result<u64, NotASize> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match field {
        "-" => return Err(NotASize::NoBody),
        "" => return Err(NotASize::Missing),
        _ => {}
    }
    let size = if digits(field) {
        field.parse().map_err(|_| NotASize::TooLarge)?
    } else {
        let number = |byte: u8| byte.is_ascii_digit() || b".eE+".contains(&byte);
        let is_number = field.starts_with(|first: char| first.is_ascii_digit());
        let value = field.parse::<f64>().ok();
        let value =
            value.filter(|value| is_number && field.bytes().all(number) && value.fract() == 0.0);
        // Up to 1 PB every whole number is one of `f64`; the cast saturates above.
        value.ok_or(NotASize::NotBytes)? as u64
    };
    match size {
        0 => Err(NotASize::NoBody),
        size if size > BYTES_MAX => Err(NotASize::TooLarge),
        size => Ok(size),
    }
}

/// Parses a size in bytes; 0 is one.
///
/// # Errors
/// If it is none, with what to write instead.
pub fn whole_bytes(line: usize, field: &str) -> Result<u64, FileError> {
    let advice = "write whole bytes without a unit, such as 1500000 for 1.5 MB";
    let wrong = |problem: String| Err(FileError::new(line, problem, advice));
    match size(field) {
        Ok(size) => Ok(size),
        Err(NotASize::NoBody) if field != "-" => Ok(0),
        Err(NotASize::Missing) => wrong("the size is missing".into()),
        Err(NotASize::TooLarge) => {
            wrong(format!("{} is beyond any size (1 PB)", shorten(field, SHOWN)))
        }
        Err(_) => wrong(format!("\"{}\" is not a size", shorten(field, SHOWN))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_with_a_fraction_of_zero_are_sizes() {
        assert_eq!(size("1234.0"), Ok(1234));
        assert_eq!(size("1.5e6"), Ok(1_500_000));
        assert_eq!(size("0.0"), Err(NotASize::NoBody));
        for text in ["1234.5", "-3", "nan", "inf", "1 kB", "e5", "+5"] {
            assert_eq!(size(text), Err(NotASize::NotBytes), "{text}");
        }
        assert_eq!(size("1e300"), Err(NotASize::TooLarge));
        assert_eq!(size("1000000000000000.0"), Ok(BYTES_MAX));
    }
}
