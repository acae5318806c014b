//! Tests reading and printing of quantities against literal values.

use knee_units::{BufferSize, Bytes, Fraction, Rate, Time};
use proptest::prelude::*;
use std::fmt::{Debug, Display};
use std::str::FromStr;

#[test]
fn reads_what_people_write() {
    let time = |text: &str| text.parse::<Time>().unwrap().as_nanos();
    assert_eq!(time("60 ms"), 60_000_000);
    assert_eq!(time("1.5 s"), 1_500_000_000);
    assert_eq!(time("250us"), 250_000);
    assert_eq!(time("250 µs"), 250_000);
    assert_eq!(time("10 ns"), 10);
    assert_eq!(time(" 2 min "), 120_000_000_000);
    assert_eq!(time("0.000000001 s"), 1);
    assert_eq!(time("18446744073709551615 ns"), u64::MAX);
    let rate = |text: &str| text.parse::<Rate>().unwrap().as_bits_per_second();
    assert_eq!(rate("10 Mbit/s"), 10_000_000);
    assert_eq!(rate("1 Gbit/s"), 1_000_000_000);
    assert_eq!(rate("1.5 kbit/s"), 1_500);
    assert_eq!(rate("7 bit/s"), 7);
    let bytes = |text: &str| text.parse::<Bytes>().unwrap().get();
    assert_eq!(bytes("1.5 MB"), 1_500_000);
    assert_eq!(bytes("64 kB"), 64_000);
    assert_eq!(bytes("64 KiB"), 65_536);
    assert_eq!(bytes("1.5 KiB"), 1_536);
    assert_eq!(bytes("2 MiB"), 2_097_152);
    assert_eq!(bytes("1 GB"), 1_000_000_000);
    assert_eq!("1.5 %".parse::<Fraction>().unwrap().get(), 0.015);
    assert_eq!("250 %".parse::<Fraction>().unwrap().get(), 2.5);
    let buffer = |text: &str| text.parse::<BufferSize>().unwrap();
    assert_eq!(buffer("8 BDP"), BufferSize::Bdp(8.0));
    assert_eq!(buffer("0.25 BDP"), BufferSize::Bdp(0.25));
    assert_eq!(buffer("256 kB"), BufferSize::Bytes(Bytes::new(256_000)));
    assert_eq!(buffer("1 packet"), BufferSize::Packets(1));
    assert_eq!(buffer("unlimited"), BufferSize::Unlimited);
}

#[test]
fn prints_the_shortest_exact_text() {
    assert_eq!(Time::from_millis(60).to_string(), "60 ms");
    assert_eq!(Time::from_nanos(1_500_000_000).to_string(), "1.5 s");
    assert_eq!(Time::from_nanos(1_000_001).to_string(), "1000001 ns");
    assert_eq!(Time::from_nanos(61_200_000).to_string(), "61.2 ms");
    assert_eq!(Bytes::new(1_448).to_string(), "1448 B");
    assert_eq!(Time::ZERO.to_string(), "0 s");
    assert_eq!(Rate::from_bits_per_second(350_000_000).to_string(), "350 Mbit/s");
    assert_eq!(Rate::ZERO.to_string(), "0 bit/s");
    assert_eq!(Bytes::new(65_536).to_string(), "64 KiB");
    assert_eq!(Bytes::new(64_000).to_string(), "64 kB");
    assert_eq!(Bytes::new(1_500_000).to_string(), "1.5 MB");
    assert_eq!(Fraction::new(0.015).to_string(), "1.5 %");
    assert_eq!(Fraction::new(1e-9).to_string(), "0.0000001 %");
    assert_eq!(Fraction::new(1.0).to_string(), "100 %");
    assert_eq!(format!("{:>8}|", Time::from_secs(2)), "     2 s|");
}

/// Returns the error that a user sees for a wrong text.
fn complaint<T: FromStr<Err: Display> + Debug>(text: &str) -> String {
    text.parse::<T>().unwrap_err().to_string()
}

#[test]
fn says_what_to_write_instead() {
    let time = complaint::<Time>;
    assert_eq!(time("60"), "a bare number: write \"60 ms\" or \"60 s\"");
    assert_eq!(time("60 sec"), "unknown unit \"sec\": write \"s\"");
    assert_eq!(time("60 MS"), "unknown unit \"MS\": write \"ms\"");
    assert_eq!(time("60 foo"), "unknown unit \"foo\": write one of ns, us, µs, ms, s, min");
    assert_eq!(time("soon"), "\"soon\" is not a time: write \"60 ms\"");
    assert_eq!(time(""), "\"\" is not a time: write \"60 ms\"");
    assert_eq!(time("1.2.3 s"), "\"1.2.3 s\" is not a time: write \"60 ms\"");
    assert_eq!(
        time("-5 ms"),
        "\"-5 ms\" is negative, but a time cannot be: write it without the minus sign"
    );
    assert_eq!(time("0.5 ns"), "\"0.5 ns\" is finer than 1 ns: write a whole multiple of 1 ns");
    assert_eq!(
        time("99999999999 s"),
        "\"99999999999 s\" is too large for a time: write a smaller one"
    );
    assert_eq!(
        time("99999999999999999999999 ns"),
        "\"99999999999999999999999 ns\" is too large for a time: write a smaller one"
    );
    let rate = complaint::<Rate>;
    let comma = "\"1,5 Mbit/s\" has a comma: write it with a point: \"1.5 Mbit/s\"";
    assert_eq!(rate("1,5 Mbit/s"), comma);
    assert_eq!(
        rate("1,500 Mbit/s"),
        "\"1,500 Mbit/s\" has a comma: write \"1500 Mbit/s\", or with a point: \"1.500 Mbit/s\""
    );
    assert_eq!(
        rate("1,000,000.5 kbit/s"),
        "\"1,000,000.5 kbit/s\" has a comma: write \"1000000.5 kbit/s\""
    );
    assert_eq!(
        complaint::<Fraction>("0,125 %"),
        "\"0,125 %\" has a comma: write it with a point: \"0.125 %\""
    );
    assert_eq!(rate("10 mbps"), "unknown unit \"mbps\": write \"Mbit/s\"");
    assert_eq!(rate("10 mbit/s"), "unknown unit \"mbit/s\": write \"Mbit/s\"");
    assert_eq!(rate("10 MB/s"), "unknown unit \"MB/s\": write \"Mbit/s\" (1 MB/s = 8 Mbit/s)");
    assert_eq!(rate("10 ms"), "expected a rate, but \"ms\" is a unit of time: write \"10 Mbit/s\"");
    assert_eq!(complaint::<Bytes>("64 KB"), "unknown unit \"KB\": write \"kB\"");
    assert_eq!(
        complaint::<Fraction>("0.02"),
        "a bare number: write \"0.02 %\", or \"2 %\" for 0.02 of 1"
    );
    assert_eq!(complaint::<Fraction>("5"), "a bare number: write \"5 %\"");
    let buffer = complaint::<BufferSize>;
    assert_eq!(buffer("8"), "a bare number: write \"8 BDP\" or \"8 packets\"");
    assert_eq!(buffer("8 bdp"), "unknown unit \"bdp\": write \"BDP\"");
    assert_eq!(
        buffer("8 ms"),
        "expected a buffer size, but \"ms\" is a unit of time: write \"1 BDP\""
    );
    assert_eq!(
        buffer("1.5 packets"),
        "\"1.5 packets\" is finer than 1 packet: write a whole multiple of 1 packet"
    );
}

/// Asserts that a printed value reads back as the same value, and that the text matches the
/// schema's pattern.
fn round_trip<T>(value: T) -> Result<(), TestCaseError>
where
    T: Display + FromStr<Err: Debug> + PartialEq + Debug + schemars::JsonSchema,
{
    let text = value.to_string();
    prop_assert_eq!(&text.parse::<T>().unwrap(), &value, "{}", text);
    let schema = schemars::schema_for!(T);
    let pattern = schema.get("pattern").and_then(|p| p.as_str()).unwrap().to_string();
    prop_assert!(regex::Regex::new(&pattern).unwrap().is_match(&text), "{} {}", pattern, text);
    Ok(())
}

/// Generates numbers with few digits, as people choose them, and arbitrary ones.
fn steps() -> impl Strategy<Value = u64> {
    prop_oneof![
        any::<u64>(),
        (0u64..10_000, 0u32..16).prop_map(|(n, zeros)| n.saturating_mul(10u64.pow(zeros))),
        (0u64..64).prop_map(|shift| 1 << shift),
    ]
}

proptest! {
    #[test]
    fn printed_quantities_read_back(
        n in steps(),
        part in prop_oneof![0.0..1.0f64, 0.0..1e-9f64, 0.0..1e6f64],
    ) {
        round_trip(Time::from_nanos(n))?;
        round_trip(Rate::from_bits_per_second(n))?;
        round_trip(Bytes::new(n))?;
        round_trip(Fraction::new(part))?;
        round_trip(BufferSize::Packets(n))?;
        round_trip(BufferSize::Bytes(Bytes::new(n)))?;
        round_trip(BufferSize::Bdp(part))?;
    }

    #[test]
    fn arbitrary_text_never_panics(text in "\\PC{0,30}|[0-9.]{1,50} ?[a-zA-Zµ%/]{0,8}") {
        let _ = text.parse::<Time>();
        let _ = text.parse::<Rate>();
        let _ = text.parse::<Bytes>();
        let _ = text.parse::<Fraction>();
        let _ = text.parse::<BufferSize>();
    }
}
