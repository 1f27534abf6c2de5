//! Statements, written once for both engines.
//!
//! The shared dialect is what SQLite and PostgreSQL both take, with seven additions:
//!
//! | written                                 | SQLite                                | PostgreSQL                          |
//! |-----------------------------------------|---------------------------------------|-------------------------------------|
//! | `$1`                                    | `?1`                                  | `$1`                                |
//! | `x IN ($1[])`, `x NOT IN ($1[])`        | `x IN (SELECT value FROM json_each(?1))` | `x = ANY($1)`, `x <> ALL($1)`    |
//! | `SETTLED(column)`                       | `1=1`                                 | `column` is below the oldest running transaction |
//! | `SUCCEEDS(t, s, $1, $2)`                | `t = ?1 AND s > ?2`                   | `(t, s) > ($1, $2)`                 |
//! | `ROWID(t)`                              | `t.rowid`                             | `NULL::bigint`                      |
//! | `SKIPLOCKED`, after a `LIMIT`           | nothing: there is one writer          | `FOR UPDATE SKIP LOCKED`            |
//! | `STOPAT(20)`                            | nothing                               | `LIMIT 20`: what its planner reckons with |
//!
//! A position in a log is a transaction and a number. On SQLite, which has one writer, the transaction is always 0 and the
//! number is the rowid; it would not search an index for a pair that ends with the rowid, but walk it from its start.
//!
//! It does not parse SQL: quoted text is copied, everything else is replaced in place.

use std::borrow::Cow;
use std::sync::OnceLock;

use crate::Engine;

/// A statement; its text for each engine is made at first use and kept.
pub struct Sql {
    text: Cow<'static, str>,
    sqlite: OnceLock<Box<str>>,
    postgres: OnceLock<Box<str>>,
}

impl Sql {
    /// A statement of the program, meant to be a `static`: see [`statements!`](crate::statements).
    pub const fn new(text: &'static str) -> Self {
        Self { text: Cow::Borrowed(text), sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    /// A statement composed at run time. Keep the number of different texts small: each is prepared.
    pub fn owned(text: String) -> Self {
        Self { text: Cow::Owned(text), sqlite: OnceLock::new(), postgres: OnceLock::new() }
    }

    pub fn text(&self) -> &str {
        &self.text
    }

    /// The text if it is `'static`: its address then identifies it.
    pub(crate) fn lasting(&self) -> Option<&'static str> {
        if let Cow::Borrowed(text) = self.text { Some(text) } else { None }
    }

    pub(crate) fn sqlite(&self) -> &str {
        self.sqlite.get_or_init(|| rewrite(&self.text, Engine::Sqlite).into())
    }

    pub(crate) fn postgres(&self) -> &str {
        self.postgres.get_or_init(|| rewrite(&self.text, Engine::Postgres).into())
    }
}

impl std::fmt::Debug for Sql {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Sql").field(&self.text).finish()
    }
}

/// Translates the shared dialect for one engine.
fn rewrite(text: &str, engine: Engine) -> String {
    let mut out = String::with_capacity(text.len() + 32);
    let mut rest = text;
    while let Some(at) = rest.find(['\'', '"', '$', 'R', 'S']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        rest = match rest.as_bytes()[0] {
            b'$' => placeholder(&mut out, rest, engine),
            b'R' => rowid(&mut out, rest, engine),
            b'S' => settled(&mut out, rest, engine),
            _ => quoted(&mut out, rest),
        };
    }
    out.push_str(rest);
    out
}

/// Copies quoted text; a doubled quote inside is two quoted texts side by side, which comes to the same.
fn quoted<'t>(out: &mut String, rest: &'t str) -> &'t str {
    let end = rest[1..].find(&rest[..1]).map_or(rest.len(), |at| at + 2);
    out.push_str(&rest[..end]);
    &rest[end..]
}

fn placeholder<'t>(out: &mut String, rest: &'t str, engine: Engine) -> &'t str {
    let end = rest[1..].find(|c: char| !c.is_ascii_digit()).map_or(rest.len(), |at| at + 1);
    let (number, rest) = (&rest[1..end], &rest[end..]);
    let list = rest.strip_prefix("[])").filter(|_| out.ends_with(" IN ("));
    match (engine, list) {
        (Engine::Sqlite, Some(rest)) => {
            out.extend(["SELECT value FROM json_each(?", number, "))"]);
            rest
        }
        (Engine::Sqlite, None) => {
            out.extend(["?", number]);
            rest
        }
        (Engine::Postgres, Some(rest)) => {
            let (suffix, operator) =
                if out.ends_with(" NOT IN (") { (" NOT IN (", " <> ALL($") } else { (" IN (", " = ANY($") };
            out.truncate(out.len() - suffix.len());
            out.extend([operator, number, ")"]);
            rest
        }
        (Engine::Postgres, None) => {
            out.extend(["$", number]);
            rest
        }
    }
}

fn rowid<'t>(out: &mut String, rest: &'t str, engine: Engine) -> &'t str {
    let Some((table, after)) = rest.strip_prefix("ROWID(").and_then(|inner| inner.split_once(')')) else {
        out.push('R');
        return &rest[1..];
    };
    match engine {
        Engine::Sqlite => out.extend([table, ".rowid"]),
        Engine::Postgres => out.push_str("NULL::bigint"),
    }
    after
}

fn settled<'t>(out: &mut String, rest: &'t str, engine: Engine) -> &'t str {
    if let Some(after) = rest.strip_prefix("SKIPLOCKED") {
        if engine == Engine::Postgres {
            out.push_str("FOR UPDATE SKIP LOCKED");
        }
        return after;
    }
    if let Some((most, after)) = rest.strip_prefix("STOPAT(").and_then(|inner| inner.split_once(')')) {
        if engine == Engine::Postgres {
            out.extend(["LIMIT ", most]);
        }
        return after;
    }
    if let Some((positions, after)) = rest.strip_prefix("SUCCEEDS(").and_then(|inner| inner.split_once(')'))
        && let [transaction, number, of, than] = positions.split(", ").collect::<Vec<_>>()[..]
    {
        let (of, than) = (rewrite(of, engine), rewrite(than, engine));
        match engine {
            Engine::Sqlite => out.extend([transaction, " = ", &of, " AND ", number, " > ", &than]),
            Engine::Postgres => {
                out.extend(["(", transaction, ", ", number, ") > (", &of, ", ", &than, ")"]);
            }
        }
        return after;
    }
    let Some((column, after)) = rest.strip_prefix("SETTLED(").and_then(|inner| inner.split_once(')')) else {
        out.push('S');
        return &rest[1..];
    };
    match engine {
        Engine::Sqlite => out.push_str("1=1"),
        Engine::Postgres => {
            out.extend([column, " < pg_snapshot_xmin(pg_current_snapshot())::text::bigint"]);
        }
    }
    after
}

/// Declares the statements of a module, and `STATEMENTS`, all of them, so that a test can prepare each. Both stay in the
/// crate that declares them: whoever holds a statement can run it.
///
/// ```
/// podium_db::statements! {
///     /// One team by id.
///     pub(crate) BY_ID = "SELECT id, name FROM teams WHERE id = $1";
///     INSERT = "INSERT INTO teams (id, name) VALUES ($1, $2)";
/// }
/// assert_eq!(STATEMENTS.len(), 2);
/// assert_eq!(BY_ID.text(), STATEMENTS[0].text());
/// ```
#[macro_export]
macro_rules! statements {
    ($($(#[$doc:meta])* $visibility:vis $name:ident = $text:expr;)*) => {
        $($(#[$doc])* $visibility static $name: $crate::Sql = $crate::Sql::new($text);)*
        pub(crate) static STATEMENTS: &[&$crate::Sql] = &[$(&$name),*];
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, sqlite: &str, postgres: &str) {
        assert_eq!(rewrite(text, Engine::Sqlite), sqlite);
        assert_eq!(rewrite(text, Engine::Postgres), postgres);
    }

    #[test]
    fn placeholders_are_numbered() {
        check(
            "SELECT a FROM t WHERE b = $2 AND c = $12",
            "SELECT a FROM t WHERE b = ?2 AND c = ?12",
            "SELECT a FROM t WHERE b = $2 AND c = $12",
        );
    }

    #[test]
    fn lists() {
        check(
            "x IN ($1[]) AND y = $2",
            "x IN (SELECT value FROM json_each(?1)) AND y = ?2",
            "x = ANY($1) AND y = $2",
        );
        check("x NOT IN ($3[])", "x NOT IN (SELECT value FROM json_each(?3))", "x <> ALL($3)");
        check("x IN ($1, $2)", "x IN (?1, ?2)", "x IN ($1, $2)");
    }

    #[test]
    fn settled_rows() {
        check(
            "SELECT a FROM t WHERE SETTLED(t.tx) AND b = $1",
            "SELECT a FROM t WHERE 1=1 AND b = ?1",
            "SELECT a FROM t WHERE t.tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint AND b = $1",
        );
    }

    #[test]
    fn rows_after_a_position() {
        check(
            "SELECT a FROM t WHERE SUCCEEDS(tx, number, $1, $2) AND SETTLED(tx)",
            "SELECT a FROM t WHERE tx = ?1 AND number > ?2 AND 1=1",
            "SELECT a FROM t WHERE (tx, number) > ($1, $2) AND tx < pg_snapshot_xmin(pg_current_snapshot())::text::bigint",
        );
    }

    #[test]
    fn rows_that_another_works_on_are_passed_over() {
        check(
            "SELECT a FROM t LIMIT $1 SKIPLOCKED",
            "SELECT a FROM t LIMIT ?1 ",
            "SELECT a FROM t LIMIT $1 FOR UPDATE SKIP LOCKED",
        );
    }

    #[test]
    fn a_bound_is_for_the_planner_of_one_engine() {
        check(
            "SELECT a FROM (SELECT a FROM t LIMIT $1) k STOPAT(20)",
            "SELECT a FROM (SELECT a FROM t LIMIT ?1) k ",
            "SELECT a FROM (SELECT a FROM t LIMIT $1) k LIMIT 20",
        );
    }

    #[test]
    fn rowids_exist_on_sqlite_only() {
        check(
            "SELECT ROWID(t), RANK FROM t ORDER BY a",
            "SELECT t.rowid, RANK FROM t ORDER BY a",
            "SELECT NULL::bigint, RANK FROM t ORDER BY a",
        );
    }

    #[test]
    fn quoted_text_is_left_alone() {
        check(
            "SELECT '$1 SETTLED(x) it''s $2', \"$3\" FROM t WHERE é = $1",
            "SELECT '$1 SETTLED(x) it''s $2', \"$3\" FROM t WHERE é = ?1",
            "SELECT '$1 SETTLED(x) it''s $2', \"$3\" FROM t WHERE é = $1",
        );
        check("SELECT 'open $1", "SELECT 'open $1", "SELECT 'open $1");
    }
}
