//! Signing in a terminal with a browser: the terminal shows a short code, a person who is signed in at the console
//! approves it there, and the terminal gets a session of that person.

use crate::Timestamp;
use crate::auth::Session;
use crate::enums::{DeviceSignInDecision, DeviceSignInStatus};
use crate::reply::Many;

endpoints! {
    tag "Auth";

    /// Start to sign in a terminal with a browser
    Start: POST "/auth/device/start" as "StartDeviceSignIn" {
        body: StartDeviceSignInRequest, reply: Many<StartedDeviceSignIn>,
        open_to: Anyone, without_event: "nobody has signed in yet",
        also: [403], marks: [secret_reply, not_audited],
    }
    /// Get the session once a person has approved it
    Finish: POST "/auth/device/finish" as "FinishDeviceSignIn" {
        body: FinishDeviceSignInRequest, reply: Many<DeviceSignInProgress>,
        open_to: Anyone, without_event: "a session belongs to no organization",
        also: [404], marks: [secret_reply, not_audited],
    }
    /// Approve or deny the sign-in of a terminal
    Decide: POST "/auth/device/decide" as "DecideDeviceSignIn" {
        body: DecideDeviceSignInRequest,
        open_to: SignedIn, without_event: "a session belongs to no organization", also: [403, 404],
    }
}

wire! {
    /// A terminal that wants to be signed in.
    pub struct StartDeviceSignInRequest {
        /// What the terminal calls its machine; the person who approves the sign-in sees it.
        #[schemars(length(max = 128))]
        pub client_name: Option<String>,
    }

    /// A sign-in that waits for a person.
    pub struct StartedDeviceSignIn {
        /// The secret of the terminal, which gets the session.
        #[schemars(extend("format" = "password"))]
        pub device_code: String,
        /// The code that the person compares or types.
        pub user_code: String,
        /// The page to open, with the code in it.
        pub verification_url: String,
        /// Until when the sign-in can be approved.
        pub expires_at: Timestamp,
        /// How many seconds to wait between two questions whether it was approved.
        pub interval_seconds: u32,
    }

    /// Asks for the session of a sign-in.
    pub struct FinishDeviceSignInRequest {
        /// The secret of the terminal.
        #[schemars(length(min = 1, max = 256), extend("format" = "password"))]
        pub device_code: String,
    }

    /// What a person has decided, and the session if it was approved. The session is given once.
    pub struct DeviceSignInProgress {
        /// Whether it was approved.
        pub status: DeviceSignInStatus,
        /// The session, where it was.
        pub session: Option<Session>,
    }

    /// Approves or denies a sign-in.
    pub struct DecideDeviceSignInRequest {
        /// The code that the terminal shows. Case, spaces and hyphens do not matter.
        #[schemars(length(min = 1, max = 32))]
        pub user_code: String,
        /// Whether the terminal gets a session of yours.
        pub decision: DeviceSignInDecision,
    }
}
