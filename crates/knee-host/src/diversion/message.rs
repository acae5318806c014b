//! Requests of nf_tables as bytes (linux/netfilter/nf_tables.h): a batch of messages with nested
//! attributes. Numbers are big-endian, except for those of netlink itself.

/// Flags and types of netlink messages (linux/netlink.h).
const NLM_F_REQUEST: u16 = 1;
const NLM_F_ACK: u16 = 4;
const NLM_F_EXCL: u16 = 0x200;
const NLM_F_CREATE: u16 = 0x400;
const NLM_F_APPEND: u16 = 0x800;
const NLMSG_ERROR: u16 = 2;
/// Messages that begin and end a batch (linux/netfilter/nfnetlink.h).
const BATCH_BEGIN: u16 = 16;
const BATCH_END: u16 = 17;
const SUBSYSTEM: u16 = 10;
/// Flag of an attribute that contains attributes.
const NESTED: u16 = 1 << 15;
const HEADER: usize = 16;
/// Family of tables for IPv4 and IPv6, `NFPROTO_INET`.
const FAMILY_INET: u8 = 1;

/// Objects that a request creates.
#[derive(Clone, Copy)]
pub enum NewObject {
    Table = 0,
    Chain = 3,
    Rule = 6,
}

/// A sequence of attributes.
#[derive(Clone, Default)]
pub struct Attributes(Vec<u8>);

impl Attributes {
    pub fn bytes(mut self, kind: u16, value: &[u8]) -> Attributes {
        // Length and type are netlink's, in host byte order; each attribute begins at a multiple of
        // four.
        self.0.extend((value.len() as u16 + 4).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(value);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        self
    }

    pub fn number(self, kind: u16, value: u32) -> Attributes {
        self.bytes(kind, &value.to_be_bytes())
    }

    pub fn text(self, kind: u16, value: &str) -> Attributes {
        self.bytes(kind, &[value.as_bytes(), &[0]].concat())
    }

    pub fn nested(self, kind: u16, value: Attributes) -> Attributes {
        self.bytes(kind | NESTED, &value.0)
    }
}

/// Requests that are applied all together or not at all.
pub struct Batch {
    bytes: Vec<u8>,
    sequence: u32,
}

impl Batch {
    pub fn begin() -> Batch {
        let mut batch = Batch { bytes: Vec::new(), sequence: 0 };
        batch.message(BATCH_BEGIN, 0, 0, SUBSYSTEM, &[]);
        batch
    }

    pub fn make(&mut self, made: NewObject, attributes: Attributes) {
        let how = match made {
            NewObject::Table => NLM_F_CREATE | NLM_F_EXCL,
            NewObject::Chain => NLM_F_CREATE,
            NewObject::Rule => NLM_F_CREATE | NLM_F_APPEND,
        };
        let kind = SUBSYSTEM << 8 | made as u16;
        self.message(kind, how | NLM_F_ACK, FAMILY_INET, 0, &attributes.0);
    }

    /// Returns the bytes, and the number of requests that are answered.
    pub fn end(mut self) -> (Vec<u8>, u32) {
        let requests = self.sequence - 1;
        self.message(BATCH_END, 0, 0, SUBSYSTEM, &[]);
        (self.bytes, requests)
    }

    fn message(&mut self, kind: u16, flags: u16, family: u8, resource: u16, attributes: &[u8]) {
        let length = (HEADER + 4 + attributes.len()) as u32;
        self.bytes.extend(length.to_ne_bytes());
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend((NLM_F_REQUEST | flags).to_ne_bytes());
        self.bytes.extend(self.sequence.to_ne_bytes());
        self.bytes.extend([0; 4]);
        // nfgenmsg: family, version, resource.
        self.bytes.extend([family, 0]);
        self.bytes.extend(resource.to_be_bytes());
        self.bytes.extend(attributes);
        self.sequence += 1;
    }
}

/// Returns the codes of answers in a datagram: zero, or a negative errno.
pub fn answers(datagram: &[u8]) -> Vec<i32> {
    let mut rest = datagram;
    let mut codes = Vec::new();
    while let Some((header, _)) = rest.split_at_checked(HEADER) {
        let length = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        if let (NLMSG_ERROR, Some(&[a, b, c, d])) = (kind, rest.get(HEADER..HEADER + 4)) {
            codes.push(i32::from_ne_bytes([a, b, c, d]));
        }
        rest = rest.get(length.max(HEADER).next_multiple_of(4)..).unwrap_or(&[]);
    }
    codes
}
