//! Permission groups.

use podium_api::authorization::{ListPermissionGroups, PermissionGroup};
use podium_api::{Many, Nothing};
use podium_domain::groups;

use crate::cx::{Call, Cx};
use crate::error::Result;

/// Lists the permissions that custom roles are made of.
pub async fn list_permission_groups(
    _: Cx<()>,
    call: Call<(), ListPermissionGroups, Nothing>,
) -> Result<Many<Vec<PermissionGroup>>> {
    Ok(Many(groups::groups(call.query.scope_type)))
}
