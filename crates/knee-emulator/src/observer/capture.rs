//! Packets as a pcapng file (draft-ietf-opsawg-pcapng), which Wireshark and tcpdump open.
//!
//! Each device is an interface: packets that enter from its host are outbound, those that leave into
//! it inbound. Each link is an interface as well, which has the packets that it dropped, with the
//! reason as a comment. Transport checksums are as the host computed them, which leaves the rest to
//! its network card.

use super::{Event, Happened};
use knee_link::DropReason;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// Block types (sections 4.1 to 4.3 and 4.7).
const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
const PACKET: u32 = 6;
const SECRETS: u32 = 10;
/// TLS secrets in the lines of SSLKEYLOGFILE (section 4.7).
const TLS_KEY_LOG: u32 = 0x544c_534b;
/// Bytes that are moved at once.
const MOVED_BYTES: usize = 1 << 20;
/// Marks the byte order of a section.
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Raw IP, version 4 or 6 (LINKTYPE_RAW of the list of link types).
const RAW_IP: u16 = 101;
/// Option codes (sections 3.5 and 4.1 to 4.3).
const END: u16 = 0;
const COMMENT: u16 = 1;
const IF_NAME: u16 = 2;
const IF_TSRESOL: u16 = 9;
const SHB_USERAPPL: u16 = 4;
const EPB_FLAGS: u16 = 2;
/// Directions in the flags of a packet (section 4.3.1).
const INBOUND: u32 = 1;
const OUTBOUND: u32 = 2;
/// Nanoseconds, as a negative power of ten.
const NANOSECONDS: u8 = 9;

/// A capture that is being written.
#[derive(Debug)]
pub struct Capture {
    out: BufWriter<File>,
    epoch_unix_ns: u64,
    devices: u32,
    body: Vec<u8>,
}

impl Capture {
    /// Begins a capture in this file. The names are those of the interfaces, for all devices and
    /// links of the emulation in their order; the epoch is the emulator's time zero, nanoseconds
    /// since 1970.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn create(
        file: File,
        devices: &[String],
        links: &[String],
        epoch_unix_ns: u64,
    ) -> io::Result<Capture> {
        let out = BufWriter::with_capacity(1 << 18, file);
        let devices_count = devices.len() as u32;
        let mut capture = Capture { out, epoch_unix_ns, devices: devices_count, body: Vec::new() };
        capture.body.extend(BYTE_ORDER.to_ne_bytes());
        capture.body.extend([1_u16, 0].map(u16::to_ne_bytes).concat());
        // The length of the section is not known.
        capture.body.extend((-1_i64).to_ne_bytes());
        let program = concat!("Knee ", env!("CARGO_PKG_VERSION"));
        capture.option(SHB_USERAPPL, program.as_bytes());
        capture.end_block(SECTION)?;
        let dropped = links.iter().map(|link| format!("dropped at {link}"));
        for name in devices.iter().cloned().chain(dropped) {
            capture.body.extend(RAW_IP.to_ne_bytes());
            // Reserved, and no limit of a packet's length.
            capture.body.extend([0; 6]);
            capture.option(IF_NAME, name.as_bytes());
            capture.option(IF_TSRESOL, &[NANOSECONDS]);
            capture.end_block(INTERFACE)?;
        }
        Ok(capture)
    }

    /// Writes a packet.
    pub(super) fn write(&mut self, event: &Event, bytes: &[u8]) -> io::Result<()> {
        let (interface, flags, comment) = match event.happened {
            Happened::Entered(device) => (device as u32, OUTBOUND, None),
            Happened::Left(device) => (device as u32, INBOUND, None),
            Happened::Dropped(link, reason) => (self.devices + link as u32, 0, Some(words(reason))),
        };
        let time = self.epoch_unix_ns.saturating_add(event.at.as_nanos());
        let head = [interface, (time >> 32) as u32, time as u32, event.kept, event.size];
        self.body.extend(head.iter().flat_map(|word| word.to_ne_bytes()));
        self.body.extend(bytes);
        self.pad();
        if let Some(comment) = comment {
            self.option(COMMENT, comment.as_bytes());
        } else {
            self.option(EPB_FLAGS, &flags.to_ne_bytes());
        }
        self.end_block(PACKET)
    }

    /// Writes what is left.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }

    fn option(&mut self, code: u16, value: &[u8]) {
        self.body.extend([code, value.len() as u16].map(u16::to_ne_bytes).concat());
        self.body.extend(value);
        self.pad();
    }

    fn pad(&mut self) {
        self.body.resize(self.body.len().next_multiple_of(4), 0);
    }

    /// Writes the block whose body is complete, with the end of its options.
    fn end_block(&mut self, kind: u32) -> io::Result<()> {
        self.body.extend(end_of_options());
        let length = (self.body.len() as u32 + 12).to_ne_bytes();
        self.out.write_all(&kind.to_ne_bytes())?;
        self.out.write_all(&length)?;
        self.out.write_all(&self.body)?;
        self.out.write_all(&length)?;
        self.body.clear();
        Ok(())
    }
}

fn end_of_options() -> Vec<u8> {
    [END, 0].map(u16::to_ne_bytes).concat()
}

/// Puts TLS secrets, in the lines of SSLKEYLOGFILE, before all packets of a finished capture, where a
/// reader needs them to decrypt. The file must be open for reading and writing; its packets are moved
/// within it.
///
/// # Errors
///
/// The file is no capture, or cannot be read or written: it is then broken.
pub fn add_secrets(capture: &File, secrets: &[u8]) -> io::Result<()> {
    let mut head = [0; 8];
    capture.read_exact_at(&mut head, 0)?;
    let section = u32::from_ne_bytes([head[4], head[5], head[6], head[7]]);
    let mut body = [TLS_KEY_LOG, secrets.len() as u32].map(u32::to_ne_bytes).concat();
    body.extend(secrets);
    body.resize(body.len().next_multiple_of(4), 0);
    body.extend(end_of_options());
    let length = (body.len() as u32 + 12).to_ne_bytes();
    let block = [&SECRETS.to_ne_bytes(), &length, body.as_slice(), &length].concat();
    insert(capture, u64::from(section), &block)
}

/// Inserts bytes at a place of a file, from its end on in pieces, so that memory is bounded.
fn insert(file: &File, place: u64, bytes: &[u8]) -> io::Result<()> {
    let mut end = file.metadata()?.len();
    let mut piece = vec![0; MOVED_BYTES];
    while end > place {
        let begin = place.max(end.saturating_sub(MOVED_BYTES as u64));
        let piece = &mut piece[..(end - begin) as usize];
        file.read_exact_at(piece, begin)?;
        file.write_all_at(piece, begin + bytes.len() as u64)?;
        end = begin;
    }
    file.write_all_at(bytes, place)
}

fn words(reason: DropReason) -> &'static str {
    match reason {
        DropReason::Loss => "lost",
        DropReason::Down => "the link was down",
        DropReason::Policer => "dropped by the policer",
        DropReason::Queue => "dropped, the queue was full",
        DropReason::Aqm => "dropped by active queue management",
        DropReason::Breaker => "dropped by the circuit breaker",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use knee_units::Time;
    use pcap_parser::traits::{PcapNGPacketBlock, PcapReaderIterator};
    use pcap_parser::{Block, OptionCode, PcapBlockOwned, PcapError, PcapNGReader};

    /// Read by another implementation: interfaces, times, directions, lengths and bytes, and secrets
    /// that are longer than what is moved at once.
    #[test]
    fn another_reader_finds_the_same_packets() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("capture.pcapng");
        let names =
            |names: &[&str]| -> Vec<String> { names.iter().map(ToString::to_string).collect() };
        let devices = names(&["sender/main", "receiver/main"]);
        let epoch = 1_700_000_000_000_000_000;
        let file = File::create(&path).unwrap();
        let mut capture = Capture::create(file, &devices, &names(&["lte"]), epoch).unwrap();
        let happened =
            [Happened::Entered(0), Happened::Left(1), Happened::Dropped(0, DropReason::Queue)];
        for (number, happened) in happened.into_iter().enumerate() {
            let kept = 41 + number as u32;
            let at = Time::from_nanos(number as u64 * 7 + 1);
            let event = Event { happened, at, entered: at, size: 1500, kept };
            capture.write(&event, &vec![number as u8; kept as usize]).unwrap();
        }
        capture.finish().unwrap();
        let secrets = format!("CLIENT_RANDOM {}\n", "0".repeat(2 * MOVED_BYTES));
        let file = File::options().read(true).write(true).open(&path).unwrap();
        add_secrets(&file, secrets.as_bytes()).unwrap();

        let mut reader = PcapNGReader::new(1 << 23, File::open(&path).unwrap()).unwrap();
        let (mut interfaces, mut packets, mut kept) = (Vec::new(), Vec::new(), Vec::new());
        loop {
            let (used, block) = match reader.next() {
                Ok(read) => read,
                Err(PcapError::Eof) => break,
                Err(PcapError::Incomplete(_)) => {
                    reader.refill().unwrap();
                    continue;
                }
                Err(error) => panic!("{error:?}"),
            };
            let PcapBlockOwned::NG(block) = block else { panic!("an old pcap block") };
            match block {
                Block::SectionHeader(section) => assert_eq!(section.major_version, 1),
                Block::InterfaceDescription(one) => {
                    let option = |code| {
                        let found = one.options.iter().find(|option| option.code == code);
                        found.unwrap().value[..found.unwrap().len as usize].to_vec()
                    };
                    assert_eq!(option(OptionCode(IF_TSRESOL)), [9]);
                    assert_eq!(one.linktype.0, 101);
                    interfaces.push(String::from_utf8(option(OptionCode(IF_NAME))).unwrap());
                }
                Block::DecryptionSecrets(one) => {
                    assert!(packets.is_empty(), "secrets come before what they decrypt");
                    assert_eq!((one.secrets_type.0, one.secrets_len), (0x544c_534b, 2_097_167));
                    kept.extend_from_slice(&one.data[..one.secrets_len as usize]);
                }
                Block::EnhancedPacket(one) => {
                    let time = u64::from(one.ts_high) << 32 | u64::from(one.ts_low);
                    let option = one.options.first().unwrap();
                    packets.push((
                        one.if_id,
                        time - epoch,
                        one.origlen,
                        one.packet_data().to_vec(),
                        option.value[..option.len as usize].to_vec(),
                    ));
                }
                other => panic!("{other:?}"),
            }
            reader.consume(used);
        }
        assert_eq!(interfaces, ["sender/main", "receiver/main", "dropped at lte"]);
        let expected = [
            (0, 1, 1500, vec![0; 41], vec![2, 0, 0, 0]),
            (1, 8, 1500, vec![1; 42], vec![1, 0, 0, 0]),
            (2, 15, 1500, vec![2; 43], b"dropped, the queue was full".to_vec()),
        ];
        assert_eq!(packets, expected);
        assert_eq!(kept, secrets.as_bytes());
    }
}
