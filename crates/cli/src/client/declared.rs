//! Declarations: files that say what there is, compared with what is there, and turned into one plan of the server.
//!
//! Everything is compared in the form of the files, with names in the place of ids: what is there is brought into that form
//! ([`kinds`]), and a field that a file names must have that value ([`compare`]). What differs becomes calls ([`calls`]), which
//! the server plans as a whole; exactly that plan is applied, or nothing.

pub(crate) mod calls;
pub(crate) mod compare;
pub(crate) mod files;
pub(crate) mod keys;
pub(crate) mod kinds;
pub(crate) mod planner;
pub(crate) mod printing;
mod references;
pub(crate) mod sets;
pub(crate) mod state;
