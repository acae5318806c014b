//! What programs are told by their environment.

use crate::certificates::Certificates;
use knee_scenario::Scenario;
use knee_testbed::{End, Family, address};
use std::path::Path;

/// Variables of a program, by name.
pub type Variables = Vec<(&'static str, String)>;

/// Returns the other end.
pub fn other(end: End) -> End {
    if end == End::Sender { End::Receiver } else { End::Sender }
}

/// Returns the name of a host.
pub fn host(end: End) -> &'static str {
    if end == End::Sender { "sender" } else { "receiver" }
}

/// Returns the names of a scenario's paths.
pub fn path_names(scenario: &Scenario) -> Vec<String> {
    scenario.paths.iter().map(|path| path.name.clone()).collect()
}

/// Returns what a program on a host is told, with its addresses over the first path. `folder` is that
/// of the run.
pub fn variables(
    paths: &[String],
    at: End,
    folder: &Path,
    certificates: &Certificates,
) -> Variables {
    let over = |path: usize, end| address(path, end, Family::V4).to_string();
    let each = paths.iter().enumerate();
    let each =
        each.map(|(index, name)| format!("{name}={}={}", over(index, at), over(index, other(at))));
    let mut variables = vec![
        ("KNEE_AT", host(at).to_owned()),
        ("KNEE_HERE", over(0, at)),
        ("KNEE_PEER", over(0, other(at))),
        ("KNEE_PATHS", each.collect::<Vec<_>>().join(" ")),
    ];
    variables.push(("KNEE_DIR", folder.to_string_lossy().into_owned()));
    variables.extend(certificates.variables());
    variables
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_end_is_told_its_own_addresses_first() {
        let paths = ["wifi".to_owned(), "lte".to_owned()];
        let certificates = Certificates::of_run(Path::new("/run"), String::new());
        let told = variables(&paths, End::Receiver, Path::new("/run"), &certificates);
        let (told, of_certificates) = told.split_at(5);
        assert_eq!(of_certificates, certificates.variables());
        let expected = [
            ("KNEE_AT", "receiver"),
            ("KNEE_HERE", "10.64.0.2"),
            ("KNEE_PEER", "10.64.0.1"),
            ("KNEE_PATHS", "wifi=10.64.0.2=10.64.0.1 lte=10.64.1.2=10.64.1.1"),
            ("KNEE_DIR", "/run"),
        ];
        assert_eq!(told, expected.map(|(name, value)| (name, value.to_owned())));
    }
}
