//! Calls to the kernel that a confined program has to do without, because they lead around its rules.
//!
//! The rules for ports know TCP and nothing that merely speaks it: a socket of Multipath TCP, or of SMC, takes any port.
//! Calls that are queued with io_uring are seen by no filter.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Protocols of the internet's families that speak TCP and are not it: SMC and Multipath TCP.
const OVER_TCP: [u64; 2] = [256, 262];
const FAMILIES: [i32; 2] = [libc::AF_INET, libc::AF_INET6];
/// The family of SMC, which falls back to TCP.
const SMC: u64 = 43;
/// What a second numbering of calls on x86_64 adds to each number.
const X32: i64 = 0x4000_0000;

/// Applies the filters to this process and all that it becomes and starts. They need `no_new_privs`.
pub(super) fn apply() -> io::Result<()> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        // The rules for ports hold without, only less tightly.
        return Ok(());
    };
    let rules = |call: i64, rules: Vec<SeccompRule>| {
        let numbers = if std::env::consts::ARCH == "x86_64" { vec![call, call | X32] } else { vec![call] };
        numbers.into_iter().map(|number| (number, rules.clone())).collect::<BTreeMap<_, _>>()
    };
    // Programs know both answers, and do with what every kernel has.
    let filters = [
        (rules(libc::SYS_socket, sockets()?), libc::EPROTONOSUPPORT),
        (rules(libc::SYS_io_uring_setup, Vec::new()), libc::ENOSYS),
    ];
    for (rules, answer) in filters {
        let refusal = SeccompAction::Errno(answer.unsigned_abs());
        let filter = SeccompFilter::new(rules, SeccompAction::Allow, refusal, arch);
        let program = filter.and_then(BpfProgram::try_from).map_err(io::Error::other)?;
        apply_filter(&program).map_err(io::Error::other)?;
    }
    Ok(())
}

/// Sockets that are refused.
fn sockets() -> io::Result<Vec<SeccompRule>> {
    let is = |argument: u8, value: u64| {
        SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
    };
    let mut rules = vec![SeccompRule::new(vec![is(0, SMC).map_err(io::Error::other)?])];
    for (family, protocol) in FAMILIES.iter().flat_map(|family| OVER_TCP.map(|protocol| (family, protocol))) {
        let conditions = [is(0, u64::from(family.unsigned_abs())), is(2, protocol)];
        let conditions = conditions.into_iter().collect::<Result<_, _>>().map_err(io::Error::other)?;
        rules.push(SeccompRule::new(conditions));
    }
    rules.into_iter().collect::<Result<_, _>>().map_err(io::Error::other)
}
