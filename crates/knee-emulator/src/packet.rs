//! A packet of the path's MTU on its way through the links: a part of the super-packet in which the
//! host sent it.

use crate::arena::{Arena, Place};
use crate::wire::{
    Headers, Kind, VnetHeader, complete, get16, get32, parse, put16, put32, set_ecn, tcp,
};
use knee_units::{Ecn, Time};

/// Maximum length of IP and transport header: 60 bytes each.
pub(crate) const HEADERS_MAX: usize = 120;

/// A packet in a link; its bytes are in the emulator's arena.
#[derive(Clone, Copy, Debug)]
pub struct IpPacket {
    /// Position of the headers of its super-packet.
    pub(crate) template: Place,
    /// Position of its own payload, in the same chunk.
    pub(crate) payload: u32,
    pub(crate) payload_len: u16,
    /// Number within the super-packet.
    pub(crate) index: u16,
    /// Whether it is the last of the super-packet.
    last: bool,
    pub(crate) headers: Headers,
    pub(crate) partial_checksum: bool,
    /// Its next step: an index into the routes.
    pub(crate) hop: u32,
    /// When it was due to leave the last link.
    pub(crate) due: Time,
}

impl knee_link::Packet for IpPacket {
    #[inline]
    fn size(&self) -> u32 {
        u32::from(self.headers.all) + u32::from(self.payload_len)
    }
    #[inline]
    fn ecn(&self) -> Ecn {
        Ecn::from_bits(self.headers.ecn)
    }
    #[inline]
    fn mark(&mut self) {
        self.headers.ecn = Ecn::Ce.bits();
    }
    fn clear_ecn(&mut self) {
        self.headers.ecn = Ecn::NotCapable.bits();
    }
    #[inline]
    fn flow_hash(&self) -> u64 {
        self.headers.flow_hash
    }
}

impl IpPacket {
    /// Writes the packet's own headers, without lengths and checksums.
    pub(crate) fn write_headers(&self, arena: &Arena, into: &mut [u8; HEADERS_MAX]) {
        let (all, ip) = (usize::from(self.headers.all), usize::from(self.headers.ip));
        let header = &mut into[..all];
        header.copy_from_slice(arena.bytes(self.template, all));
        set_ecn(header, self.headers.ecn);
        if self.index > 0 && header[0] >> 4 == 4 {
            let number = get16(header, 4).wrapping_add(self.index);
            put16(header, 4, number);
        }
        if self.headers.kind.is_tcp() {
            let offset = self.payload - self.template.start - all as u32;
            let sequence = get32(header, ip + tcp::SEQUENCE).wrapping_add(offset);
            put32(header, ip + tcp::SEQUENCE, sequence);
            header[ip + tcp::FLAGS] &= self.kept_flags();
        }
    }

    /// Appends the first `len` bytes of the packet as it is now. A transport checksum that the host
    /// left to its network card remains partial.
    pub(crate) fn copy_start(&self, arena: &Arena, len: usize, into: &mut Vec<u8>) {
        let (all, ip) = (usize::from(self.headers.all), usize::from(self.headers.ip));
        let payload = usize::from(self.payload_len);
        let mut header = [0; HEADERS_MAX];
        self.write_headers(arena, &mut header);
        complete(&mut header[..all], self.headers.kind, ip, payload, self.partial_checksum);
        into.extend_from_slice(&header[..all.min(len)]);
        let place = Place { start: self.payload, ..self.template };
        into.extend_from_slice(arena.bytes(place, len.saturating_sub(all).min(payload)));
    }

    /// Returns where an observer keeps the time at which the super-packet entered: in place of its
    /// vnet header, which is not needed any more.
    pub(crate) fn stamp_place(&self) -> Place {
        Place { start: self.template.start - VnetHeader::BYTES as u32, ..self.template }
    }

    /// Returns the packet's own TCP flags, or zero for other protocols.
    pub(crate) fn flags(&self, arena: &Arena) -> u8 {
        if !self.headers.kind.is_tcp() {
            return 0;
        }
        let at = Place { start: self.template.start + u32::from(self.headers.ip), ..self.template };
        arena.bytes(at, tcp::FLAGS + 1)[tcp::FLAGS] & self.kept_flags()
    }

    /// Returns whether `next` followed this one in the same super-packet.
    pub(crate) fn precedes(&self, next: &IpPacket) -> bool {
        self.template == next.template && self.index + 1 == next.index
    }

    /// Returns the super-packet's flags that this packet keeps: only the last packet carries FIN
    /// and PSH, only the first carries CWR (RFC 3168, section 6.1.2: once per window).
    fn kept_flags(&self) -> u8 {
        let mut kept = 0xff;
        if !self.last {
            kept &= !(tcp::FIN | tcp::PSH);
        }
        if self.index > 0 {
            kept &= !tcp::CWR;
        }
        kept
    }
}

/// Splits a super-packet in the arena into packets with one reference each, and releases the
/// reference of the super-packet itself. `None` for a packet that is not to be carried.
pub(crate) fn split(arena: &mut Arena, read: Place, len: usize, hop: u32) -> Option<Split> {
    let bytes = arena.bytes(read, len);
    let parsed = (len > VnetHeader::BYTES).then(|| parse(&bytes[VnetHeader::BYTES..])).flatten();
    let Some(headers) = parsed else {
        arena.release(read.chunk, 1);
        return None;
    };
    let vnet = VnetHeader::read(bytes);
    let template = Place { chunk: read.chunk, start: read.start + VnetHeader::BYTES as u32 };
    let payload = template.start + u32::from(headers.all);
    let end = read.start + len as u32;
    let splits = vnet.segment > 0 && headers.kind != Kind::Other;
    let segment = if splits { u32::from(vnet.segment) } else { u32::MAX };
    let first = IpPacket {
        template,
        payload,
        payload_len: 0,
        index: 0,
        last: false,
        headers,
        partial_checksum: vnet.partial_checksum,
        hop,
        due: Time::ZERO,
    };
    Some(Split { next: Some(first), segment, end })
}

/// Iterates over the packets of a super-packet.
pub(crate) struct Split {
    next: Option<IpPacket>,
    segment: u32,
    end: u32,
}

impl Split {
    /// Returns the next packet, which holds a reference of its own.
    #[inline]
    pub(crate) fn next(&mut self, arena: &mut Arena) -> Option<IpPacket> {
        let mut packet = self.next?;
        let left = self.end - packet.payload;
        let len = left.min(self.segment);
        packet.payload_len = len as u16;
        packet.last = len == left;
        if packet.last {
            self.next = None;
        } else {
            arena.hold(packet.template.chunk);
            self.next =
                Some(IpPacket { payload: packet.payload + len, index: packet.index + 1, ..packet });
        }
        Some(packet)
    }
}
