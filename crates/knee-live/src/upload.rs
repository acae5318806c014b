//! Stores completed files in an object store, from a thread of its own, so that a store that does
//! not answer delays nothing.

use crate::queue::{Queue, Stored};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::buffered::BufWriter;
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Place;
use object_store::{ClientConfigKey, ObjectStore, ObjectStoreExt, ObjectStoreScheme, RetryConfig};
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::runtime::Builder;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use url::Url;

/// Larger files are stored in parts of this size, one at a time, to bound the memory; stores demand
/// no less.
const PART_BYTES: usize = 5 << 20;
/// Size of a reading from a file.
const PIECE_BYTES: usize = 256 << 10;
/// Maximum duration of a request, unless the environment sets one: a part needs 0.14 Mbit/s. The
/// crate's own, 30 s, needs 1.4 Mbit/s.
const REQUEST: &str = "5m";
/// Pauses after failed attempts: from the first, doubled up to the second.
const PAUSE: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(300);

/// Why files cannot be stored at a place.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// Not the address of a place where files can be stored.
    #[error("{text:?} is not a place for files: {problem}")]
    Address {
        /// The address.
        text: String,
        /// The problem.
        problem: String,
    },
    /// The store's settings, which are in the environment.
    #[error("cannot store files at {text}: {source}")]
    Settings {
        /// The address.
        text: String,
        /// The problem.
        source: object_store::Error,
    },
    /// Error of the system.
    #[error("cannot start to store files: {0}")]
    System(#[from] io::Error),
}

/// What the thread is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Go,
    /// Not to pause, since the end is near.
    Hurry,
    Stop,
}

/// A thread that stores the files of a queue until it is dropped.
pub struct Upload {
    queue: Queue,
    order: watch::Sender<Order>,
    thread: Option<JoinHandle<()>>,
}

/// A store, and the folder in it.
#[derive(Clone)]
struct Target {
    store: Arc<dyn ObjectStore>,
    folder: Place,
}

/// Checks an address and the environment's settings for it.
///
/// # Errors
///
/// As [`Upload::begin`].
pub fn upload_place(address: &str) -> Result<(), UploadError> {
    Target::open(address, "").map(|_| ())
}

/// Name of this host.
///
/// # Errors
///
/// If the system does not say it.
pub fn upload_host() -> Result<String, UploadError> {
    Ok(std::fs::read_to_string("/proc/sys/kernel/hostname")?.trim().to_string())
}

impl Upload {
    /// Starts to store the files of `queue` in the folder `host=HOST` of `address`: `s3://`,
    /// `gs://`, `az://` with bucket and path, or `file://`. Credentials and settings come from the
    /// environment, as the crate `object_store` reads them.
    ///
    /// # Errors
    ///
    /// If the address is not one of these, or the environment's settings contradict each other.
    pub fn begin(address: &str, host: &str, queue: Queue) -> Result<Upload, UploadError> {
        let target = Target::open(address, host)?;
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let (order, orders) = watch::channel(Order::Go);
        let waiting = queue.clone();
        let thread = thread::Builder::new().name("upload".to_string()).spawn(move || {
            runtime.block_on(async move {
                let mut stop = orders.clone();
                tokio::select! {
                    () = store_all(&target, &waiting, orders) => {}
                    _ = stop.wait_for(|order| *order == Order::Stop) => {}
                }
            });
            // A call of the system that does not return must not delay the end.
            runtime.shutdown_background();
        })?;
        Ok(Upload { queue, order, thread: Some(thread) })
    }

    /// How far it is.
    pub fn progress(&self) -> Stored {
        self.queue.progress()
    }

    /// Tries once more to store what waits, for at most `patience`, then stops.
    #[expect(clippy::disallowed_methods, reason = "it waits for a store")]
    pub fn finish(self, patience: Duration) -> Stored {
        const LOOK: Duration = Duration::from_millis(20);
        let mut left = patience;
        self.order.send_replace(Order::Hurry);
        while self.queue.progress().waiting > 0 && !left.is_zero() {
            thread::sleep(LOOK.min(left));
            left = left.saturating_sub(LOOK);
        }
        let queue = self.queue.clone();
        drop(self);
        queue.progress()
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.order.send_replace(Order::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Target {
    fn open(address: &str, host: &str) -> Result<Target, UploadError> {
        let wrong = |problem: String| UploadError::Address { text: address.to_string(), problem };
        let url: Url =
            address.parse().map_err(|error: url::ParseError| wrong(error.to_string()))?;
        if url.password().is_some() || url.query().is_some() || url.fragment().is_some() {
            // They may be secrets, so they are not repeated.
            let host = url.host_str().unwrap_or_default();
            let text = format!("{}://{host}{}", url.scheme(), url.path());
            let problem = "it had a password, a query or a fragment; credentials belong into the \
                           environment";
            return Err(UploadError::Address { text, problem: problem.to_string() });
        }
        let (scheme, folder) =
            ObjectStoreScheme::parse(&url).map_err(|error| wrong(error.to_string()))?;
        let settings = |source| UploadError::Settings { text: address.to_string(), source };
        // Another part of this program may have set one already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // Attempts are repeated here, so that each is counted and can be reported.
        let retry = RetryConfig { max_retries: 0, ..RetryConfig::default() };
        let store: Arc<dyn ObjectStore> = match scheme {
            ObjectStoreScheme::AmazonS3 => {
                Arc::new(amazon().with_url(address).with_retry(retry).build().map_err(settings)?)
            }
            ObjectStoreScheme::GoogleCloudStorage => {
                Arc::new(google().with_url(address).with_retry(retry).build().map_err(settings)?)
            }
            ObjectStoreScheme::MicrosoftAzure => {
                Arc::new(azure().with_url(address).with_retry(retry).build().map_err(settings)?)
            }
            ObjectStoreScheme::Local => Arc::new(LocalFileSystem::new()),
            _ => {
                return Err(wrong("it is of no known kind".to_string()));
            }
        };
        Ok(Target { store, folder: folder.join(format!("host={host}")) })
    }

    /// Stores a file. Returns the bytes that were transferred; none if it was there already.
    async fn store(&self, path: &Path) -> io::Result<Option<u64>> {
        let mut file = File::open(path)?;
        let len = file.metadata()?.len();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let place = self.folder.clone().join(name.as_ref());
        // A store may permit writing but not looking.
        if self.store.head(&place).await.is_ok_and(|found| found.size == len) {
            return Ok(None);
        }
        let store = self.store.clone();
        let mut writer = BufWriter::with_capacity(store, place, PART_BYTES).with_max_concurrency(1);
        if let Err(error) = copy(&mut file, &mut writer).await {
            // The store would keep the parts that arrived.
            let _ = writer.abort().await;
            return Err(error);
        }
        writer.shutdown().await?;
        Ok(Some(len))
    }
}

fn amazon() -> AmazonS3Builder {
    let key = AmazonS3ConfigKey::Client(ClientConfigKey::Timeout);
    AmazonS3Builder::from_env().with_config(key, or_request("AWS_TIMEOUT"))
}

fn google() -> GoogleCloudStorageBuilder {
    let key = GoogleConfigKey::Client(ClientConfigKey::Timeout);
    GoogleCloudStorageBuilder::from_env().with_config(key, or_request("GOOGLE_TIMEOUT"))
}

fn azure() -> MicrosoftAzureBuilder {
    let key = AzureConfigKey::Client(ClientConfigKey::Timeout);
    MicrosoftAzureBuilder::from_env().with_config(key, or_request("AZURE_TIMEOUT"))
}

/// A variable of the environment, or the default.
fn or_request(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| REQUEST.to_string())
}

async fn copy(file: &mut File, writer: &mut BufWriter) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece)? {
            0 => return Ok(()),
            read => writer.write_all(&piece[..read]).await?,
        }
    }
}

/// Stores what waits, the oldest first. After a failure it pauses and goes on with the next file, so
/// that one which cannot be stored does not hold up the others.
async fn store_all(target: &Target, queue: &Queue, mut orders: watch::Receiver<Order>) {
    let mut pause = PAUSE;
    let mut failed = None;
    loop {
        orders.mark_unchanged();
        let Some((stamp, path)) = queue.next(failed.as_ref()) else {
            // An observer adds files without an order.
            let _ = timeout(PAUSE, orders.changed()).await;
            continue;
        };
        match target.store(&path).await {
            Ok(bytes) => {
                queue.stored(stamp, path, bytes);
                pause = PAUSE;
                failed = None;
            }
            Err(error) if is_gone(&error, &path) => queue.gone(&(stamp, path)),
            Err(error) => {
                queue.failed(error.to_string());
                tokio::select! {
                    () = sleep(spread(pause, &stamp)) => pause = (pause * 2).min(PAUSE_MAX),
                    _ = orders.changed() => pause = PAUSE,
                }
                failed = Some((stamp, path));
            }
        }
    }
}

fn is_gone(error: &io::Error, path: &Path) -> bool {
    error.kind() == ErrorKind::NotFound && !path.exists()
}

/// Between half of a pause and all of it: hosts that failed together do not return together. Time
/// stamps of files are to the millisecond.
fn spread(pause: Duration, stamp: &str) -> Duration {
    let digits = stamp.trim_end_matches('Z').rsplit('.').next().unwrap_or_default();
    let part: u32 = digits.parse().unwrap_or(0);
    pause / 2 + pause / 2 * part.min(999) / 999
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// What the stores' builders were told, in this process and in one with another environment.
    #[test]
    fn requests_have_time() {
        let key = ClientConfigKey::Timeout;
        let times = [
            amazon().get_config_value(&AmazonS3ConfigKey::Client(key)),
            google().get_config_value(&GoogleConfigKey::Client(key)),
            azure().get_config_value(&AzureConfigKey::Client(key)),
        ];
        let variables = ["AWS_TIMEOUT", "GOOGLE_TIMEOUT", "AZURE_TIMEOUT"];
        let set = variables.map(|name| std::env::var(name).ok());
        assert_eq!(times, set.clone().map(|set| set.or(Some("5m".to_string()))));
        if set == [None, None, None] {
            let mut other = Command::new(std::env::current_exe().unwrap());
            other.args(["--exact", "upload::tests::requests_have_time"]);
            let output = other.envs(variables.map(|name| (name, "30s"))).output().unwrap();
            let said = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && said.contains("1 passed"), "{said}");
        }
    }

    #[test]
    fn pauses_are_spread() {
        let of = |stamp: &str| spread(Duration::from_secs(8), stamp).as_millis();
        assert_eq!(of("20260101T000000.000Z"), 4000);
        assert_eq!(of("20260101T000000.999Z"), 8000);
        assert!((5900..6100).contains(&of("20260101T000000.500Z")));
    }
}
