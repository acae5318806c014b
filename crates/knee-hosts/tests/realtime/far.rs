//! A server on a thread of its own, and what a client needs to reach it.

use knee_bond::config::{ClientOf, Pins};
use knee_bond::key;
use knee_bond::request::Target;
use knee_hosts::{HostConfig, LimitsConfig, ServeConfig, Server};
use knee_quic::PublicKey;
use knee_scenario::{Loader, Scenario, Source, parse};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::{self, JoinHandle};
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio::task::LocalSet;

struct NoFiles;

impl Loader for NoFiles {
    fn load(&self, name: &str) -> Result<Vec<u8>, String> {
        Err(format!("{name}: no files here"))
    }
}

pub fn scenario(text: &str) -> Scenario {
    let source = Source { name: "test.toml", loader: &NoFiles };
    parse(text, &source, &[]).unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// A running server; it ends when this is dropped.
pub struct Far {
    pub at: SocketAddr,
    pub key: PublicKey,
    folder: Option<TempDir>,
    lines: Arc<Mutex<Vec<String>>>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Far {
    /// Starts a server on loopback.
    pub fn serve(limits: LimitsConfig) -> Far {
        Far::serve_at(SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0), limits, || {})
    }

    /// Starts a server on a thread that first does `prepare`.
    pub fn serve_at(
        listen: SocketAddr,
        limits: LimitsConfig,
        prepare: impl FnOnce() + Send + 'static,
    ) -> Far {
        Far::serve_in(tempfile::tempdir().unwrap(), listen, limits, prepare)
    }

    /// Starts a server in this folder, with the keys that a former one has there.
    pub fn serve_in(
        folder: TempDir,
        listen: SocketAddr,
        limits: LimitsConfig,
        prepare: impl FnOnce() + Send + 'static,
    ) -> Far {
        let file = |name: &str| folder.path().join(name);
        let key = |name: &str| match file(name).exists() {
            true => key::read(&file(name)).unwrap().public(),
            false => key::generate(&file(name)).unwrap(),
        };
        let (used, client) = (file("used.json"), key("lab.key"));
        let key = key("serve.key");
        let client = ClientOf { name: "lab".to_owned(), key: Pins(vec![client]) };
        let config = ServeConfig { listen, key: file("serve.key"), client: vec![client], limits };
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let (told, said) = (mpsc::channel(), lines.clone());
        let (stop, stopped) = oneshot::channel::<()>();
        let thread = thread::spawn(move || {
            prepare();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            LocalSet::new().block_on(&runtime.unwrap(), async {
                let server = Server::keeping(config, used).await.unwrap();
                told.0.send(server.listen().unwrap()).unwrap();
                let stopped = async { stopped.await.unwrap_or_default() };
                let say = move |line: &str| said.lock().unwrap().push(line.to_owned());
                server.run(stopped, say).await;
            });
        });
        let at = told.1.recv().unwrap();
        Far { at, key, folder: Some(folder), lines, stop: Some(stop), thread: Some(thread) }
    }

    /// What the client that the server knows has in its file.
    pub fn host(&self) -> HostConfig {
        HostConfig {
            host: Target::Address(self.at.ip(), self.at.port()),
            host_key: Pins(vec![self.key]),
            key: self.file("lab.key"),
        }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.as_ref().unwrap().path().join(name)
    }

    /// What the server has said.
    pub fn said(&self) -> String {
        self.lines.lock().unwrap().join("\n")
    }

    /// Ends the server, and returns its folder.
    pub fn end(mut self) -> TempDir {
        self.folder.take().unwrap()
    }

    /// Tells the server to stop, without waiting for it.
    pub fn stop(&mut self) {
        self.stop = None;
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        self.stop = None;
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(thread::panicking() || ended.is_none_or(|ended| ended.is_ok()));
    }
}

/// A scenario of some flows over one link. On loopback the link is not there.
pub fn flows(duration: &str, flows: &str) -> Scenario {
    scenario(&format!(
        "name = \"test\"\nduration = \"{duration}\"\n\
         [link.wire]\nrate = \"10 Mbit/s\"\ndelay = \"10 ms\"\n\
         [path.main]\nforward = [\"wire\"]\nreverse_delay = \"10 ms\"\n{flows}"
    ))
}

pub const BULK: &str = "[[flow]]\nname = \"flow\"\ncc = \"cubic\"\n";
