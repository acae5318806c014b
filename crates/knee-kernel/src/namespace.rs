//! Network namespaces that nothing has to clean up.
//!
//! A namespace made here has no name and no mount: it lives as long as a
//! thread is in it or a descriptor refers to it, and its devices with it.
//! When the process ends, however it ends, the kernel takes everything away.

use crate::KernelError;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::{self, File};
use std::io;
use std::thread;

const ADVICE: &str = "run as root (CAP_SYS_ADMIN), or permit user namespaces \
    (sysctl user.max_user_namespaces=10000), on a kernel with CONFIG_NET_NS";

/// A network namespace: one host of a scenario.
#[derive(Debug)]
pub struct Namespace {
    file: File,
}

impl Namespace {
    /// A new, empty one; the calling thread stays where it is.
    pub fn create() -> Result<Namespace, KernelError> {
        let made = on_its_own(|| {
            unshare(CloneFlags::CLONE_NEWNET)?;
            File::open("/proc/thread-self/ns/net")
        })?;
        let file =
            made.map_err(|source| KernelError::host("make a network namespace", source, ADVICE))?;
        Ok(Namespace { file })
    }

    /// Moves the calling thread in, for good.
    pub fn enter(&self) -> Result<(), KernelError> {
        setns(&self.file, CloneFlags::CLONE_NEWNET)
            .map_err(|source| KernelError::host("enter a network namespace", source, ADVICE))
    }

    /// Does something inside, on a thread of its own.
    pub fn within<T: Send>(
        &self,
        work: impl FnOnce() -> Result<T, KernelError> + Send,
    ) -> Result<T, KernelError> {
        on_its_own(|| {
            self.enter()?;
            work()
        })?
    }
}

fn on_its_own<T: Send>(work: impl FnOnce() -> T + Send) -> Result<T, KernelError> {
    thread::scope(|scope| scope.spawn(work).join()).map_err(|_| KernelError::Panicked)
}

/// Writes `/proc/sys/…` of the calling thread's namespace.
pub fn set_sysctl(name: &str, value: &str) -> Result<(), KernelError> {
    let path = format!("/proc/sys/{}", name.replace('.', "/"));
    fs::write(path, value).map_err(|source| {
        KernelError::host(
            format!("set {name} of a namespace"),
            source,
            "run as root, with /proc/sys writable",
        )
    })
}

/// Reads `/proc/sys/…` of the calling thread's namespace.
pub fn sysctl(name: &str) -> io::Result<String> {
    fs::read_to_string(format!("/proc/sys/{}", name.replace('.', "/")))
        .map(|text| text.trim().to_owned())
}
