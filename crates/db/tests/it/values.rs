//! What goes in comes out.

use podium_db::{Error, Row, Sql, Value, params};

use crate::support::{Bed, on_both_engines};

on_both_engines!(
    fingerprints,
    every_type,
    nulls,
    lists,
    wrong_types_are_refused,
    text_is_borrowed,
    rewritten_parts_run
);

static INSERT: Sql = Sql::new("INSERT INTO items (id, number, flag, body, note) VALUES ($1, $2, $3, $4, $5)");
static ALL: Sql = Sql::new("SELECT id, number, flag, body, note FROM items ORDER BY id");

async fn every_type(bed: Bed) {
    let body: &[u8] = &[0, 255, 10];
    bed.db
        .write(None, move |tx| {
            tx.execute(&INSERT, params!["ü'\"", i64::MIN, true, body, &"n\u{1F980}".to_owned()])
        })
        .await
        .unwrap();
    bed.db
        .read(None, move |conn| {
            conn.query_one(&ALL, params![], |row| {
                assert_eq!(row.get::<String>(0)?, "ü'\"");
                assert_eq!(row.get::<i64>(1)?, i64::MIN);
                assert!(row.get::<bool>(2)?);
                assert_eq!(row.get::<Vec<u8>>(3)?, body);
                assert_eq!(row.bytes(3)?, body);
                assert_eq!(row.get::<Option<String>>(4)?.as_deref(), Some("n\u{1F980}"));
                Ok(())
            })
        })
        .await
        .unwrap();
}

async fn fingerprints(bed: Bed) {
    bed.db
        .write(None, move |tx| {
            for (id, number, flag, body, note) in [
                ("a", 1, true, "x", Some("y")),
                ("b", 1, true, "xy", Some("")),
                ("c", 1, true, "xy", None),
                ("d", 2, true, "xy", None),
                ("e", 2, false, "xy", None),
            ] {
                tx.execute(&INSERT, params![id, number, flag, body.as_bytes(), note])?;
            }
            Ok::<_, Error>(())
        })
        .await
        .unwrap();
    let print = |row: &Row<'_>| Ok((row.get::<i64>(0)?, row.fingerprint()?));
    let read = |sql: &'static Sql| bed.db.read(None, move |conn| conn.query(sql, params![], print));
    static WITHOUT_IDS: Sql = Sql::new("SELECT number, flag, body, note FROM items ORDER BY id");
    let prints = read(&WITHOUT_IDS).await.unwrap();
    assert_eq!(prints, read(&WITHOUT_IDS).await.unwrap(), "the same rows");
    let different: std::collections::BTreeSet<u128> = prints.iter().map(|(_, print)| *print).collect();
    assert_eq!(different.len(), 5, "each differs from the one before in one column");
}

async fn nulls(bed: Bed) {
    let nothing: Option<&str> = None;
    bed.db
        .write(None, move |tx| {
            tx.execute(&INSERT, params!["a", Value::Null, nothing, Value::Null, &None::<String>])
        })
        .await
        .unwrap();
    let read = |row: &Row<'_>| {
        Ok((row.get::<Option<i64>>(1)?, row.get::<Option<bool>>(2)?, row.get::<Option<Vec<u8>>>(3)?))
    };
    let row = bed.db.read(None, move |conn| conn.query_one(&ALL, params![], read)).await.unwrap();
    assert_eq!(row, (None, None, None));
    let refused = bed.db.read(None, |conn| conn.query_one(&ALL, params![], |row| row.get::<String>(4))).await;
    assert!(matches!(refused, Err(Error::Other(_))));
}

async fn lists(bed: Bed) {
    let insert = |id: &'static str| {
        bed.db.write(None, move |tx| tx.execute(&INSERT, params![id, 1_i64, false, Value::Null, Value::Null]))
    };
    for id in ["a", "b\"\\", "c,d", "e"] {
        insert(id).await.unwrap();
    }
    static IN: Sql = Sql::new("SELECT id FROM items WHERE id IN ($1[]) AND number = $2 ORDER BY id");
    static NOT_IN: Sql = Sql::new("SELECT id FROM items WHERE id NOT IN ($1[]) ORDER BY id");
    let inside =
        bed.db.scan(None, |conn| conn.query(&IN, params![&["b\"\\", "c,d", "x"][..], 1], |row| row.get(0)));
    assert_eq!(inside.await, Ok(vec!["b\"\\".to_owned(), "c,d".to_owned()]));
    let list = vec!["a".to_owned(), "b\"\\".to_owned()];
    let outside = bed.db.scan(None, move |conn| conn.query(&NOT_IN, params![&list], |row| row.get(0)));
    assert_eq!(outside.await, Ok(vec!["c,d".to_owned(), "e".to_owned()]));
    let none = bed
        .db
        .scan(None, |conn| conn.query(&IN, params![&Vec::<String>::new(), 1], |row| row.get::<String>(0)));
    assert_eq!(none.await, Ok(vec![]));
}

async fn wrong_types_are_refused(bed: Bed) {
    let unit = |conn: &podium_db::Conn| {
        conn.query_one(&Sql::new("SELECT 'text'"), params![], |row| row.get::<i64>(0))
    };
    assert!(matches!(bed.db.read(None, unit).await, Err(Error::Other(_))));
    let missing =
        bed.db.read(None, |conn| conn.query_one(&Sql::new("SELECT 1"), params![], |row| row.get::<i64>(7)));
    assert!(matches!(missing.await, Err(Error::Other(_))));
    let extra = bed.db.read(None, |conn| conn.query(&Sql::new("SELECT 1"), params![1], |_| Ok(())));
    assert!(matches!(extra.await, Err(Error::Other(_))));
}

async fn text_is_borrowed(bed: Bed) {
    static TEXT: Sql = Sql::new("SELECT 'héllo', 7");
    let length = bed.db.read(None, |conn| {
        conn.query_one(&TEXT, params![], |row| {
            Ok((row.text(0)?.len(), row.get::<i64>(1)?, row.get::<i32>(1)?))
        })
    });
    assert_eq!(length.await, Ok((6, 7, 7)));
}

async fn rewritten_parts_run(bed: Bed) {
    static SETTLED: Sql = Sql::new("SELECT count(*) FROM items WHERE SETTLED(number) AND id <> '$1[]'");
    let none = bed.db.scan(None, |conn| conn.query_one(&SETTLED, params![], |row| row.get::<i64>(0)));
    assert_eq!(none.await, Ok(0));
}
