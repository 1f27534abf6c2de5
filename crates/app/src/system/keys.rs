//! The modules that may open the vault, and how much of the right each gets.

use podium_store::{Doorkeeper, Founder, Housekeeper, Steward, System};

use super::{Key, sealed};

macro_rules! acting {
    ($right:ident by $convert:expr; $($module:path),+ $(,)?) => {
        $(
            impl sealed::Sealed for $module {}

            impl Key for $module {
                type Right = $right;

                fn right(system: System) -> $right {
                    $convert(system)
                }
            }
        )+
    };
}

acting! {
    Doorkeeper by System::doorkeeper;
    crate::agents::SystemKey,
    crate::audit::SystemKey,
    crate::auth::SystemKey,
    crate::authority::SystemKey,
    crate::device_sign_ins::SystemKey,
    crate::front_door::SystemKey,
    crate::key_reload::SystemKey,
    crate::own::SystemKey,
    crate::sessions::SystemKey,
    crate::user_sessions::SystemKey,
}

acting! {
    Founder by System::founder;
    crate::start::SystemKey,
}

acting! {
    Housekeeper by System::housekeeper;
    crate::maintenance::SystemKey,
}

acting! {
    Steward by System::steward;
    crate::deploys::expiry::SystemKey,
    crate::disk::SystemKey,
    crate::events::wakes::SystemKey,
    crate::follow::SystemKey,
    crate::meters::SystemKey,
    crate::nodes::SystemKey,
    crate::webhooks::wakes::SystemKey,
    crate::work::SystemKey,
}

acting! {
    System by std::convert::identity;
    crate::cx::SystemKey,
    crate::deploys::uploads::SystemKey,
    crate::idempotency::SystemKey,
}
