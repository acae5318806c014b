//! The ground "hosts": `knee-hosts`.

use super::{Ended, Ground, GroundError, HOSTS, Judged, Output, Pace, Refusal};
use knee_hosts::{ConfigError, HostConfig, HostsError, Received};
use knee_record::{Control, Records, Verdict};
use knee_scenario::Scenario;
use std::path::{Path, PathBuf};

/// Part of the acknowledged bytes that the other machine may lack before the run is degraded.
const MISSING_DEGRADED: f64 = 0.01;

/// Linux TCP from this machine to another one.
#[derive(Clone, Debug, Default)]
pub struct Hosts {
    /// The other machine, and the file that names it.
    other: Option<(PathBuf, HostConfig)>,
}

impl Hosts {
    /// Reads the file about the other machine.
    ///
    /// # Errors
    /// The file cannot be read or used; the error names the line.
    pub fn to(file: &Path) -> Result<Hosts, ConfigError> {
        Ok(Hosts { other: Some((file.to_owned(), HostConfig::read(file)?)) })
    }

    fn other(&self) -> Result<&HostConfig, GroundError> {
        let missing = || {
            GroundError::Host(Refusal::new(
                "the ground hosts needs to know the other machine",
                "name its file: --on hosts --host HOST.toml",
            ))
        };
        self.other.as_ref().map(|(_, config)| config).ok_or_else(missing)
    }
}

impl Ground for Hosts {
    fn name(&self) -> &str {
        HOSTS
    }

    fn summary(&self) -> &str {
        "Linux's TCP to another machine, which runs knee serve"
    }

    fn pace(&self) -> Pace {
        Pace::Real
    }

    fn arguments(&self) -> Vec<String> {
        let file = self.other.iter().map(|(file, _)| file.to_string_lossy().into_owned());
        file.flat_map(|file| ["--host".to_string(), file]).collect()
    }

    fn check_host(&self) -> Result<(), GroundError> {
        self.other().map(drop)
    }

    fn check(&self, scenario: &Scenario) -> Result<(), GroundError> {
        Ok(knee_hosts::check(scenario, self.other()?)?)
    }

    fn run(
        &self,
        scenario: &Scenario,
        control: &Control,
        output: Output<'_>,
    ) -> Result<Ended, GroundError> {
        let (records, received) =
            knee_hosts::run_to(scenario, self.other()?, control, output.samples)?;
        let (verdict, reason) = verdict(&records, &received);
        Ok(Ended { records, judged: Some(Judged { health: None, verdict, reason }) })
    }
}

/// Compares what was acknowledged with what the other machine received.
fn verdict(records: &Records, received: &Received) -> (Verdict, String) {
    if let Some(reason) = &received.over {
        return (Verdict::Invalid, format!("the other machine ended the run: {reason}"));
    }
    let Some(arrived) = received.bytes else {
        let reason = "the other machine does not say what arrived";
        return (Verdict::Degraded, reason.to_owned());
    };
    let acked: u64 = records.flows.iter().map(|flow| flow.delivered_bytes).sum();
    if arrived as f64 >= acked as f64 * (1.0 - MISSING_DEGRADED) {
        return (Verdict::Valid, String::new());
    }
    let reason = format!(
        "{arrived} of {acked} acknowledged bytes arrived: something on the path acknowledges in \
         place of the other machine, so rates and RTTs are those to it"
    );
    (Verdict::Degraded, reason)
}

impl From<HostsError> for GroundError {
    fn from(error: HostsError) -> GroundError {
        let whole = error.to_string();
        let advice = match error {
            HostsError::Kernel(error) => return error.into(),
            HostsError::Samples(error) => return GroundError::Samples(error),
            HostsError::Panicked => return GroundError::Defect(whole),
            HostsError::Key(_) | HostsError::Tls(_) => "knee bond keys FILE makes a key",
            HostsError::Used(_) => "remove the file if it is damaged",
            HostsError::Listen { .. } => "choose another port",
            HostsError::Unreachable { .. } => {
                "see that knee serve runs there, and that its TCP port can be reached"
            }
            HostsError::Unknown { .. } => {
                "see that host_key is what knee bond keys prints there, and that its configuration \
                 has what knee bond keys prints for this machine's key"
            }
            HostsError::Refused { .. } => "its configuration for knee serve says what is allowed",
            HostsError::Lost { .. } => "see what knee serve says there, and run it again",
            HostsError::System(_) => "check the limits on memory, files and processes",
        };
        GroundError::Host(Refusal::new(whole, advice))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_record::FlowRecord;

    #[test]
    fn what_acknowledges_in_place_of_the_other_machine_degrades_a_run() {
        let flow = FlowRecord { delivered_bytes: 1_000_000, ..FlowRecord::default() };
        let records = Records { flows: vec![flow.clone(), flow], ..Records::default() };
        let after = |bytes| verdict(&records, &Received { bytes, over: None });
        assert_eq!(after(Some(2_000_000)), (Verdict::Valid, String::new()));
        assert_eq!(after(Some(1_985_000)).0, Verdict::Valid);
        let (degraded, why) = after(Some(1_500_000));
        assert!(degraded == Verdict::Degraded && why.contains("1500000 of 2000000"), "{why}");
        assert_eq!(after(None).0, Verdict::Degraded);
        let over = Some("too much".to_owned());
        let (invalid, why) = verdict(&records, &Received { bytes: Some(2_000_000), over });
        assert!(invalid == Verdict::Invalid && why.contains("too much"), "{why}");
    }
}
