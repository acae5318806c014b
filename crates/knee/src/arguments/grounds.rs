//! Names of grounds, for `--on`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use knee_lab::{Grounds, HOSTS};

/// Grounds that this build lacks, each with the feature that it needs: of those that scenarios and
/// studies can name, all but `programs` are features of the same name.
pub fn left_out(known: &Grounds) -> impl Iterator<Item = (&'static str, &'static str)> {
    let all = knee_scenario::ground_names().map(|name| (name, name)).chain([(HOSTS, "bond")]);
    all.filter(|(name, _)| known.get(name).is_err())
}

/// Grounds that need nothing but this host.
pub fn grounds() -> PossibleValuesParser {
    ground_values().into_iter().filter(|value| value.get_name() != HOSTS).collect::<Vec<_>>().into()
}

/// All grounds, for a command that says which other machine to use.
pub fn all_grounds() -> PossibleValuesParser {
    ground_values().into()
}

fn ground_values() -> Vec<PossibleValue> {
    let all = Grounds::built_in();
    let known = all.iter().map(|ground| {
        PossibleValue::new(ground.name().to_string()).help(ground.summary().to_string())
    });
    let left_out = left_out(&all).map(|(name, feature)| {
        PossibleValue::new(name).help(format!("Not in this build; needs --features {feature}"))
    });
    known.chain(left_out).collect()
}
