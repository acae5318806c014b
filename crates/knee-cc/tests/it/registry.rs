//! Names, parameters, and the errors for wrong ones.
use knee_cc::{Selection, SelectionError, Value, build, check, controllers};

fn refused(selection: Selection) -> SelectionError {
    let by_check = check(&selection).unwrap_err();
    let by_build = build(&selection, crate::pipe::init(1)).map(|_| ()).unwrap_err();
    assert_eq!(by_check, by_build);
    by_check
}

fn text(value: &str) -> Value {
    Value::Text(value.to_owned())
}

#[test]
fn every_controller_and_preset_builds_with_its_defaults() {
    let mut names = Vec::new();
    for entry in controllers() {
        names.push(entry.name);
        names.extend(entry.presets.iter().map(|p| p.name));
        for parameter in entry.parameters {
            assert!(!parameter.summary.is_empty(), "{}", parameter.name);
            let saved = ["saved_window", "saved_rtt"].contains(&parameter.name);
            assert_eq!(parameter.default.is_empty(), saved, "{}", parameter.name);
        }
    }
    assert_eq!(
        names,
        [
            "balia",
            "bbr",
            "bbr-low-delay",
            "bbr3",
            "bbr3-linux",
            "bbr3-loss-v2",
            "copa",
            "cubic",
            "dctcp",
            "fixed",
            "gcc",
            "ledbat++",
            "lia",
            "olia",
            "prague",
            "remycc",
            "reno",
            "vegas",
            "vivace"
        ]
    );
    for name in names {
        let built = build(&Selection::named(name), crate::pipe::init(1)).unwrap();
        assert_eq!(built.decision().window, 10 * crate::pipe::MSS, "{name}");
    }
}

#[test]
fn a_mistyped_controller_is_told_the_nearest() {
    let error = refused(Selection::named("cubik"));
    assert_eq!(error.to_string(), "there is no controller \"cubik\": did you mean \"cubic\"?");
    assert_eq!(error.parameter, None);
    let error = refused(Selection::named("BBR_low-delay"));
    assert_eq!(error.advice, "did you mean \"bbr-low-delay\"?");
    // Two adjacent letters are swapped.
    assert_eq!(refused(Selection::named("brb")).advice, "did you mean \"bbr\"?");
    let error = refused(Selection::named("quantum"));
    assert_eq!(
        error.advice,
        "write one of \"balia\", \"bbr\", \"bbr-low-delay\", \"bbr3\", \"bbr3-linux\", \
         \"bbr3-loss-v2\", \"copa\", \"cubic\", \"dctcp\", \"fixed\", \"gcc\", \"ledbat++\", \"lia\", \"olia\", \
         \"prague\", \"remycc\", \"reno\", \"vegas\", \"vivace\""
    );
}

#[test]
fn a_mistyped_parameter_is_told_the_nearest() {
    let error = refused(Selection::named("bbr").with("drain_to_traget", Value::Switch(true)));
    assert_eq!(
        error.to_string(),
        "bbr has no parameter \"drain_to_traget\": did you mean \"drain_to_target\"?"
    );
    assert_eq!(error.parameter.as_deref(), Some("drain_to_traget"));
    let error = refused(Selection::named("olia").with("beta", Value::Number(0.5)));
    assert_eq!(error.to_string(), "olia has no parameter \"beta\": it takes no parameters");
}

#[test]
fn values_of_the_wrong_kind_are_told_the_right_one() {
    let cases = [
        ("delay_lower_bound", Value::Number(10.0), "write a time from \"0 s\" to \"3600 s\""),
        ("delay_lower_bound", text("10"), "write a time from \"0 s\" to \"3600 s\""),
        ("delay_lower_bound", text("2 h"), "write a time from \"0 s\" to \"3600 s\""),
        (
            "max_cruise",
            text("never"),
            "write a time above zero, up to \"3600 s\", such as \"400 ms\", or \"off\"",
        ),
        ("cwnd_pace", Value::Number(2.5), "write a whole number from 1 to 1000"),
        ("cwnd_pace", Value::Number(0.0), "write a whole number from 1 to 1000"),
        ("window_gain", Value::Number(f64::NAN), "write a number from 0.5 to 3.9"),
        ("probe_gains", Value::Numbers(vec![1.25]), "write a list of 2 numbers from 0.1 to 3.9"),
        ("shrink_window", text("yes"), "write true, false or \"literal\""),
    ];
    for (name, value, advice) in cases {
        let error = refused(Selection::named("bbr-low-delay").with(name, value.clone()));
        assert_eq!(error.advice, advice, "{name} = {value:?}");
        assert!(error.problem.starts_with(&format!("{name} of bbr-low-delay cannot be ")));
    }
}

#[test]
fn good_values_are_taken() {
    let selection = Selection::named("bbr")
        .with("max_cruise", text("400 ms"))
        .with("delay_lower_bound", text("0 ms"))
        .with("probe_gains", Value::Numbers(vec![1.2, 0.8]))
        .with("window_gain", Value::Number(1.5))
        .with("cwnd_pace", Value::Number(20.0))
        .with("drain_to_target", Value::Switch(true));
    assert_eq!(check(&selection), Ok(()));
    assert_eq!(check(&Selection::named("bbr").with("max_cruise", text("off"))), Ok(()));
    assert_eq!(check(&Selection::named("bbr").with("max_cruise", Value::Switch(false))), Ok(()));
}

/// A preset consists only of its parameters, and they can be overridden.
#[test]
fn a_preset_is_its_parameters() {
    let bbr = controllers().iter().find(|entry| entry.name == "bbr").unwrap();
    let preset = &bbr.presets[0];
    assert!(
        preset.parameters.iter().all(|(name, _)| bbr.parameters.iter().any(|p| p.name == *name))
    );
    let gentle = Selection::named("bbr-low-delay").with("shrink_window", Value::Switch(false));
    assert_eq!(check(&gentle), Ok(()));
}

/// Rates have units and bounds, and `min_rate` may not exceed `max_rate`.
#[test]
fn rates_of_a_call_have_units() {
    let gcc = |name: &str, value: &str| Selection::named("gcc").with(name, text(value));
    let built = build(&gcc("max_rate", "200 kbit/s"), crate::pipe::init(1)).unwrap();
    let rate = built.decision().pacing_rate.unwrap();
    assert_eq!(rate.as_bits_per_second(), 200_000, "the start is within the bounds");
    for wrong in ["2", "2 Mbit", "1 kbit/s", "2 MB"] {
        let error = refused(gcc("max_rate", wrong));
        assert_eq!(error.advice, "write a rate from \"10 kbit/s\" to \"1000 Gbit/s\"", "{wrong}");
    }
    assert_eq!(
        refused(gcc("min_rate", "3 Mbit/s")).to_string(),
        "min_rate of gcc is 3 Mbit/s, above its max_rate of 2 Mbit/s: \
         set min_rate to max_rate or less"
    );
}

/// A window has a unit and is at least one packet; only a scenario can resolve a BDP.
#[test]
fn a_fixed_window_is_in_packets_or_in_bdp() {
    let fixed = |value: Value| Selection::named("fixed").with("window", value);
    let built = build(&fixed(text("24 packets")), crate::pipe::init(1)).unwrap();
    assert_eq!(built.decision().window, 24 * crate::pipe::MSS);
    assert_eq!(check(&fixed(text("1.5 BDP"))), Ok(()));
    let refusal = build(&fixed(text("1.5 BDP")), crate::pipe::init(1)).map(|_| ()).unwrap_err();
    assert_eq!(
        refusal.to_string(),
        "window is 1.5 BDP of a path that is not known: write it in packets"
    );
    let wrong = [
        text("0 packets"),
        text("1.5 packets"),
        text("1000001 packets"),
        text("0 BDP"),
        text("-1 BDP"),
        text("1001 BDP"),
        text("30 kB"),
        text("unlimited"),
        text("24"),
        Value::Number(24.0),
    ];
    for value in wrong {
        let error = refused(fixed(value.clone()));
        assert!(error.advice.contains("\"1.5 BDP\""), "{value:?}: {error}");
    }
}
