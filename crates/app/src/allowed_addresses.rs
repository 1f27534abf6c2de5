//! From where an organization may be called.

use podium_db::Conn;
use podium_domain::allowed_ip_address_ranges::Allowed;
use podium_store::{Scope, allowed_ip_address_ranges as ranges};

use crate::error::Result;

/// The addresses that may call an organization. A range that cannot be parsed admits nobody, and is logged.
pub(crate) fn of(conn: &Conn, scope: &Scope) -> Result<Allowed> {
    let allowed = Allowed::read(ranges::all(conn, scope)?);
    if !allowed.unreadable().is_empty() {
        let (organization_id, ranges) = (scope.organization_id(), allowed.unreadable());
        tracing::error!(%organization_id, ?ranges, "stored address ranges cannot be parsed; nobody is admitted");
    }
    Ok(allowed)
}
