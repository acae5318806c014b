//! `knee bond`: several links as one.

use crate::arguments::Bond;
use crate::failure::{Ending, Failure};

/// Names the build that supports it.
#[cfg(not(feature = "bond"))]
pub fn bond(_arguments: &Bond) -> Result<Ending, Failure> {
    Err(Failure::Host(
        "this build of Knee cannot bond links".to_owned(),
        format!("install one that can: {}", crate::build::with("bond")),
    ))
}

/// Creates keys, or runs or shows an endpoint.
#[cfg(feature = "bond")]
pub fn bond(arguments: &Bond) -> Result<Ending, Failure> {
    use crate::arguments::BondAction;
    use knee_bond::record::RecordSettings;
    match &arguments.action {
        BondAction::Keys { file } => bonding::keys(file),
        BondAction::Serve { config } => bonding::serve(config),
        BondAction::Connect { config, transparent, forward } => {
            bonding::connect(config, *transparent, forward)
        }
        BondAction::Record { out, socket, time, of, names } => {
            let settings = RecordSettings {
                socket: socket.clone(),
                peer: of.clone(),
                out: out.clone(),
                names: *names,
                arguments: std::env::args().collect(),
            };
            bonding::record(&settings, *time)
        }
        BondAction::Doctor { config, print } => bonding::doctor(config, print.format()),
        BondAction::Status { socket, watch, print } => {
            bonding::status(socket.as_deref(), *watch, print.format())
        }
    }
}

#[cfg(feature = "bond")]
pub use bonding::{public_key, stopped};

#[cfg(feature = "bond")]
mod bonding {
    use crate::arguments::Format;
    use crate::failure::{Ending, Failure};
    use crate::print::Print;
    use crate::screen;
    use knee_bond::config::newer;
    use knee_bond::key::PublicKey;
    use knee_bond::record::{RecordError, RecordSettings, Recorded, record as record_end};
    use knee_bond::request::Malformed;
    use knee_bond::status::{
        BundleStatus, LinkStatus, Status, Unread, ask, says_more, socket_paths, unread,
    };
    use knee_bond::{
        BondError, Client, ClientConfig, ConfigError, Forward, Server, ServerConfig, Tried,
        check_transparent, key, try_links,
    };
    use knee_present::{Cell, Document, Table, Tone, number, text};
    use knee_record::Unit;
    use knee_units::Time;
    use listenfd::ListenFd;
    use sd_notify::NotifyState;
    use std::io;
    use std::path::{Path, PathBuf};
    use std::time::Duration;
    use tokio::signal::unix::{SignalKind, signal};
    use tokio::task::{LocalSet, spawn_local};

    /// Period over which rates are measured.
    const WATCHED: Duration = Duration::from_secs(1);
    /// Rate below which links share nothing but what keeps them open, bit/s.
    const LEAST_SHARED: f64 = 10e3;

    impl From<ConfigError> for Failure {
        fn from(error: ConfigError) -> Failure {
            let advice = "see docs/bond.md, or docs/hosts.md for knee serve".to_owned();
            Failure::Usage(error.to_string(), advice)
        }
    }

    impl From<RecordError> for Failure {
        fn from(error: RecordError) -> Failure {
            let advice = "knee bond record --help shows examples".to_owned();
            Failure::Host(error.to_string(), advice)
        }
    }

    impl From<BondError> for Failure {
        fn from(error: BondError) -> Failure {
            Failure::Host(error.to_string(), "knee bond --help shows the first steps".to_owned())
        }
    }

    pub fn keys(file: &Path) -> Result<Ending, Failure> {
        let public = public_key(file)?;
        screen::print(&format!("{}\n", key::to_text(&public)))?;
        Ok(Ending::Done)
    }

    /// Returns the public key of a file, which is made if it does not exist.
    pub fn public_key(file: &Path) -> Result<PublicKey, Failure> {
        match key::generate(file) {
            Ok(public) => Ok(public),
            Err(key::KeyFileError::Exists(_)) => {
                Ok(key::read(file).map_err(BondError::from)?.public())
            }
            Err(error) => Err(BondError::from(error).into()),
        }
    }

    pub fn serve(path: &Path) -> Result<Ending, Failure> {
        let config = ServerConfig::read(path)?;
        run(async {
            let mut handed = ListenFd::from_env();
            let socket = handed.take_udp_socket(0).map_err(|source| {
                let at = "the socket that the service manager handed over".to_owned();
                BondError::Listen { at, source }
            })?;
            let server = Server::new(config, socket).await?;
            screen::say(&format!("Listening at UDP {}. Ctrl-C stops.", server.listen()));
            let stopped = stopped()?;
            let reloader = server.reloader();
            on_hangup(path, move |path| {
                let config = ServerConfig::read_from(&newer(path), path);
                let config = config.map_err(|error| error.to_string())?;
                key::read(&config.key).map_err(|error| error.to_string())?;
                // Fails if the server is about to end.
                let _ = reloader.send(config);
                Ok(())
            })?;
            tell_manager();
            server.run(stopped, screen::say).await
        })?;
        Ok(Ending::Done)
    }

    pub fn connect(path: &Path, transparent: bool, forward: &[String]) -> Result<Ending, Failure> {
        let mut config = ClientConfig::read(path)?;
        for text in forward {
            let wrong = |error: Malformed| {
                let advice = "see knee bond connect --help".to_owned();
                Failure::Usage(format!("--forward {text}: {error}"), advice)
            };
            config.forward.push(Forward::parse(text).map_err(wrong)?);
        }
        if transparent {
            config.take_all(path)?;
        }
        let (server, at) = (config.server.clone(), config.listen);
        if let Some(warning) = config.warning(path) {
            screen::say(&format!("Warning: {warning}"));
        }
        run(async {
            let client = Client::new(config).await?;
            screen::say(&format!(
                "Connecting to {server}. SOCKS5 and HTTP CONNECT at {at}. Ctrl-C stops."
            ));
            let stopped = stopped()?;
            let reloader = client.reloader();
            on_hangup(path, move |path| {
                let config = ClientConfig::read_from(&newer(path), path);
                let config = config.map_err(|error| error.to_string())?;
                key::read(&config.key).map_err(|error| error.to_string())?;
                screen::say("Keys read again, for links that begin from now on.");
                // Fails if the client is about to end.
                let _ = reloader.send(config);
                Ok(())
            })?;
            tell_manager();
            client.run(stopped, screen::say).await
        })?;
        Ok(Ending::Done)
    }

    pub fn record(settings: &RecordSettings, time: Option<Time>) -> Result<Ending, Failure> {
        let out = settings.out.display();
        let recorded = run(async {
            let stopped = stopped()?;
            screen::say("Recording. Ctrl-C stops it.");
            let over = async {
                match time {
                    Some(time) => {
                        tokio::time::sleep(Duration::from_nanos(time.as_nanos())).await;
                    }
                    None => std::future::pending().await,
                }
            };
            let stop = async {
                tokio::select! {
                    () = stopped => {}
                    () = over => {}
                }
            };
            Ok(record_end(settings, stop).await)
        })??;
        let Recorded { seconds, links, bytes, decisions, decisions_lost } = recorded;
        let lost = match decisions_lost {
            0 => String::new(),
            lost => format!(" ({lost} more were dropped)"),
        };
        let (seconds, bytes) = (Unit::Seconds.show(seconds), Unit::Bytes.show(bytes as f64));
        screen::say(&format!(
            "{out}: {seconds}, {links} links, {bytes}, {decisions} decisions{lost}."
        ));
        screen::say(&format!("knee run {out}/scenario.toml replays the links."));
        Ok(Ending::Done)
    }

    pub fn doctor(config: &Path, format: Format) -> Result<Ending, Failure> {
        let config = ClientConfig::read(config)?;
        let server = config.server.to_string();
        screen::say(&format!("Testing the links to {server}, for at most 11 s."));
        let tried = run(try_links(&config))?;
        let working = tried.iter().filter(|tried| tried.outcome.is_ok()).count();
        let heads =
            [text("link"), text("state"), number("RTT"), number("packets of"), text("problem")];
        let mut table = Table::new(heads).called("links");
        let mut rows = Vec::new();
        for Tried { interface, outcome } in &tried {
            let (tone, state) = match outcome {
                Ok(_) => (Tone::Good, "works"),
                Err(_) => (Tone::Bad, "does not work"),
            };
            let link = outcome.as_ref().ok();
            table.row_in(
                tone,
                [
                    Cell::from(interface.as_str()),
                    state.into(),
                    Cell::figure(Unit::Seconds, link.map(|link| link.rtt_ms / 1e3)),
                    Cell::figure(Unit::Bytes, link.map(|link| f64::from(link.packet_bytes))),
                    outcome.as_ref().err().map_or("", String::as_str).into(),
                ],
            );
            let why = outcome.as_ref().err();
            rows.push(serde_json::json!({ "link": interface, "status": link, "problem": why }));
        }
        let mut document = Document::default();
        if tried.is_empty() {
            document = document.said(
                "No interface has a default route: connect one, or name the links in the \
                 configuration, such as link = [{ interface = \"eth0\" }].",
            );
        } else {
            document = document.table(table);
            let said = format!("{working} of {} links to {server} work.", tried.len());
            document = document.said(said);
        }
        let schema = "knee-bond-doctor/1";
        let problem = check_transparent(&config).err().map(|error| error.to_string());
        if let Some(problem) = &problem {
            document = document.said(format!("The transparent mode does not work: {problem}."));
        }
        let json = serde_json::json!({
            "schema": schema, "server": server, "links": rows, "transparent_problem": problem,
        });
        document.print(format, &json)?;
        let all = working == tried.len() && working > 0 && problem.is_none();
        Ok(if all { Ending::Done } else { Ending::Differs })
    }

    /// Runs an endpoint on this thread.
    fn run<T>(end: impl Future<Output = Result<T, BondError>>) -> Result<T, Failure> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(BondError::Thread)?;
        let result = LocalSet::new().block_on(&runtime, end)?;
        // Does not wait for a pending name resolution.
        runtime.shutdown_background();
        Ok(result)
    }

    /// Notifies a service manager that the endpoint is ready, then periodically that it is alive
    /// (sd_notify(3)). Does nothing without a manager.
    fn tell_manager() {
        // An unreachable manager counts as none.
        let _ = sd_notify::notify(&[NotifyState::Ready]);
        if let Some(period) = sd_notify::watchdog_enabled() {
            spawn_local(async move {
                let mut tick = tokio::time::interval(period / 2);
                loop {
                    tick.tick().await;
                    let _ = sd_notify::notify(&[NotifyState::Watchdog]);
                }
            });
        }
    }

    /// Reads the keys again at each SIGHUP; if that fails, everything stays as it is.
    fn on_hangup(
        path: &Path,
        reload: impl Fn(&Path) -> Result<(), String> + 'static,
    ) -> Result<(), BondError> {
        let mut hangup = signal(SignalKind::hangup()).map_err(BondError::Thread)?;
        let path = path.to_owned();
        spawn_local(async move {
            while hangup.recv().await.is_some() {
                if let Err(error) = reload(&path) {
                    screen::say(&format!("The keys are as before: {error}."));
                }
            }
        });
        Ok(())
    }

    /// Completes at Ctrl-C or at a service manager's SIGTERM.
    pub fn stopped() -> Result<impl Future<Output = ()>, BondError> {
        let mut interrupt = signal(SignalKind::interrupt()).map_err(BondError::Thread)?;
        let mut terminate = signal(SignalKind::terminate()).map_err(BondError::Thread)?;
        Ok(async move {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => {}
            }
            let _ = sd_notify::notify(&[NotifyState::Stopping]);
        })
    }

    #[expect(clippy::disallowed_methods, reason = "a rate needs two looks")]
    pub fn status(socket: Option<&Path>, watch: bool, format: Format) -> Result<Ending, Failure> {
        let sockets: Vec<PathBuf> = match socket {
            Some(socket) => vec![socket.to_owned()],
            None => ["client", "server"].into_iter().flat_map(socket_paths).collect(),
        };
        let mut found: Vec<(&PathBuf, Status)> = Vec::new();
        let mut problem: Option<(&PathBuf, io::Error)> = None;
        for path in &sockets {
            match ask(path) {
                Ok(status) => found.push((path, status)),
                Err(error) => {
                    if says_more(&error, problem.as_ref().map(|(_, error)| error)) {
                        problem = Some((path, error));
                    }
                }
            }
        }
        if let Some((path, error)) = problem.filter(|_| found.is_empty()) {
            if error.kind() == io::ErrorKind::PermissionDenied {
                let what = format!("the knee bond at {} belongs to another user", path.display());
                return Err(Failure::Host(what, "run this with sudo".to_owned()));
            }
            let named: Vec<String> =
                sockets.iter().map(|path| path.display().to_string()).collect();
            let what = format!("no running knee bond found at {}: {error}", named.join(" or "));
            let advice = "start one (knee bond connect), or name its socket with --socket";
            return Err(Failure::Host(what, advice.to_owned()));
        }
        loop {
            std::thread::sleep(WATCHED);
            let mut document = Document::default();
            let mut all = Vec::new();
            let mut stopped = 0;
            for (path, before) in &mut found {
                let now = ask(path).unwrap_or_else(|_| {
                    stopped += 1;
                    before.clone()
                });
                document = document.then(shown(before, &now));
                all.push(now.clone());
                *before = now;
            }
            if watch && stopped == found.len() {
                screen::say("knee bond has stopped.");
                return Ok(Ending::Done);
            }
            if watch {
                screen::clear()?;
            }
            let json = serde_json::json!({ "schema": "knee-bond-status/1", "ends": all });
            document.print(format, &json)?;
            if !watch {
                return Ok(Ending::Done);
            }
        }
    }

    fn shown(before: &Status, now: &Status) -> Document {
        let verb = if now.role == "client" { "takes connections at" } else { "listens at" };
        let (role, listen) = (&now.role, &now.listen);
        let since = Unit::Seconds.show(now.running_s);
        let said = format!("This {role} {verb} {listen}. It has run for {since}.");
        let figures = ["in", "out", "share", "RTT", "loss", "packets of"].map(number);
        let heads = ["peer", "link", "state"].map(text).into_iter().chain(figures);
        let mut table = Table::new(heads).called("links");
        let seconds = (now.running_s - before.running_s).max(1e-3);
        for bundle in &now.bundles {
            let is_it =
                |old: &&BundleStatus| (&old.peer, old.number) == (&bundle.peer, bundle.number);
            let earlier = before.bundles.iter().find(is_it);
            let rate = |link: &LinkStatus, count: fn(&LinkStatus) -> u64| {
                let earlier = earlier?.links.iter().find(|old| old.name == link.name)?;
                // The counters of a restarted link begin at zero.
                let bytes = count(link).checked_sub(count(earlier))?;
                Some(bytes as f64 * 8.0 / seconds)
            };
            let both = |link: &LinkStatus| {
                let received = rate(link, |link| link.received_bytes)?;
                Some(received + rate(link, |link| link.sent_bytes)?)
            };
            let all: f64 = bundle.links.iter().filter_map(both).sum();
            for link in &bundle.links {
                let share = both(link).filter(|_| all >= LEAST_SHARED).map(|rate| rate / all);
                let (state, tone) = state(link);
                table.row_in(
                    tone,
                    [
                        Cell::from(bundle.peer.as_str()),
                        link.name.as_str().into(),
                        state.into(),
                        Cell::figure(Unit::BitsPerSecond, rate(link, |link| link.received_bytes)),
                        Cell::figure(Unit::BitsPerSecond, rate(link, |link| link.sent_bytes)),
                        Cell::figure(Unit::Fraction, share),
                        Cell::figure(Unit::Seconds, Some(link.rtt_ms / 1e3)),
                        Cell::figure(Unit::Fraction, part(link.lost_packets, link.sent_packets)),
                        Cell::figure(Unit::Bytes, Some(f64::from(link.packet_bytes))),
                    ],
                );
            }
        }
        let mut document = Document::default().said(said);
        if now.bundles.iter().any(|bundle| !bundle.links.is_empty()) {
            document = document.table(table);
        } else if now.role == "client" {
            document = document.said("No link to the server is up.");
        } else {
            document = document.said("No client is connected.");
        }
        for link in now.bundles.iter().flat_map(|bundle| &bundle.links) {
            if let Some(why) = &link.left_out {
                document = document.said(format!("{} is left out: {why}.", link.name));
            }
        }
        for bundle in &now.bundles {
            if let Some(Unread { connections, bytes }) = bundle.unread {
                let nobody = if now.role == "client" { "no program" } else { "no target" };
                let said = unread(connections, bytes, nobody);
                document = document.said(format!("{}: {said}.", bundle.peer));
            }
            if bundle.waiting_for_peer > 0 {
                document = document.said(format!(
                    "{}: {} connections wait because nobody reads them at the other end.",
                    bundle.peer, bundle.waiting_for_peer
                ));
            }
        }
        if now.transparent {
            document = document.said("It diverts all traffic of this machine.");
        }
        let bytes = |count: u64| Unit::Bytes.show(count as f64);
        for cap in &now.caps {
            document = document.said(format!(
                "{}: {} of {} since {}, reset on {}.",
                cap.name,
                bytes(cap.used_bytes),
                bytes(cap.cap_bytes),
                cap.since,
                cap.resets
            ));
        }
        for carried in &now.carried {
            document = document.said(format!(
                "{}: {} of {} in its 24 hours.",
                carried.client,
                bytes(carried.used_bytes),
                bytes(carried.limit_bytes)
            ));
        }
        for unused in &now.unused {
            document = document.said(format!("{} is not used: {}.", unused.name, unused.why));
        }
        document
    }

    fn part(of: u64, all: u64) -> Option<f64> {
        (all > 0).then(|| of as f64 / all as f64)
    }

    fn state(link: &LinkStatus) -> (&'static str, Tone) {
        match (link.silent, &link.left_out, link.backup) {
            (true, ..) => ("silent", Tone::Bad),
            (false, Some(_), _) => ("left out", Tone::Bad),
            (false, None, true) => ("waits", Tone::Neutral),
            (false, None, false) => ("up", Tone::Neutral),
        }
    }
}
