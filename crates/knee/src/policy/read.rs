//! Reading a policy, and the table of networks that it names.

use crate::arguments::Trust;
use crate::failure::Failure;
use crate::signed;
use ipnet::IpNet;
use knee_host::sysctl;
use knee_live::{LiveError, Providers};
use knee_policy::{FILE_BYTES_MAX, Policy, PrefixesOf};
use knee_scenario::{Errors, Problem, SourceText, read_file, read_text_file};
use knee_units::registry::nearest;
use std::path::Path;

/// Size limit of a table of networks, bytes.
const TABLE_MAX: u64 = 256 << 20;

/// Reports errors in a policy at their positions.
pub fn problems(path: &Path, text: &str, found: Vec<knee_policy::Problem>) -> Failure {
    let problem = |problem: knee_policy::Problem| Problem {
        source: 0,
        span: problem.span,
        message: problem.message,
        help: problem.help,
    };
    let problems = found.into_iter().map(problem).collect();
    let source = SourceText { name: path.display().to_string(), text: text.to_string() };
    Failure::Files(vec![Errors { problems, sources: vec![source] }])
}

/// Reads a policy that this kernel supports and whose signature is valid; `keep` records its
/// version.
pub fn read(path: &Path, trust: &Trust, keep: bool) -> Result<Policy, Failure> {
    let name = path.display().to_string();
    let text = read_text_file(path, FILE_BYTES_MAX).map_err(|error| {
        Failure::Usage(format!("cannot read {name}: {error}"), "name a policy".to_string())
    })?;
    let errors = |found| problems(path, &text, found);
    let folder = path.parent().unwrap_or(Path::new(""));
    let networks = |table: &str| -> Result<Box<PrefixesOf>, [String; 2]> {
        let providers = networks(&folder.join(table))?;
        Ok(Box::new(move |name: &str| prefixes_of(&providers, name)))
    };
    let policy = Policy::parse_with(&text, networks).map_err(errors)?;
    signed::check(&policy, &text, trust, keep)?;
    let available = sysctl("net.ipv4.tcp_available_congestion_control").unwrap_or_default();
    let named = policy.groups.iter().flat_map(|group| {
        let names = [Some(&group.controller), group.control.as_ref()];
        names.into_iter().flatten().map(|name| (group.controller_span.clone(), name))
    });
    let lacking = named.filter(|(_, name)| !available.split_whitespace().any(|one| one == *name));
    let lacking: Vec<knee_policy::Problem> = lacking
        .map(|(span, name)| knee_policy::Problem {
            span,
            message: format!("this kernel has no controller {name}"),
            help: format!("it has {available}{}", loads(name)),
        })
        .collect();
    if lacking.is_empty() { Ok(policy) } else { Err(errors(lacking)) }
}

/// How a controller gets into the kernel, if there is a way.
fn loads(name: &str) -> String {
    let ours = |one: &&&str| **one == name || one.strip_prefix("knee_") == Some(name);
    if let Some(ours) = knee_host::BPF_CONTROLLERS.iter().find(ours) {
        return match cfg!(feature = "bpf") {
            true => format!("; load this one with knee cc load {ours}"),
            false => "; a build of Knee with --features bpf can load this one".to_string(),
        };
    }
    match knee_cc::is_in_linux(name) {
        true => format!("; load this one with modprobe tcp_{name}"),
        false => String::new(),
    }
}

/// Reads a table of networks; otherwise what is wrong, and what to do instead.
pub fn networks(path: &Path) -> Result<Providers, [String; 2]> {
    let text = read_file(path, TABLE_MAX).map_err(|error| {
        [format!("cannot read {}: {error}", path.display()), "check it".to_string()]
    })?;
    Providers::read(path, &String::from_utf8_lossy(&text)).map_err(|error| {
        let what = error.to_string();
        match error {
            LiveError::Table { advice, .. } => [what, advice],
            _ => [what, "check it".to_string()],
        }
    })
}

/// Prefixes of a provider; otherwise the name that is meant, or where all names are.
fn prefixes_of(providers: &Providers, name: &str) -> Result<Vec<IpNet>, String> {
    let prefixes = providers.prefixes_of(name);
    if !prefixes.is_empty() {
        return Ok(prefixes);
    }
    let names = providers.names();
    Err(match nearest(name, names.iter().map(String::as_str)) {
        Some(near) if near == name => "all of its prefixes have parts of others only".to_string(),
        Some(near) => format!("did you mean {near}?"),
        None => "write a name of its column name, or an AS number, such as AS64496".to_string(),
    })
}
