//! Groups that name providers: their prefixes come from a table of networks.

use super::{GroupFile, PolicyFile};
use crate::Problem;
use ipnet::IpNet;
use std::collections::BTreeSet;
use std::ops::Range;

/// Returns the prefixes of a provider's clients; otherwise what to write instead.
pub type PrefixesOf = dyn Fn(&str) -> Result<Vec<IpNet>, String>;

/// Prefixes of the providers that each group names, by the provider's position.
pub(super) type OfProviders = Vec<Vec<(Range<usize>, Vec<IpNet>)>>;

pub(super) fn of_providers(
    file: &PolicyFile,
    networks: impl FnOnce(&str) -> Result<Box<PrefixesOf>, [String; 2]>,
    problems: &mut Vec<Problem>,
) -> OfProviders {
    let mut say = |span: Range<usize>, message: String, help: &str| {
        problems.push(Problem { span, message, help: help.to_string() });
    };
    let first = file.groups.iter().find_map(|group| group.providers.first());
    let table = match (&file.networks, first) {
        (None, None) => return Vec::new(),
        (Some(table), None) => {
            say(table.span(), "no group names a provider".into(), "remove the key");
            return Vec::new();
        }
        (None, Some(first)) => {
            let message = "the policy names no table of networks".to_string();
            say(first.span(), message, "add one above the groups: networks = \"networks.csv\"");
            return Vec::new();
        }
        (Some(table), Some(_)) => table,
    };
    let prefixes_of = match networks(table.get_ref()) {
        Ok(prefixes_of) => prefixes_of,
        Err([message, help]) => {
            say(table.span(), message, &help);
            return Vec::new();
        }
    };
    let mut of = |group: &GroupFile| {
        let mut names = BTreeSet::new();
        let mut found = Vec::new();
        for provider in &group.providers {
            let name = provider.get_ref();
            if !names.insert(name) {
                say(provider.span(), format!("{name} is named twice"), "name it once");
                continue;
            }
            match prefixes_of(name) {
                Ok(prefixes) => found.push((provider.span(), prefixes)),
                Err(help) => {
                    let message = format!("{} has no provider {name}", table.get_ref());
                    say(provider.span(), message, &help);
                }
            }
        }
        found
    };
    file.groups.iter().map(&mut of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Policy;

    fn with_table(text: &str) -> Result<Policy, Vec<Problem>> {
        Policy::parse_with(text, |table| match table {
            "networks.csv" => Ok(Box::new(|provider: &str| match provider {
                "One" => {
                    Ok(vec!["198.51.100.0/24".parse().unwrap(), "2001:db8::/32".parse().unwrap()])
                }
                _ => Err("did you mean One?".to_string()),
            })),
            other => Err([format!("cannot read {other}"), "check it".to_string()]),
        })
    }

    const PROVIDERS: &str = r#"
name = "edge"
networks = "networks.csv"
[[group]]
name = "mobile"
providers = ["One"]
prefixes = ["203.0.113.0/24"]
controller = "bbr"
"#;

    #[test]
    fn providers_stand_for_their_prefixes() {
        let policy = with_table(PROVIDERS).unwrap();
        let nets: Vec<String> = policy.groups[0].prefixes.iter().map(IpNet::to_string).collect();
        assert_eq!(nets, ["203.0.113.0/24", "198.51.100.0/24", "2001:db8::/32"]);
        let only = PROVIDERS.replace("prefixes = [\"203.0.113.0/24\"]\n", "");
        assert_eq!(with_table(&only).unwrap().groups[0].prefixes.len(), 2);
    }

    #[test]
    fn mistakes_with_providers_are_named() {
        let table = "networks = \"networks.csv\"\n";
        let other = "[[group]]\nname = \"x\"\nproviders = [\"One\"]\ncontroller = \"reno\"\n";
        for (right, wrong, place, part, help) in [
            ("\"One\"", "\"Won\"", "\"Won\"", "networks.csv has no provider Won", "mean One?"),
            ("[\"One\"]", "[\"One\", \"One\"]", "\"One\"", "named twice", "once"),
            ("[\"One\"]", "\"One\"", "\"One\"", "providers is a list", "[\"Example Net\"]"),
            (table, "", "\"One\"", "no table of networks", "networks = \"networks.csv\""),
            ("providers = [\"One\"]\n", "", "\"networks.csv\"", "no group names", "remove"),
            ("networks.csv", "none.csv", "\"none.csv\"", "cannot read none.csv", "check it"),
            (
                "203.0.113.0/24",
                "198.51.100.0/25",
                "\"198.51.100.0/25\"",
                "198.51.100.0/25 overlaps 198.51.100.0/24 of mobile",
                "one group",
            ),
            (
                "prefixes = [\"203.0.113.0/24\"]\ncontroller = \"bbr\"\n",
                &format!("controller = \"bbr\"\n{other}"),
                "\"One\"",
                "overlaps 198.51.100.0/24 of mobile",
                "one group",
            ),
        ] {
            let text = PROVIDERS.replacen(right, wrong, 1);
            assert_ne!(text, PROVIDERS);
            let problem = &with_table(&text).unwrap_err()[0];
            assert!(problem.message.contains(part), "{wrong}: {}", problem.message);
            assert!(problem.help.contains(help), "{wrong}: {}", problem.help);
            assert_eq!(&text[problem.span.clone()], place, "{wrong}");
        }
        let alone = &Policy::parse(PROVIDERS).unwrap_err()[0];
        assert!(alone.message.contains("networks.csv is another file"), "{alone:?}");
    }
}
