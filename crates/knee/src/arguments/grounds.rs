//! Names of grounds, for `--on`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use knee_lab::{Grounds, HOSTS, KERNEL, PROGRAMS};

/// Grounds that this build lacks, each with the feature that it needs: those that scenarios and
/// studies can name are features of the same name, except programs.
pub fn left_out(known: &Grounds) -> impl Iterator<Item = (&'static str, &'static str)> {
    let feature = |name| if name == PROGRAMS { KERNEL } else { name };
    let named = knee_scenario::ground_names().map(move |name| (name, feature(name)));
    let all = named.chain([(HOSTS, "bond")]);
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
