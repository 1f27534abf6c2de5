//! What a process that starts with privileges gives up before it executes anything else.

use std::{fs, io};

use rustix::process::{DumpableBehavior, Gid, Uid, getegid, geteuid, set_dumpable_behavior};
use rustix::thread::{
    CapabilitySet, CapabilitySets, UnshareFlags, set_capabilities, set_keep_capabilities, set_thread_groups,
    set_thread_res_gid, set_thread_res_uid,
};

/// Switches to another user without supplementary groups; optionally keeps the capability to create namespaces, which
/// some systems reserve for root.
pub(super) fn become_user(user: Option<u32>, may_make: bool) -> io::Result<()> {
    let Some(number) = user else { return Ok(()) };
    let (user, group) = (Uid::from_raw(number), Gid::from_raw(number));
    if may_make {
        set_keep_capabilities(true)?;
    }
    set_thread_groups(&[])?;
    set_thread_res_gid(group, group, group)?;
    set_thread_res_uid(user, user, user)?;
    if may_make {
        let making = CapabilitySet::SYS_ADMIN;
        let raised =
            CapabilitySets { effective: making, permitted: making, inheritable: CapabilitySet::empty() };
        // It may not be needed.
        let _ = set_capabilities(None, raised);
        set_keep_capabilities(false)?;
    }
    // Makes the process the owner of its own /proc files again.
    Ok(set_dumpable_behavior(DumpableBehavior::Dumpable)?)
}

pub(super) fn drop_capabilities() -> io::Result<()> {
    let none = CapabilitySet::empty();
    Ok(set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?)
}

/// Enters new namespaces.
pub(super) fn unshare(own: UnshareFlags) -> io::Result<()> {
    #[expect(deprecated, reason = "its successor is unsafe because of flags that are not used here")]
    Ok(rustix::thread::unshare(own)?)
}

/// Enters new namespaces without privileges: one of them is a user namespace that maps only the current user.
pub(super) fn unshare_as_user(enter: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let (user, group) = (geteuid().as_raw(), getegid().as_raw());
    enter()?;
    fs::write("/proc/self/setgroups", "deny")?;
    fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
    fs::write("/proc/self/gid_map", format!("{group} {group} 1"))
}
