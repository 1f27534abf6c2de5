//! How the types of the wire are declared.

/// Declares types of the wire, one after the other:
///
/// - `pub struct`: a JSON object, with the names of its fields in camel case, and without those that are `None`.
/// - `stamped pub struct`: one that ends with who created and last changed it, and when. The type of the two subjects is
///   given in brackets.
/// - `sorted pub struct`: the query of a list, which ends with the page. The fields that the list can be sorted by are given
///   in brackets. A limit beyond the largest is refused, or, where the query is `clamped`, becomes the largest.
/// - `declared pub struct`: one in a file of declarations. Those are compared, and a field that they do not have is refused.
/// - `page`: a page of a list, with its items and where in the list they are.
/// - `sorts`: the fields that a list can be sorted by whose query does not end with the page.
///
/// Further attributes follow the doc comment.
macro_rules! wire {
    () => {};
    ($(#[$meta:meta])* pub struct $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        #[::serde_with::skip_serializing_none]
        #[derive(Clone, Debug, ::serde::Serialize, ::serde::Deserialize, ::schemars::JsonSchema)]
        #[serde(rename_all = "camelCase")]
        $(#[$meta])*
        pub struct $name { $($fields)* }

        impl $crate::json::Written for $name {
            fn write(&self, to: &mut Vec<u8>) -> $crate::json::Result<()> {
                ::serde_json::to_writer(to, self)
            }
        }

        wire! { $($rest)* }
    };
    ($(#[$meta:meta])* stamped($by:ty) pub struct $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        wire! {
            $(#[$meta])*
            pub struct $name {
                $($fields)*
                /// When it was created.
                pub created_at: $crate::Timestamp,
                /// Who created it.
                pub created_by: $by,
                /// When it was last changed.
                pub updated_at: $crate::Timestamp,
                /// Who last changed it.
                pub updated_by: $by,
            }
        }

        wire! { $($rest)* }
    };
    ($(#[$meta:meta])* sorted[$($key:literal),+] pub struct $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        wire! { @query $(#[$meta])* $name { $($fields)* } }
        wire! { sorts $name [$($key),+]; $($rest)* }
    };
    ($(#[$meta:meta])* clamped sorted[$($key:literal),+] pub struct $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        wire! { @query $(#[$meta])* $name { $($fields)* } }
        wire! { clamped sorts $name [$($key),+]; $($rest)* }
    };
    (@query $(#[$meta:meta])* $name:ident { $($fields:tt)* }) => {
        wire! {
            $(#[$meta])*
            #[derive(Default)]
            pub struct $name {
                $($fields)*
                /// The page.
                #[serde(flatten)]
                pub page: $crate::page::Page<$name>,
            }
        }
    };
    ($(#[$meta:meta])* declared pub struct $name:ident { $($fields:tt)* } $($rest:tt)*) => {
        wire! {
            $(#[$meta])*
            #[derive(PartialEq)]
            #[serde(deny_unknown_fields)]
            pub struct $name { $($fields)* }
        }

        wire! { $($rest)* }
    };
    ($(#[$meta:meta])* page $name:ident { $(#[$about:meta])* $items:ident: Vec<$item:ty> } $($rest:tt)*) => {
        wire! {
            $(#[$meta])*
            pub struct $name {
                $(#[$about])*
                pub $items: Vec<$item>,
                /// The effective limit.
                pub limit: u32,
                /// How many items were skipped.
                pub offset: u64,
                /// Total number of items.
                pub total_count: u64,
            }
        }

        impl $crate::page::Paginated for $name {
            type Item = $item;

            fn new($items: Vec<$item>, limit: u32, offset: u64, total_count: u64) -> Self {
                Self { $items, limit, offset, total_count }
            }
        }

        wire! { $($rest)* }
    };
    (sorts $name:ident [$($key:literal),+]; $($rest:tt)*) => {
        impl $crate::page::SortKeys for $name {
            const KEYS: &'static [&'static str] = &[$($key),+];
        }

        wire! { $($rest)* }
    };
    (clamped sorts $name:ident [$($key:literal),+]; $($rest:tt)*) => {
        impl $crate::page::SortKeys for $name {
            const KEYS: &'static [&'static str] = &[$($key),+];
            const LIMIT_IS_BOUNDED: bool = false;
        }

        wire! { $($rest)* }
    };
}
