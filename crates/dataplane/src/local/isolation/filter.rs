//! System calls that a confined program may not use, because they bypass its Landlock rules.
//!
//! The port rules cover TCP only: a Multipath TCP or SMC socket could bind any port. Operations queued through io_uring
//! bypass seccomp filters.

use std::collections::BTreeMap;
use std::io;

use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

/// Protocols of the internet families that fall back to TCP: SMC and Multipath TCP.
const OVER_TCP: [u64; 2] = [256, 262];
const FAMILIES: [i32; 2] = [libc::AF_INET, libc::AF_INET6];
/// The family of SMC, which falls back to TCP.
const SMC: u64 = 43;
/// The offset of the x32 ABI's system call numbers on x86_64.
const X32: i64 = 0x4000_0000;

/// Applies the filters to this process and its descendants. They need `no_new_privs`.
pub(super) fn apply() -> io::Result<()> {
    let Ok(arch) = TargetArch::try_from(std::env::consts::ARCH) else {
        // The port rules still apply, with these gaps.
        return Ok(());
    };
    let rules = |call: i64, rules: Vec<SeccompRule>| {
        let numbers = if std::env::consts::ARCH == "x86_64" { vec![call, call | X32] } else { vec![call] };
        numbers.into_iter().map(|number| (number, rules.clone())).collect::<BTreeMap<_, _>>()
    };
    // Programs handle both errors and fall back to ordinary calls.
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

/// The sockets to refuse.
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
