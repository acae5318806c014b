//! `knee serve`: receives the flows of another machine's runs.

use crate::arguments::Serve;
use crate::failure::{Ending, Failure};

/// Names the build that supports it.
#[cfg(not(feature = "bond"))]
pub fn serve(arguments: &Serve) -> Result<Ending, Failure> {
    let Serve { config: _, init: _ } = arguments;
    Err(Failure::Host(
        "this build of Knee cannot serve other machines".to_owned(),
        format!("install one that can: {}", crate::build::with("bond")),
    ))
}

/// Writes a configuration, or runs the server.
#[cfg(feature = "bond")]
pub fn serve(arguments: &Serve) -> Result<Ending, Failure> {
    match arguments.init {
        true => serving::init(&arguments.config),
        false => serving::run(&arguments.config),
    }
}

#[cfg(feature = "bond")]
mod serving {
    use crate::bond::{public_key, stopped};
    use crate::failure::{Ending, Failure};
    use crate::screen;
    use knee_bond::{BondError, key};
    use knee_hosts::{EXAMPLE, HostsError, ServeConfig, Server};
    use std::fs::OpenOptions;
    use std::io::Write;
    use std::path::Path;
    use tokio::task::LocalSet;

    impl From<HostsError> for Failure {
        fn from(error: HostsError) -> Failure {
            let advice = match &error {
                HostsError::Listen { .. } => "choose another address or port: listen = …",
                HostsError::Used(_) => "if the file is damaged, remove it: a new day begins then",
                _ => "knee serve --help shows the first steps",
            };
            Failure::Host(error.to_string(), advice.to_owned())
        }
    }

    pub fn init(path: &Path) -> Result<Ending, Failure> {
        let not_written = |error: std::io::Error| {
            let what = format!("cannot write {}: {error}", path.display());
            Failure::Usage(what, "name a file that does not exist".to_owned())
        };
        let mut file =
            OpenOptions::new().write(true).create_new(true).open(path).map_err(not_written)?;
        let secret = path.with_extension("key");
        let name = secret.file_name().unwrap_or_default().to_string_lossy();
        file.write_all(EXAMPLE.replace("serve.key", &name).as_bytes()).map_err(not_written)?;
        // A configuration without its key would only be in the way of the next attempt.
        let public = public_key(&secret).inspect_err(|_| _ = std::fs::remove_file(path))?;
        screen::say(&format!(
            "{} is to be edited: its last line is the key of the machine that sends. This \
             machine's public key, for that one's file:",
            path.display()
        ));
        screen::print(&format!("{}\n", key::to_text(&public)))?;
        Ok(Ending::Done)
    }

    pub fn run(path: &Path) -> Result<Ending, Failure> {
        let config = ServeConfig::read(path)?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(HostsError::System)?;
        LocalSet::new().block_on(&runtime, async {
            let server = Server::new(config).await?;
            let at = server.listen().map_err(HostsError::System)?;
            screen::say(&format!("Listening at TCP {at}. Ctrl-C stops."));
            let stopped = stopped().map_err(|error: BondError| Failure::from(error))?;
            server.run(stopped, screen::say).await;
            Ok(Ending::Done)
        })
    }
}
