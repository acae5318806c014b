//! Parameters of a controller, from `knee-cc`'s registry into the constants of the BPF program
//! (`struct bbr_config` in `bpf/bbr/types.h`), and back.

use knee_cc::{Kind, Selection, SelectionError, Settings, Value};

/// Preset of `knee-cc` that `bbr_low_delay` implements.
pub(super) const PRESET: &str = "bbr-low-delay";

/// Name of the kernel's BBRv3.
pub(super) const BBR3: &str = "knee_bbr3";

/// Name of the kernel's Copa.
pub(super) const COPA: &str = "knee_copa";

/// Algorithm that has the parameters.
pub(super) const ALGORITHM: &str = "bbr";

/// Unit of gains, 1/256.
const UNIT: f64 = 256.0;

/// Bytes of `struct bbr_config`.
pub(super) const BYTES: usize = 56;

/// Returns the selection of a kernel controller with some of its parameters changed, in the form in
/// which they are typed: `drain_to_target` and `false`, `max_cruise` and `off`.
pub(super) fn selection(controller: &str, changes: &[(String, String)]) -> Selection {
    let (name, algorithm) = match controller {
        BBR3 => ("bbr3", "bbr3"),
        COPA => ("copa", "copa"),
        _ => (PRESET, ALGORITHM),
    };
    let read = |(key, text): &(String, String)| (key.clone(), value(algorithm, key, text));
    Selection { name: name.to_owned(), parameters: changes.iter().map(read).collect() }
}

/// Parses a value according to the type of its parameter; the registry refuses a wrong type.
fn value(algorithm: &str, name: &str, text: &str) -> Value {
    let entry = knee_cc::controllers().iter().find(|entry| entry.name == algorithm);
    let mut parameters = entry.into_iter().flat_map(|entry| entry.parameters);
    let kind = parameters.find(|parameter| parameter.name == name).map(|found| found.kind);
    let numbers =
        || text.split(',').map(|part| part.trim().parse().ok()).collect::<Option<Vec<_>>>();
    let read = match kind {
        Some(Kind::Switch | Kind::SwitchOrWord(_)) => text.parse().ok().map(Value::Switch),
        Some(Kind::Number { .. } | Kind::Count { .. }) => text.parse().ok().map(Value::Number),
        Some(Kind::Numbers { .. }) => numbers().map(Value::Numbers),
        // Everything else is text: quantities with their unit.
        _ => None,
    };
    read.unwrap_or_else(|| Value::Text(text.to_owned()))
}

/// Returns the constants of the program.
pub(super) fn constants(selection: &Selection) -> Result<[u8; BYTES], SelectionError> {
    let settings = knee_cc::settings(selection)?;
    if let Some(parameter) = knee_cc::not_in_kernel(selection) {
        return Err(SelectionError {
            parameter: Some(parameter.to_owned()),
            problem: format!("BBR has no {parameter} in BPF"),
            advice: format!("remove {parameter}"),
        });
    }
    Ok(lay_out(&settings))
}

/// Returns the constants of the fixed window's program (`struct fixed_config` in
/// `bpf/fixed.bpf.c`).
pub(super) fn constants_of_fixed(selection: &Selection) -> Result<Vec<u8>, SelectionError> {
    let packets = knee_cc::settings(selection)?.packets("window");
    let packets = packets.ok_or_else(|| SelectionError {
        parameter: Some("window".to_owned()),
        problem: "the window is in BDP, but the BDP of the path is unknown".to_owned(),
        advice: "write it in packets".to_owned(),
    })?;
    let packets = u32::try_from(packets).unwrap_or(u32::MAX);
    Ok([packets.to_ne_bytes(), [0; 4]].concat())
}

/// Returns the constants of BBRv3's program (`struct bbr3_config` in `bpf/bbr3/types.h`).
pub(super) fn constants_of_bbr3(selection: &Selection) -> Result<Vec<u8>, SelectionError> {
    let settings = knee_cc::settings(selection)?;
    let thousandths = |value: f64| (value * 1000.0).round() as u32;
    let number = |name| thousandths(settings.number(name));
    let part = |name| thousandths(settings.part(name).get());
    let limit = settings.duration("extra_acked_limit").map_or(u64::MAX, |time| time.as_micros());
    let gains = settings.numbers("probe_gains");
    let rounds = settings.count("drain_rounds");
    let longs = [
        limit,
        settings.time("probe_rtt_interval").as_nanos(),
        settings.time("min_rtt_filter").as_nanos(),
    ];
    let words = [
        number("startup_gain"),
        number("drain_gain"),
        if rounds == 0 { u32::MAX } else { rounds },
        thousandths(gains[0]),
        thousandths(gains[1]),
        part("loss_threshold"),
        number("beta"),
        part("headroom"),
        settings.count("startup_loss_ranges"),
        u32::from(settings.switch("startup_keeps_delivered")),
        settings.count("offload_quanta"),
        u32::from(settings.switch("probe_rtt")),
        u32::from(settings.word("probe_rtt_window_from") == Some("before")),
        match settings.word("startup_loss") {
            Some("conserve") => 1,
            Some("at-once") => 2,
            _ => 0,
        },
        number("startup_window_gain"),
    ];
    let longs = longs.into_iter().flat_map(u64::to_ne_bytes);
    Ok(longs.chain(words.into_iter().flat_map(u32::to_ne_bytes)).collect())
}

/// Returns the constants of Copa's program (`struct copa_config` in `bpf/copa/copa.h`).
pub(super) fn constants_of_copa(selection: &Selection) -> Result<Vec<u8>, SelectionError> {
    let settings = knee_cc::settings(selection)?;
    let inverse = (f64::from(1 << 20) / settings.number("delta")).round() as u32;
    let competitive = u32::from(settings.switch("competitive"));
    Ok([inverse.to_ne_bytes(), competitive.to_ne_bytes()].concat())
}

fn lay_out(settings: &Settings) -> [u8; BYTES] {
    let cruise = settings.duration("max_cruise").map_or(u64::MAX, |time| time.as_nanos());
    let bound = settings.duration("delay_lower_bound").unwrap_or_default().as_micros();
    let gain = |gain: f64| (gain * UNIT).round() as u32;
    let probe = settings.numbers("probe_gains");
    let words = [
        settings.count("cwnd_pace"),
        gain(probe[0]),
        gain(probe[1]),
        gain(settings.number("window_gain")),
    ];
    let mut bytes = [0; BYTES];
    bytes[0..8].copy_from_slice(&cruise.to_ne_bytes());
    bytes[8..16].copy_from_slice(&bound.to_ne_bytes());
    for (word, place) in words.iter().zip(bytes[16..32].chunks_exact_mut(4)) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    let switches = [
        "drain_to_target",
        "probe_up_exit_early",
        "shrink_window",
        "keep_bw_over_probe_rtt",
        "detect_policers",
        "allow_for_aggregation",
        "allow_for_bursts",
        "probe_rtt",
    ];
    for (switch, place) in switches.iter().zip(&mut bytes[32..40]) {
        *place = u8::from(settings.switch(switch));
    }
    bytes[40..44].copy_from_slice(&settings.count("bandwidth_window").to_ne_bytes());
    bytes[44..48].copy_from_slice(&gain(settings.number("probe_loss_gain")).to_ne_bytes());
    bytes[48..52].copy_from_slice(&gain(settings.number("probe_rtt_gain")).to_ne_bytes());
    let early = u32::from(settings.switch("probe_rtt_exit_early"));
    bytes[52..56].copy_from_slice(&early.to_ne_bytes());
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use libbpf_rs::{MapType, ObjectBuilder};

    fn change(name: &str, text: &str) -> Result<[u8; BYTES], SelectionError> {
        constants(&selection("bbr_low_delay", &[(name.to_owned(), text.to_owned())]))
    }

    #[test]
    fn what_is_typed_reaches_its_place() {
        let preset = constants(&selection("bbr_low_delay", &[])).unwrap();
        let changed = |name, text| {
            let bytes = change(name, text).unwrap();
            (0..BYTES).filter(|at| bytes[*at] != preset[*at]).collect::<Vec<_>>()
        };
        assert_eq!(changed("drain_to_target", "false"), [32]);
        assert_eq!(changed("probe_up_exit_early", "false"), [33]);
        assert_eq!(changed("probe_rtt_exit_early", "false"), [52]);
        assert_eq!(changed("keep_bw_over_probe_rtt", "false"), [35]);
        assert_eq!(changed("detect_policers", "false"), [36]);
        assert_eq!(changed("probe_rtt", "false"), [39]);
        assert_eq!(changed("cwnd_pace", "31"), [16]);
        assert_eq!(changed("bandwidth_window", "2"), [40]);
        // 0x100 becomes 0x0b3.
        assert_eq!(changed("probe_loss_gain", "0.7"), [44, 45]);
        assert_eq!(changed("probe_rtt_gain", "0.5"), [48]);
        // 1.25 and 0.75 are 0x140 and 0xc0 in 1/256, 1.2 and 0.8 0x133 and 0xcd.
        assert_eq!(changed("probe_gains", "1.25, 0.75"), [20, 24]);
        assert_eq!(change("max_cruise", "off").unwrap()[..8], [0xff; 8]);
        assert_eq!(change("delay_lower_bound", "20 ms").unwrap()[8..10], 20_000_u16.to_ne_bytes());
    }

    /// The defaults in the program, used when another tool loads it, are those of the preset.
    #[test]
    fn the_program_holds_the_preset() {
        libbpf_rs::set_print(None);
        let object = ObjectBuilder::default().open_memory(crate::bpf::BBR_LOW_DELAY).unwrap();
        let rodata = object.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let preset = constants(&selection("bbr_low_delay", &[])).unwrap();
        assert_eq!(rodata.unwrap().initial_value().unwrap()[..BYTES], preset);
        assert!(object.maps().any(|map| map.map_type() == MapType::StructOps));
    }

    #[test]
    fn copa_holds_its_defaults_and_takes_others() {
        libbpf_rs::set_print(None);
        let object = ObjectBuilder::default().open_memory(crate::bpf::COPA).unwrap();
        let rodata = object.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let defaults = constants_of_copa(&selection(COPA, &[])).unwrap();
        assert_eq!(rodata.unwrap().initial_value().unwrap()[..8], defaults);
        let change = |name: &str, text: &str| {
            constants_of_copa(&selection(COPA, &[(name.to_owned(), text.to_owned())]))
        };
        // Four times 2^20.
        assert_eq!(change("delta", "0.25").unwrap()[..4], (1_u32 << 22).to_ne_bytes());
        assert_eq!(change("competitive", "false").unwrap()[4..], [0; 4]);
        assert!(change("delta", "20").is_err());
    }

    #[test]
    fn bbr3_holds_its_defaults_and_takes_others() {
        libbpf_rs::set_print(None);
        let object = ObjectBuilder::default().open_memory(crate::bpf::BBR3).unwrap();
        let rodata = object.maps().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
        let defaults = constants_of_bbr3(&selection(BBR3, &[])).unwrap();
        assert_eq!(rodata.unwrap().initial_value().unwrap()[..84], defaults);
        let changed = |name: &str, text: &str| {
            let bytes = constants_of_bbr3(&selection(BBR3, &[(name.to_owned(), text.to_owned())]));
            let bytes = bytes.unwrap_or_else(|error| panic!("{error}"));
            (0..84).step_by(4).filter(|at| bytes[*at..*at + 4] != defaults[*at..*at + 4]).collect()
        };
        let places: Vec<Vec<usize>> = vec![
            changed("extra_acked_limit", "100 ms"),
            changed("startup_gain", "2.9"),
            changed("drain_gain", "0.4"),
            changed("drain_rounds", "0"),
            changed("probe_gains", "1.2, 0.8"),
            changed("loss_threshold", "3 %"),
            changed("beta", "0.8"),
            changed("headroom", "10 %"),
            changed("startup_loss_ranges", "8"),
            changed("startup_keeps_delivered", "false"),
            changed("offload_quanta", "1"),
            changed("probe_rtt", "false"),
            changed("probe_rtt_interval", "10 s"),
            changed("min_rtt_filter", "30 s"),
            changed("probe_rtt_window_from", "before"),
            changed("startup_loss", "at-once"),
            changed("startup_window_gain", "1.5"),
        ];
        let expected: [&[usize]; 17] = [
            &[0, 4],
            &[24],
            &[28],
            &[32],
            &[36, 40],
            &[44],
            &[48],
            &[52],
            &[56],
            &[60],
            &[64],
            &[68],
            &[8, 12],
            &[16, 20],
            &[72],
            &[76],
            &[80],
        ];
        assert_eq!(places, expected);
    }

    #[test]
    fn a_fixed_window_is_a_number_of_packets() {
        let window = |text: &str| {
            let value = Value::Text(text.to_owned());
            constants_of_fixed(&Selection::named("fixed").with("window", value))
        };
        assert_eq!(window("300 packets").unwrap()[..4], 300_u32.to_ne_bytes());
        assert!(window("2 BDP").unwrap_err().to_string().contains("in packets"));
    }

    #[test]
    fn what_cannot_be_is_refused_with_advice() {
        let error = change("drain_to_target", "maybe").unwrap_err();
        assert!(error.to_string().contains("write true or false"), "{error}");
        let error = change("window_machine", "true").unwrap_err();
        assert!(error.to_string().contains("window_machine"), "{error}");
        let error = change("shrink_window", "literal").unwrap_err();
        assert!(error.to_string().contains("shrink_window = \"literal\""), "{error}");
        let error = change("shrink_limit", "0.25").unwrap_err();
        assert!(error.to_string().contains("shrink_limit"), "{error}");
        for name in ["tobit_filter", "gamma_gains", "inverse_gains"] {
            let error = change(name, "true").unwrap_err();
            assert!(error.to_string().contains(&format!("BBR has no {name} in BPF")), "{error}");
        }
        let error = change("drain_target", "true").unwrap_err();
        assert!(error.to_string().contains("did you mean \"drain_to_target\"?"), "{error}");
    }
}
