//! Names of grounds, for `--on`.

use clap::builder::{PossibleValue, PossibleValuesParser};
use knee_lab::{Grounds, HOSTS, KERNEL, PROGRAMS};
use std::collections::BTreeMap;

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
    values_of(&Grounds::built_in())
}

/// In the same order whichever this build lacks.
fn values_of(known: &Grounds) -> Vec<PossibleValue> {
    let lacks: BTreeMap<&str, &str> = left_out(known).collect();
    let value = |name| {
        let help = match known.get(name) {
            Ok(ground) => ground.summary().to_string(),
            Err(_) => format!("Not in this build; needs --features {}", lacks[name]),
        };
        PossibleValue::new(name).help(help)
    };
    knee_scenario::ground_names().chain([HOSTS]).map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_lab::Simulator;

    #[test]
    fn grounds_have_one_order_whatever_the_build_lacks() {
        let names = |known: &Grounds| -> Vec<String> {
            values_of(known).iter().map(|value| value.get_name().to_string()).collect()
        };
        let all = Grounds::built_in();
        assert!(all.iter().all(|ground| names(&all).iter().any(|name| name == ground.name())));
        assert_eq!(names(&all), names(&Grounds::new().with(Simulator::default())));
    }
}
