//! How endpoints are declared, and the list of all of them.

/// Declares the endpoints of a resource: a type for each ([`Endpoint`](crate::Endpoint)), and `ENDPOINTS`, the list of
/// them all.
///
/// The keys inside the braces, in this order:
///
/// | key | meaning | default |
/// |---|---|---|
/// | `path` | the ids in the path, a [`PathParams`](crate::path::PathParams) | `()` |
/// | `query`, `body` | the input | [`Nothing`](crate::Nothing) |
/// | `reply` | the response, a [`Reply`](crate::Reply) | [`Nothing`](crate::Nothing), status 204 |
/// | `permission` | the required permission | |
/// | `open_to` | instead of a permission: `Anyone`, `SignedIn`, `MembersOnly` or `ByAgents` of [`endpoint`](crate::endpoint) | |
/// | `or_creator_with` | a weaker permission that is enough for resources that the caller created; the function checks the creator | |
/// | `target_in_body` | the field of the body that names the permission's target | the path names it |
/// | `event` | what a call changes in an organization, an [`EventType`](crate::enums::EventType) | |
/// | `without_event` | instead of an event: why a call other than a GET has none | |
/// | `also` | statuses beyond those that follow from the rest | none |
/// | `marks` | `secret_reply`, `live`, `starts_operation`, `not_audited` of [`Description`](crate::Description) | none |
///
/// The doc comment is the summary in the OpenAPI document.
///
/// ```
/// use podium_api::{Endpoint, One, endpoints, path::OfTeam, teams::Team};
///
/// endpoints! {
///     tag "Team";
///
///     /// Get a team
///     Get: GET "/organizations/{organizationId}/teams/{teamId}" as "GetTeam" {
///         path: OfTeam, reply: One<Team>,
///         permission: "organization.teams.get",
///     }
/// }
/// assert_eq!(Get::DESCRIPTION.summary, "Get a team");
/// assert_eq!(ENDPOINTS.len(), 1);
/// ```
///
/// A path whose parameters are not the fields of its path type does not compile, be one missing, misspelt, or in
/// another place:
///
/// ```compile_fail,E0080
/// # use podium_api::{One, endpoints, path::OfTeam, teams::Team};
/// endpoints! {
///     tag "Team";
///
///     /// Get a team
///     Get: GET "/organizations/{organizationId}/teams/{id}" as "GetTeam" {
///         path: OfTeam, reply: One<Team>,
///         permission: "organization.teams.get",
///     }
/// }
/// ```
///
/// Neither does an endpoint without `permission` or `open_to`:
///
/// ```compile_fail
/// # use podium_api::{One, endpoints, path::OfTeam, teams::Team};
/// endpoints! {
///     tag "Team";
///
///     /// Get a team
///     Get: GET "/organizations/{organizationId}/teams/{teamId}" as "GetTeam" {
///         path: OfTeam, reply: One<Team>,
///     }
/// }
/// ```
///
/// Nor does one that may change something and says nothing of an event:
///
/// ```compile_fail
/// # use podium_api::{endpoints, path::OfTeam};
/// endpoints! {
///     tag "Team";
///
///     /// Delete a team
///     Delete: DELETE "/organizations/{organizationId}/teams/{teamId}" as "DeleteTeam" {
///         path: OfTeam,
///         permission: "organization.teams.delete",
///     }
/// }
/// ```
///
/// The reason is not empty:
///
/// ```compile_fail,E0080
/// # use podium_api::{endpoints, path::OfTeam};
/// endpoints! {
///     tag "Team";
///
///     /// Delete a team
///     Delete: DELETE "/organizations/{organizationId}/teams/{teamId}" as "DeleteTeam" {
///         path: OfTeam,
///         permission: "organization.teams.delete", without_event: "",
///     }
/// }
/// ```
#[macro_export]
macro_rules! endpoints {
    (tag $tag:literal; $(
        #[doc = $summary:literal]
        $name:ident: $method:ident $route:literal as $id:literal {
            $(path: $path:ty,)?
            $(query: $query:ty,)?
            $(body: $body:ty,)?
            $(reply: $reply:ty,)?
            $(permission: $permission:expr,)?
            $(open_to: $admission:ident,)?
            $(or_creator_with: $makers:expr,)?
            $(target_in_body: $target:literal,)?
            $(event: $event:ident,)?
            $(without_event: $reason:literal,)?
            $(also: $also:expr,)?
            $(marks: [$($mark:ident),+],)?
        }
    )+) => {
        $(
            #[doc = concat!($summary, ": `", stringify!($method), " ", $route, "`.")]
            pub enum $name {}

            impl $crate::Endpoint for $name {
                type Admission = $crate::endpoints!(@admission $($permission)? $(; $admission)?);
                type Path = $crate::endpoints!(@or () $(, $path)?);
                type Query = $crate::endpoints!(@or $crate::Nothing $(, $query)?);
                type Body = $crate::endpoints!(@or $crate::Nothing $(, $body)?);
                type Reply = $crate::endpoints!(@or $crate::Nothing $(, $reply)?);
                const DESCRIPTION: &'static $crate::Description = &{
                    let access = $crate::endpoints!(@access $($permission)? $(; $admission)?);
                    let method = $crate::Method::$method;
                    let mut description = $crate::Description::new::<Self>(method, $id, $route, access);
                    (description.tag, description.summary) = ($tag, $summary.trim_ascii());
                    description.event = $crate::endpoints!(@event $method $($event)? $(; $reason)?);
                    $(description.makers_permission = Some($makers);)?
                    $(description.target_in_body = Some($target);)?
                    $(description.also = &$also;)?
                    $($($crate::endpoints!(@mark description $mark);)+)?
                    description
                };

                fn read_query(checked: $crate::json::Value) -> Result<Self::Query, Vec<$crate::FieldError>> {
                    $crate::decode::typed(checked)
                }

                fn read_body(checked: $crate::json::Value) -> Result<Self::Body, Vec<$crate::FieldError>> {
                    $crate::decode::typed(checked)
                }

                fn read_reply(json: &[u8]) -> $crate::json::Result<$crate::json::BodyOf<Self>> {
                    $crate::json::read(json)
                }

                fn query_schema(generator: &mut $crate::json::SchemaGenerator) -> $crate::json::Schema {
                    <Self::Query as $crate::json::JsonSchema>::json_schema(generator)
                }

                fn body_schema(generator: &mut $crate::json::SchemaGenerator) -> $crate::json::Schema {
                    generator.subschema_for::<Self::Body>()
                }

                fn reply_schema(generator: &mut $crate::json::SchemaGenerator) -> $crate::json::Schema {
                    generator.subschema_for::<$crate::json::BodyOf<Self>>()
                }
            }

            const _: () = assert!(
                $crate::path::are_named($route, <<$name as $crate::Endpoint>::Path as $crate::path::PathParams>::NAMES),
                "{}",
                concat!("the parameters of \"", $route, "\" are not the fields of its path type, in their order"),
            );
        )+

        /// The endpoints of this resource.
        pub const ENDPOINTS: &[$crate::Description] = &[$(*<$name as $crate::Endpoint>::DESCRIPTION),+];

        const _: () = assert!(
            $crate::is_registered(module_path!()),
            "a module that declares endpoints stands in `registry!`, in crates/api/src/lib.rs",
        );
    };
    (@or $default:ty) => { $default };
    (@or $default:ty, $given:ty) => { $given };
    (@admission $permission:expr) => { $crate::endpoint::Permitted };
    (@admission ; $admission:ident) => { $crate::endpoint::$admission };
    (@admission $($other:tt)*) => { compile_error!("an endpoint takes a `permission`, or is `open_to` somebody") };
    (@mark $description:ident not_audited) => { $description.audited = false };
    (@mark $description:ident $mark:ident) => { $description.$mark = true };
    (@event GET) => { None };
    (@event POST $event:ident) => { Some($crate::enums::EventType::$event) };
    (@event DELETE $event:ident) => { Some($crate::enums::EventType::$event) };
    (@event POST ; $reason:literal) => { $crate::endpoint::no_event_because($reason) };
    (@event DELETE ; $reason:literal) => { $crate::endpoint::no_event_because($reason) };
    (@event $($other:tt)*) => {
        compile_error!("an endpoint that changes something has an `event`, or says why it is `without_event`")
    };
    (@access $permission:expr) => { $crate::Access::Permission($permission) };
    (@access ; $admission:ident) => { <$crate::endpoint::$admission as $crate::endpoint::Open>::ACCESS };
    (@access $($other:tt)*) => { $crate::Access::Public };
}

/// Lists the modules that declare endpoints, in the order of `contract/operations.txt`. For this crate; exported for the
/// tests below.
///
/// ```
/// use podium_api::{roles, teams};
/// podium_api::registry! { teams, roles }
/// # fn main() {
/// assert_eq!(ENDPOINTS.len(), teams::ENDPOINTS.len() + roles::ENDPOINTS.len());
/// # }
/// ```
///
/// Two endpoints with the same id do not compile:
///
/// ```compile_fail,E0080
/// use podium_api::teams;
/// mod others {
///     podium_api::endpoints! {
///         tag "Team";
///
///         /// Delete the members of a team
///         Delete: DELETE "/organizations/{organizationId}/teams/{teamId}/members" as "GetTeam" {
///             path: podium_api::path::OfTeam,
///             permission: "organization.teams.delete", event: TeamDeleted,
///         }
///     }
/// }
/// podium_api::registry! { teams, others }
/// # fn main() {}
/// ```
///
/// Neither do two with the same method and path: only one of them would be reachable, perhaps the one that requires less.
///
/// ```compile_fail,E0080
/// use podium_api::teams;
/// mod others {
///     podium_api::endpoints! {
///         tag "Team";
///
///         /// Look at a team
///         Look: GET "/organizations/{organizationId}/teams/{teamId}" as "LookAtTeam" {
///             path: podium_api::path::OfTeam, reply: podium_api::One<podium_api::teams::Team>,
///             open_to: MembersOnly,
///         }
///     }
/// }
/// podium_api::registry! { teams, others }
/// # fn main() {}
/// ```
///
/// Nor do two whose paths differ only in the names of their parameters:
///
/// ```compile_fail,E0080
/// use podium_api::teams;
/// mod others {
///     podium_api::endpoints! {
///         tag "Team";
///
///         /// Look at a team
///         Look: GET "/organizations/{organizationId}/teams/{userId}" as "LookAtTeam" {
///             path: podium_api::path::OfUser, reply: podium_api::One<podium_api::teams::Team>,
///             open_to: MembersOnly,
///         }
///     }
/// }
/// podium_api::registry! { teams, others }
/// # fn main() {}
/// ```
#[doc(hidden)]
#[macro_export]
macro_rules! registry {
    ($($resource:ident),+ $(,)?) => {
        const RESOURCES: &[&str] = &[$(concat!("podium_api::", stringify!($resource))),+];
        const BY_RESOURCE: &[&[$crate::Description]] = &[$($resource::ENDPOINTS),+];

        /// Every endpoint.
        pub const ENDPOINTS: &[$crate::Description] =
            &$crate::distinct::joined::<{ $crate::distinct::count(BY_RESOURCE) }>(BY_RESOURCE);

        const _: () = $crate::distinct::check(ENDPOINTS);

        /// Whether the endpoints of a module are among [`ENDPOINTS`], if it is a module of this crate.
        #[doc(hidden)]
        pub const fn is_registered(module: &str) -> bool {
            !$crate::const_text::starts_with(module, "podium_api::")
                || $crate::const_text::contains(RESOURCES, module)
        }
    };
}
