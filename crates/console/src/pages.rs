//! The pages, one module for each resource. What they are made of is imported here, once for all of them.

pub(crate) mod account;
pub(crate) mod address_ranges;
pub(crate) mod alerts;
pub(crate) mod audit;
pub(crate) mod clusters;
pub(crate) mod declared_sets;
pub(crate) mod deployment;
pub(crate) mod deployments;
pub(crate) mod design;
pub(crate) mod environment;
pub(crate) mod operations;
pub(crate) mod overview;
pub(crate) mod places;
pub(crate) mod plans;
pub(crate) mod problem;
pub(crate) mod roles;
pub(crate) mod settings;
pub(crate) mod teams;
pub(crate) mod tokens;
pub(crate) mod users;
pub(crate) mod webhooks;
pub(crate) mod workspaces;

use askama::Template;

use crate::answer::{Answer, Result};
use crate::calls::{Problem, least, to_value};
use crate::form::{Choice, Field, FieldKind, Form, FormPage};
use crate::list::{Cell, Empty, Filter, ListPage, PAGE, Pager, Row, Table, readable};
use crate::params::Params;
use crate::shell::Shell;
use crate::view::{self, Html, Tone};
use crate::visit::{OrganizationVisit, Visit, id};
