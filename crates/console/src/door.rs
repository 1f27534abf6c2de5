//! Pages around the console, for people who are not inside: signing in and out, refusals, invites. They work without scripts,
//! but for the one that accepts an invite, and in the same style.

use askama::Template;
use podium_api::text::printable;

/// What is said, and where to go from there.
#[derive(Debug, Template)]
#[template(path = "door/notice.html")]
pub struct Notice<'a> {
    pub title: &'a str,
    pub message: &'a str,
    /// A text, and where it leads.
    pub link: Option<(&'a str, &'a str)>,
}

/// A page that leads on by itself.
#[derive(Debug, Template)]
#[template(path = "door/again.html")]
pub struct Again<'a> {
    pub to: &'a str,
}

#[derive(Debug, Template)]
#[template(path = "door/sign-in.html")]
pub struct SignIn<'a> {
    /// Where to go afterwards.
    pub to: &'a str,
    /// Why it did not work, if it was sent before.
    pub problem: &'a str,
}

#[derive(Debug, Template)]
#[template(path = "door/sign-out.html")]
pub struct SignOut;

/// The form that asks for the code of a terminal.
#[derive(Debug, Template)]
#[template(path = "door/device-code.html")]
pub struct DeviceCode<'a> {
    pub person: &'a str,
    /// Why it did not work, if it was sent before.
    pub problem: &'a str,
}

/// The form that approves or denies the sign-in of a terminal.
#[derive(Debug, Template)]
#[template(path = "door/device-decision.html")]
pub struct DeviceDecision<'a> {
    pub code: &'a str,
    pub machine: &'a str,
    pub program: &'a str,
    pub address: &'a str,
    pub asked: &'a str,
    pub person: &'a str,
    pub hours: &'a str,
    pub form_token: &'a str,
}

/// Where the link of an invite leads.
#[derive(Debug, Template)]
#[template(path = "door/accept-invite.html")]
pub struct AcceptInvite;

/// A page around the console.
pub trait DoorPage {
    /// Its HTML. Whatever text it shows, it stays in its place.
    fn html(&self) -> String;
}

impl<T: Template> DoorPage for T {
    fn html(&self) -> String {
        let html = self.render().unwrap_or_else(|_| "The page could not be rendered.".to_owned());
        printable(&html).into_owned()
    }
}
