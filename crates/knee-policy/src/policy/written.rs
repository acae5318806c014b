//! A policy as text.

use super::{Policy, PolicyGroup, Stage, TABLE};
use crate::{Hint, Means};
use toml::{Table, Value};

impl Policy {
    /// Writes it as a policy file, without version, expiry and begin, which only a signed policy or
    /// a site has: [`Policy::parse`] reads the rest. `None` if its seed is too large for TOML.
    pub fn to_toml(&self) -> Option<String> {
        let mut file = Table::new();
        let number = |number: u64| i64::try_from(number).ok().map(Value::from);
        file.insert("name".into(), self.name.as_str().into());
        file.insert("seed".into(), number(self.seed)?);
        if self.table != TABLE {
            file.insert("table".into(), number(self.table.into())?);
        }
        if let Some(means) = self.actuator {
            let name = if means == Means::Routes { "route" } else { "bpf" };
            file.insert("actuator".into(), name.into());
        }
        if self.open_connections {
            file.insert("open_connections".into(), true.into());
        }
        if self.stage != Stage::default() {
            file.insert("stage".into(), Value::try_from(self.stage).ok()?);
        }
        if !self.accepts.is_empty() {
            let names: Vec<Value> = self.accepts.iter().map(|harm| harm.name().into()).collect();
            file.insert("accepts".into(), names.into());
        }
        let groups: Vec<Value> = self.groups.iter().map(group).collect();
        file.insert("group".into(), groups.into());
        toml::to_string(&file).ok()
    }
}

fn group(group: &PolicyGroup) -> Value {
    let mut file = Table::new();
    let PolicyGroup { name, prefixes, ports, controller, control, hold_out, .. } = group;
    let (window, paces, ecn) = (group.initial_window, group.paces, group.ecn);
    file.insert("name".into(), name.as_str().into());
    let prefixes: Vec<Value> = prefixes.iter().map(|net| net.to_string().into()).collect();
    file.insert("prefixes".into(), prefixes.into());
    if !ports.is_empty() {
        let ports: Vec<Value> = ports.iter().map(|port| i64::from(*port).into()).collect();
        file.insert("ports".into(), ports.into());
    }
    match &group.hint {
        Some(Hint::Mark(mark)) => file.insert("mark".into(), i64::from(*mark).into()),
        Some(Hint::Cgroup(name)) => file.insert("cgroup".into(), name.as_str().into()),
        None => None,
    };
    file.insert("controller".into(), controller.as_str().into());
    if let Some(window) = window {
        file.insert("initial_window".into(), i64::from(window).into());
    }
    for (key, is_set) in [("pacing", paces), ("ecn", ecn)] {
        if is_set {
            file.insert(key.into(), true.into());
        }
    }
    if let Some(control) = control {
        file.insert("control".into(), control.as_str().into());
    }
    file.insert("hold_out".into(), format!("{}%", 100.0 * hold_out).into());
    file.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        let text = "name = \"a \\\"b\\\"\"\nseed = 7\ntable = 300\nactuator = \"bpf\"\n\
            open_connections = true\nstage = \"canary\"\naccepts = [\"queueing-delay\", \"retransmissions\"]\n[[group]]\nname = \"one, port 443\"\n\
            prefixes = [\"192.0.2.0/24\", \"2001:db8::/32\"]\nports = [443]\ncontroller = \"bbr\"\n\
            control = \"cubic\"\ninitial_window = 32\n\
            pacing = true\nhold_out = \"7%\"\n[[group]]\nname = \"two\"\n\
            prefixes = [\"198.51.100.0/24\"]\ncontroller = \"reno\"\n\
            [[group]]\nname = \"three\"\nmark = 7\ncontroller = \"reno\"\n\
            [[group]]\nname = \"four\"\ncgroup = \"/a.slice/b\"\ncontroller = \"reno\"\n";
        for text in [
            text,
            "name = \"x\"\n[[group]]\nname = \"y\"\nprefixes = [\"::/0\"]\ncontroller = \"bbr\"\n\
             ecn = true\n",
        ] {
            let read = |text: &str| {
                let mut policy = Policy::parse(text).unwrap();
                policy.groups.iter_mut().for_each(|group| group.controller_span = 0..0);
                policy
            };
            let policy = read(text);
            assert_eq!(read(&policy.to_toml().unwrap()), policy);
        }
    }
}
