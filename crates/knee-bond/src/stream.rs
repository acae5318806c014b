//! Asynchronous streams of a bundle.

use crate::engine::{Engine, Signals};
use bytes::Bytes;
use knee_bundle::StreamId;
use knee_quic::BundleId;
use nix::sys::socket::{setsockopt, sockopt};
use std::cell::Cell;
use std::io::ErrorKind;
use std::rc::Rc;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

/// Bytes that are passed on at a time: what a connection holds here whose other end does not read.
/// Thousands of them may.
const GO: usize = 1 << 14;
/// Reset code of a stream that was aborted.
const BROKEN_OFF: u64 = 1;

/// Why a stream was aborted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The peer reset it.
    #[error("the other end aborted")]
    Reset,
    /// Its bundle is gone: no link came back in time, or the server was restarted.
    #[error("the links were down for too long")]
    Gone,
}

/// One end of a stream. Dropping it before it is finished resets it.
#[derive(Debug)]
pub struct BundleStream {
    engine: Rc<Engine>,
    bundle: BundleId,
    id: StreamId,
    signals: Rc<Signals>,
    finished: Cell<bool>,
    read_to_end: Cell<bool>,
}

impl BundleStream {
    pub(crate) fn new(
        engine: Rc<Engine>,
        bundle: BundleId,
        id: StreamId,
        signals: Rc<Signals>,
    ) -> BundleStream {
        let (finished, read_to_end) = (Cell::new(false), Cell::new(false));
        BundleStream { engine, bundle, id, signals, finished, read_to_end }
    }

    /// Returns the flow of messages that belongs to the stream.
    pub fn flow(&self) -> u64 {
        self.id.value()
    }

    /// Returns the stream's bundle.
    pub fn bundle(&self) -> BundleId {
        self.bundle
    }

    /// Reads the next bytes, at most `most`, or `None` at the end.
    ///
    /// # Errors
    /// The stream was aborted.
    pub async fn read(&self, most: usize) -> Result<Option<Bytes>, Broken> {
        loop {
            let read = self.engine.with_bundle(&self.bundle, |bundle| {
                let bytes = bundle.read(self.id, most);
                let is_over = bytes.is_none() && bundle.is_read_to_end(self.id);
                (bytes, is_over)
            });
            let Some((bytes, is_over)) = read.filter(|_| !self.signals.gone.get()) else {
                return Err(Broken::Gone);
            };
            if bytes.is_some() {
                return Ok(bytes);
            }
            if self.signals.reset.get() {
                self.read_to_end.set(true);
                return Err(Broken::Reset);
            }
            if is_over {
                self.read_to_end.set(true);
                return Ok(None);
            }
            self.signals.readable.notified().await;
        }
    }

    /// Appends what else has arrived, up to `most` in all. Does not wait; the next
    /// [`read`](Self::read) reports an end.
    fn read_more(&self, into: &mut Vec<u8>, most: usize) {
        self.engine.with_bundle(&self.bundle, |bundle| {
            while into.len() < most
                && let Some(bytes) = bundle.read(self.id, most - into.len())
            {
                into.extend_from_slice(&bytes);
            }
        });
    }

    /// Writes all bytes, waiting for room.
    ///
    /// # Errors
    /// The stream was aborted.
    pub async fn write(&self, mut bytes: &[u8]) -> Result<(), Broken> {
        while !bytes.is_empty() {
            if self.signals.stopped.get() {
                return Err(Broken::Reset);
            }
            let taken = self.engine.with_bundle(&self.bundle, |b| b.write(self.id, bytes));
            let Some(taken) = taken.filter(|_| !self.signals.gone.get()) else {
                return Err(Broken::Gone);
            };
            bytes = &bytes[taken..];
            if !bytes.is_empty() {
                self.signals.writable.notified().await;
            }
        }
        Ok(())
    }

    /// Waits until the peer no longer reads the stream, or its bundle is gone.
    async fn unread(&self) {
        while !self.signals.stopped.get() && !self.signals.gone.get() {
            self.signals.writable.notified().await;
        }
    }

    /// Waits until the peer has reset the stream, or its bundle is gone.
    async fn unwritten(&self) {
        while !self.signals.reset.get() && !self.signals.gone.get() {
            self.signals.readable.notified().await;
        }
    }

    /// Ends the sending direction.
    pub fn finish(&self) {
        self.finished.set(true);
        self.engine.with_bundle(&self.bundle, |bundle| bundle.finish(self.id));
    }

    /// Sends a message of the stream's flow, over all links if `duplicate`.
    pub fn send(&self, message: Bytes, duplicate: bool) {
        self.engine.with_bundle(&self.bundle, |b| b.send(self.flow(), message, duplicate));
    }
}

impl Drop for BundleStream {
    fn drop(&mut self) {
        self.engine.with_bundle(&self.bundle, |bundle| {
            if !self.finished.get() {
                bundle.reset(self.id, BROKEN_OFF);
            }
            if !self.read_to_end.get() {
                bundle.stop(self.id, BROKEN_OFF);
            }
        });
        self.engine.forget(self.bundle, self.id);
    }
}

/// Relays bytes both ways between a TCP connection and a stream, until both directions have ended
/// or one is aborted, or `may_pass` refuses a number of bytes. `first` arrived on the connection
/// before. The connection ends with a FIN only if the stream did: if this process ends before, its
/// peer sees a reset, and takes nothing for whole.
pub async fn relay(
    mut connection: TcpStream,
    stream: BundleStream,
    first: &[u8],
    may_pass: impl Fn(usize) -> bool,
) {
    // Nagle's algorithm would hold a segment that is not full until an ACK (RFC 9293, section
    // 3.7.4), and this end cannot know whether more follows.
    let _ = connection.set_nodelay(true);
    // Notices a peer that vanished without a FIN while nobody sends (RFC 9293, section 3.8.4), after
    // the system's time.
    let _ = setsockopt(&connection, sockopt::KeepAlive, &true);
    break_off(&connection);
    let (reader, mut writer) = connection.split();
    let pass = |count| if may_pass(count) { Ok(()) } else { Err(()) };
    let up = async {
        pass(first.len())?;
        tokio::select! {
            biased;
            written = stream.write(first) => written.map_err(drop)?,
            _ = reader.ready(Interest::ERROR) => return Err(()),
        }
        loop {
            tokio::select! {
                biased;
                ready = reader.readable() => ready.map_err(drop)?,
                () = stream.unread() => return Err(()),
            }
            // Not before: a connection on which nothing arrives holds no memory.
            let mut buffer = vec![0; GO];
            let read = match reader.try_read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                read => read.map_err(drop)?,
            };
            if read == 0 {
                break;
            }
            pass(read)?;
            tokio::select! {
                biased;
                written = stream.write(&buffer[..read]) => written.map_err(drop)?,
                // Nobody reads the connection meanwhile, which would tell of a reset.
                _ = reader.ready(Interest::ERROR) => return Err(()),
            }
        }
        stream.finish();
        Ok(())
    };
    let down = async {
        loop {
            let read = tokio::select! {
                biased;
                read = stream.read(GO) => read.map_err(drop)?,
                _ = writer.ready(Interest::ERROR) => return Err(()),
            };
            let Some(bytes) = read else { break };
            // A packet carries some 1,400 bytes; one system call for each would cost more than the
            // packet.
            let mut buffer = Vec::with_capacity(GO);
            buffer.extend_from_slice(&bytes);
            // Its memory is used again for what arrives meanwhile.
            drop(bytes);
            stream.read_more(&mut buffer, GO);
            pass(buffer.len())?;
            tokio::select! {
                biased;
                written = writer.write_all(&buffer) => written.map_err(drop)?,
                () = stream.unwritten() => return Err(()),
            }
        }
        writer.shutdown().await.map_err(drop)
    };
    let result: Result<_, ()> = tokio::try_join!(up, down);
    if result.is_ok() {
        set_linger(&connection, false);
    }
}

/// Makes closing a connection send a reset, as the peer would see without Knee in between.
pub(crate) fn break_off(connection: &TcpStream) {
    set_linger(connection, true);
}

/// Sets whether closing a connection discards what was not sent and sends a reset.
fn set_linger(connection: &TcpStream, resets: bool) {
    let linger = libc::linger { l_onoff: resets.into(), l_linger: 0 };
    let _ = setsockopt(connection, sockopt::Linger, &linger);
}
