//! The kernel's path manager for MPTCP, over generic netlink, in the namespace of the calling
//! thread.

use super::SUBFLOWS_MAX;
use crate::HostError;
use crate::netlink::Netlink;
use netlink_packet_core::{
    DecodeError, DefaultNla, Emitable, NLA_F_NESTED, NLM_F_ACK, NlasIterator, Parseable,
    ParseableParametrized,
};
use netlink_packet_generic::ctrl::nlas::GenlCtrlAttrs;
use netlink_packet_generic::ctrl::{GenlCtrl, GenlCtrlCmd};
use netlink_packet_generic::{GenlFamily, GenlHeader, GenlMessage};
use netlink_sys::protocols::NETLINK_GENERIC;
use std::io;
use std::net::IpAddr;

/// Allows connections of this namespace the maximum number of subflows.
///
/// # Errors
///
/// If the kernel has no MPTCP, or the process lacks CAP_NET_ADMIN.
pub fn allow_subflows() -> Result<(), HostError> {
    PathManager::open()?.ask(set_limits((SUBFLOWS_MAX - 1) as u32))
}

/// An additional address of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Announced {
    /// The address.
    pub address: IpAddr,
    /// Whether subflows to it are used only if no other can be (RFC 8684, section 3.3.8).
    pub backup: bool,
}

/// Announces these addresses to the peers of this namespace's connections.
///
/// # Errors
///
/// The errors of [`allow_subflows`], and an address that is already announced.
pub fn announce(addresses: &[Announced]) -> Result<(), HostError> {
    let mut manager = PathManager::open()?;
    // Number zero is the address with which a connection begins.
    let mut numbered = (1..).zip(addresses);
    numbered.try_for_each(|(number, address)| manager.ask(add_address(number, *address)))
}

/// A command of the family `mptcp_pm` (include/uapi/linux/mptcp_pm.h).
#[derive(Clone, Debug)]
struct Command {
    number: u8,
    attributes: Vec<DefaultNla>,
}

/// Sets the maximum number of announced addresses that are joined, and of subflows opened.
fn set_limits(most: u32) -> Command {
    const SET_LIMITS: u8 = 5;
    const RECEIVED_ADDRESSES: u16 = 2;
    const SUBFLOWS: u16 = 3;
    let limit = |kind| DefaultNla::new(kind, most.to_ne_bytes().to_vec());
    Command { number: SET_LIMITS, attributes: vec![limit(RECEIVED_ADDRESSES), limit(SUBFLOWS)] }
}

fn add_address(number: u8, announced: Announced) -> Command {
    const ADD_ADDRESS: u8 = 1;
    const ADDRESS: u16 = 1;
    // Within it.
    const FAMILY: u16 = 1;
    const NUMBER: u16 = 2;
    const V4: u16 = 3;
    const V6: u16 = 4;
    const FLAGS: u16 = 6;
    /// Announced to the peer.
    const SIGNAL: u32 = 1;
    const BACKUP: u32 = 4;
    let flags = if announced.backup { SIGNAL | BACKUP } else { SIGNAL };
    let (family, kind, octets) = match announced.address {
        IpAddr::V4(v4) => (libc::AF_INET, V4, v4.octets().to_vec()),
        IpAddr::V6(v6) => (libc::AF_INET6, V6, v6.octets().to_vec()),
    };
    let endpoint = [
        DefaultNla::new(FAMILY, (family as u16).to_ne_bytes().to_vec()),
        DefaultNla::new(NUMBER, vec![number]),
        DefaultNla::new(kind, octets),
        DefaultNla::new(FLAGS, flags.to_ne_bytes().to_vec()),
    ];
    let endpoint = endpoint.as_slice();
    let mut nested = vec![0; endpoint.buffer_len()];
    endpoint.emit(&mut nested);
    let address = DefaultNla::new(ADDRESS | NLA_F_NESTED, nested);
    Command { number: ADD_ADDRESS, attributes: vec![address] }
}

impl GenlFamily for Command {
    fn family_name() -> &'static str {
        "mptcp_pm"
    }

    fn command(&self) -> u8 {
        self.number
    }

    fn version(&self) -> u8 {
        1
    }
}

impl Emitable for Command {
    fn buffer_len(&self) -> usize {
        self.attributes.as_slice().buffer_len()
    }

    fn emit(&self, buffer: &mut [u8]) {
        self.attributes.as_slice().emit(buffer);
    }
}

impl ParseableParametrized<[u8], GenlHeader> for Command {
    fn parse_with_param(bytes: &[u8], header: GenlHeader) -> Result<Command, DecodeError> {
        let attributes = NlasIterator::new(bytes).map(|found| DefaultNla::parse(&found?));
        Ok(Command { number: header.cmd, attributes: attributes.collect::<Result<_, _>>()? })
    }
}

struct PathManager {
    netlink: Netlink,
    /// Number that the kernel assigned to the family.
    family: u16,
}

impl PathManager {
    fn open() -> Result<PathManager, HostError> {
        let open = || -> io::Result<PathManager> {
            let mut netlink = Netlink::open(NETLINK_GENERIC)?;
            let name = GenlCtrlAttrs::FamilyName(Command::family_name().to_owned());
            let question = GenlCtrl { cmd: GenlCtrlCmd::GetFamily, nlas: vec![name] };
            let answer = netlink.ask(GenlMessage::from_payload(question), 0)?;
            let attributes = answer.into_iter().flat_map(|answer| answer.payload.nlas);
            let mut families = attributes.filter_map(|attribute| match attribute {
                GenlCtrlAttrs::FamilyId(family) => Some(family),
                _ => None,
            });
            let family = families.next().ok_or(io::ErrorKind::InvalidData)?;
            Ok(PathManager { netlink, family })
        };
        open().map_err(|source| {
            HostError::refused("reach the kernel's MPTCP", source, "use a kernel with CONFIG_MPTCP")
        })
    }

    fn ask(&mut self, command: Command) -> Result<(), HostError> {
        let mut message = GenlMessage::from_payload(command);
        message.set_resolved_family_id(self.family);
        self.netlink.ask(message, NLM_F_ACK).map(drop).map_err(|source| {
            HostError::refused("set up MPTCP's paths", source, "run as root (CAP_NET_ADMIN)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Laid out by hand from netlink(7) and mptcp_pm.h: length including the four bytes of header,
    /// type (nested: highest bit), value, padding.
    #[test]
    fn an_address_lies_in_its_attribute() {
        let address = IpAddr::from([10, 64, 1, 2]);
        let command = add_address(2, Announced { address, backup: false });
        let mut bytes = vec![0xff; command.buffer_len()];
        command.emit(&mut bytes);
        let words: Vec<u16> =
            bytes.chunks(2).map(|pair| u16::from_ne_bytes([pair[0], pair[1]])).collect();
        assert_eq!(words[..8], [36, 0x8001, 6, 1, 2, 0, 5, 2]);
        assert_eq!(bytes[16..20], [2, 0, 0, 0]);
        assert_eq!(words[10..12], [8, 3]);
        assert_eq!(bytes[24..28], [10, 64, 1, 2]);
        assert_eq!(words[14..16], [8, 6]);
        assert_eq!(bytes[32..], 1_u32.to_ne_bytes());
        let command = add_address(2, Announced { address, backup: true });
        command.emit(&mut bytes);
        assert_eq!(bytes[32..], 5_u32.to_ne_bytes());
    }
}
