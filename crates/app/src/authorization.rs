//! Permission groups.

use podium_api::Many;
use podium_api::authorization::{self as api, PermissionGroup};
use podium_domain::groups;

use crate::cx::{Call, Cx};
use crate::error::Result;

/// Lists the permissions that custom roles can contain.
pub async fn list_permission_groups(
    _: Cx<()>,
    call: Call<api::ListGroups>,
) -> Result<Many<Vec<PermissionGroup>>> {
    Ok(Many(groups::groups(call.query.scope_type)))
}
