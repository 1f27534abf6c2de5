//! The system's own right to the database, and the modules that may use it.
//!
//! Functions behind endpoints act for their caller, with the scope that was proven for it. A few modules act for the
//! server itself: they identify callers, manage sessions and stored responses, write audit records, clean up, or serve
//! endpoints that a scope cannot serve (`auth`, `device_sign_ins`, `user_sessions`, `front_door::open`, `deploys::uploads`,
//! `own`), or run the units of calls (`cx`). They are listed in `keys` and nowhere else, with how much of the
//! right each gets, and ARCHITECTURE.md says why it needs that. Each has a key that only it can construct, so no other
//! module can open the vault, even though every module can see it. From outside this crate there is not even a vault:
//!
//! ```compile_fail,E0616
//! fn take(app: &podium_app::App) {
//!     let _ = &app.system;
//! }
//! ```
//!
//! Nor is there a database for anybody else:
//!
//! ```compile_fail,E0616
//! fn take(app: &podium_app::App) {
//!     let _ = &app.rows;
//! }
//! ```
//!
//! ```compile_fail,E0061
//! fn take(app: &podium_app::App) {
//!     let _ = app.db();
//! }
//! ```

mod keys;

use podium_db::Db;
use podium_store::{Doorkeeper, System};

use crate::App;

/// The database, which only the system reaches. Calls reach it through their context, with their caller's scope.
pub(crate) struct Rows(Db);

impl Rows {
    pub(crate) const fn new(db: Db) -> Self {
        Self(db)
    }
}

impl App {
    pub fn db(&self, _: &Doorkeeper) -> &Db {
        &self.rows.0
    }
}

/// Holds the system capability for modules that have a key.
pub(crate) struct Vault(System);

/// A key of the vault. Its list is closed: no other module can implement this.
pub(crate) trait Key: sealed::Sealed {
    /// What it opens: all of the system's right, or the part for its purpose.
    type Right;

    fn right(system: System) -> Self::Right;
}

mod sealed {
    pub(crate) trait Sealed {}
}

impl Vault {
    pub(crate) const fn new(system: System) -> Self {
        Self(system)
    }

    /// The right of a module that has a key.
    pub(crate) fn open<K: Key>(&self, _: K) -> K::Right {
        K::right(self.0)
    }
}

/// Defines the key of a module on the list, and `system`, which opens the vault with it. Both are the module's
/// own: others can name the key, and cannot make one.
macro_rules! acts_for_the_system {
    () => {
        /// Opens the vault for this module and those inside it.
        pub(crate) struct SystemKey(());

        fn system(app: &$crate::App) -> <SystemKey as $crate::system::Key>::Right {
            app.system.open(SystemKey(()))
        }
    };
}

/// Defines `db`, for a module on the list.
macro_rules! reaches_rows {
    () => {
        fn db(app: &$crate::App) -> &podium_db::Db {
            app.db(&system(app))
        }
    };
}

pub(crate) use {acts_for_the_system, reaches_rows};
