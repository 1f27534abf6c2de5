//! Whose processes are at the other ends of connections: the kernel knows the user of every socket of this machine.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ops::Range;

use crate::blocking::blocking;

/// Where the kernel lists sockets; an IPv6 socket can carry IPv4 connections.
const TABLES: [&str; 2] = ["/proc/net/tcp", "/proc/net/tcp6"];
/// The state of a connection whose both ends are open. Of one that its process has begun to close the kernel does not
/// tell any more whose it was.
const ESTABLISHED: &str = "01";

/// Whether the other end of a connection is a process of one of these users, if there are any, or of this machine and nobody
/// knows whose.
pub(crate) async fn is_of(users: Option<Range<u32>>, peer: SocketAddr, own: Option<SocketAddr>) -> bool {
    let Some(users) = users else { return false };
    let looked = blocking(move || {
        let tables = TABLES.iter().filter_map(|path| std::fs::read_to_string(path).ok());
        tables.into_iter().find_map(|table| owner_in(&table, peer, own))
    });
    looked.await.map_or_else(|| is_here(peer, own), |user| users.contains(&user))
}

/// Whether the other end must be a process of this machine.
fn is_here(peer: SocketAddr, own: Option<SocketAddr>) -> bool {
    let address = peer.ip().to_canonical();
    address.is_loopback() || own.is_some_and(|own| own.ip().to_canonical() == address)
}

/// The user of the socket at one address that is connected to another.
fn owner_in(table: &str, address: SocketAddr, remote: Option<SocketAddr>) -> Option<u32> {
    let plain = |address: SocketAddr| (address.ip().to_canonical(), address.port());
    let is_it = |line: &&str| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let (Some(own), Some(other), Some(state)) = (fields.next(), fields.next(), fields.next()) else {
            return false;
        };
        state == ESTABLISHED
            && socket_address(own) == Some(plain(address))
            && remote.is_none_or(|remote| socket_address(other) == Some(plain(remote)))
    };
    let line = table.lines().skip(1).find(is_it)?;
    line.split_ascii_whitespace().nth(7)?.parse().ok()
}

/// An address as the kernel writes it: words of four bytes in the order of this machine, and the port.
fn socket_address(text: &str) -> Option<(IpAddr, u16)> {
    let (address, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let word =
        |at: usize| Some(u32::from_str_radix(address.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let address = match address.len() {
        8 => IpAddr::from(Ipv4Addr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, place) in bytes.chunks_mut(4).enumerate() {
                place.copy_from_slice(&word(at)?);
            }
            IpAddr::from(Ipv6Addr::from(bytes)).to_canonical()
        }
        _ => return None,
    };
    Some((address, port))
}

#[cfg(test)]
#[cfg(target_endian = "little")]
mod tests {
    use super::*;

    const TCP: &str =
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1 0 100 0 0 10 0
   1: 0100007F:9C40 0100007F:1F90 06 00000000:00000000 00:00000000 00000000     0        0 0 3 0
   2: 0100007F:9C40 0200007F:1F90 01 00000000:00000000 00:00000000 00000000  1000        0 4 1 0 20 0 0 10 -1
   3: 0100007F:9C40 0100007F:1F90 01 00000000:00000000 00:00000000 00000000  2001        0 2 1 0 20 0 0 10 -1
   4: 0100007F:1F90 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 3 1 0 20 0 0 10 -1
";
    const TCP6: &str = "  sl  local_address rem_address st tx_queue rx_queue tr tm->when retrnsmt uid timeout inode
   0: 0000000000000000FFFF00000100007F:9C41 0000000000000000FFFF00000100007F:1F90 01 0:0 00:0 0  2002        0 5 1
   1: 00000000000000000000000001000000:9C42 00000000000000000000000001000000:1F90 01 0:0 00:0 0  2003        0 6 1
";

    #[test]
    fn the_owner_of_a_connection_is_found_by_both_of_its_ends() {
        let at = |text: &str| text.parse::<SocketAddr>().unwrap();
        let console = Some(at("127.0.0.1:8080"));
        assert_eq!(owner_in(TCP, at("127.0.0.1:40000"), console), Some(2001));
        assert_eq!(owner_in(TCP, at("127.0.0.1:40000"), Some(at("127.0.0.2:8080"))), Some(1000));
        assert_eq!(owner_in(TCP, at("127.0.0.1:40002"), console), None);
        assert_eq!(
            owner_in(TCP6, at("127.0.0.1:40001"), console),
            Some(2002),
            "by a socket of the other kind"
        );
        assert_eq!(owner_in(TCP6, at("[::1]:40002"), Some(at("[::1]:8080"))), Some(2003));
        assert_eq!(owner_in("", at("[::1]:40002"), None), None);
        let closing = TCP.replace(" 01 ", " 05 ");
        assert_eq!(owner_in(&closing, at("127.0.0.1:40000"), console), None, "nobody's, so it is refused");
    }
}
