//! Who has read rows is told whether they are still as they were read.

use podium_db::{Conn, Db, JoinedRow, Result, RowsRead, Sql, params};

use crate::support::{Bed, SET, insert, number};

static READ: Sql = Sql::new(
    "SELECT t.id, t.note, ROWID(t), ROWID(p) FROM items t LEFT JOIN parts p ON p.id = t.note WHERE t.id = $1",
);
static NOTE: Sql = Sql::new("UPDATE items SET note = $2 WHERE id = $1");
static PART: Sql = Sql::new("INSERT INTO parts (id, item_id) VALUES ($1, $2)");
static MOVE_PART: Sql = Sql::new("UPDATE parts SET item_id = $2 WHERE id = $1");
static DELETE: Sql = Sql::new("DELETE FROM items WHERE id = $1");

const ROWS: &[JoinedRow] =
    &[JoinedRow { table: "items", key: 0, rowid: 2 }, JoinedRow { table: "parts", key: 1, rowid: 3 }];

fn rows_of(conn: &Conn, id: &str) -> Result<Option<RowsRead>> {
    conn.query_one(&READ, params![id], |row| row.rows_read(ROWS))
}

async fn rows(db: &Db, id: &'static str) -> Option<RowsRead> {
    db.read(None, move |conn| rows_of(conn, id)).await.unwrap()
}

async fn run(db: &Db, sql: &'static Sql, one: &'static str, other: &'static str) {
    let params = move |tx: &podium_db::Tx| tx.execute(sql, params![one, other]);
    assert_eq!(db.write(None, params).await.unwrap(), 1);
}

async fn two_items() -> Bed {
    let bed = Bed::sqlite().await;
    bed.db.write(None, |tx| insert(tx, "a", 1).and_then(|()| insert(tx, "b", 1))).await.unwrap();
    bed
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_is_unchanged_until_it_or_what_it_is_joined_with_changes() {
    let Bed { db, .. } = &two_items().await;
    let first = rows(db, "a").await.unwrap();
    db.write(None, |tx| insert(tx, "c", 1)).await.unwrap();
    db.write(None, |tx| tx.execute(&SET, params!["b", 2])).await.unwrap();
    assert!(db.unchanged(&first), "others' changes leave it alone");
    run(db, &NOTE, "a", "part").await;
    assert!(!db.unchanged(&first));
    assert!(rows(db, "a").await.is_none(), "what it is to be joined with may come any time");
    run(db, &PART, "part", "a").await;
    let joined = rows(db, "a").await.unwrap();
    assert!(db.unchanged(&joined) && !db.unchanged(&first));
    run(db, &MOVE_PART, "part", "b").await;
    assert!(!db.unchanged(&joined));
    let again = rows(db, "a").await.unwrap();
    assert!(db.unchanged(&again));
    db.write(None, |tx| tx.execute(&DELETE, params!["a"])).await.unwrap();
    assert!(!db.unchanged(&again));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_is_being_changed_is_not_unchanged_and_one_that_was_not_changed_after_all_is_read_again() {
    let Bed { db, .. } = &two_items().await;
    let before = rows(db, "a").await.unwrap();
    let (writing, reader) = (db.clone(), db.clone());
    let failed = writing.write(None, move |tx| {
        tx.execute(&SET, params!["a", 2])?;
        assert!(!reader.unchanged(&before), "nobody may believe so while the commit becomes visible");
        tx.execute(&PART, params!["part", "no such item"])
    });
    assert!(failed.await.is_err());
    assert_eq!(number(db, "a").await, Some(1));
    db.write(None, |tx| insert(tx, "c", 1)).await.unwrap();
    let after = rows(db, "a").await.unwrap();
    assert!(db.unchanged(&after));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_takes_neither_older_nor_newer_rows_for_its_own() {
    let Bed { db, .. } = &two_items().await;
    let (old, other) = (rows(db, "a").await.unwrap(), rows(db, "b").await.unwrap());
    let (writing, runtime) = (db.clone(), tokio::runtime::Handle::current());
    let scanned = db.scan(None, move |conn| {
        let seen = conn.query_one(&crate::support::NUMBER, params!["a"], |row| row.get::<i64>(0))?;
        assert!(conn.unchanged(&old) && conn.unchanged(&other));
        let new = runtime.block_on(async {
            writing.write(None, |tx| tx.execute(&SET, params!["a", 2])).await.unwrap();
            rows(&writing, "a").await.unwrap()
        });
        assert!(writing.unchanged(&new) && !conn.unchanged(&new), "this unit sees what was before");
        assert!(!conn.unchanged(&old), "what it would see is not told apart from what is new");
        assert!(conn.unchanged(&other));
        Ok::<_, podium_db::Error>((seen, rows_of(conn, "a")?))
    });
    let (seen, read_late) = scanned.await.unwrap();
    assert_eq!(seen, 1);
    assert!(!db.unchanged(&read_late.unwrap()), "read from an old snapshot, after the change");
}

#[tokio::test(flavor = "multi_thread")]
async fn where_others_write_too_nothing_is_known_to_be_unchanged() {
    let beds = [Bed::postgres().await, Bed::sqlite().await];
    let [postgres, sqlite] = &beds;
    for bed in &beds {
        bed.db.write(None, |tx| insert(tx, "a", 1)).await.unwrap();
    }
    let view = Db::view(sqlite.target.clone()).await.unwrap();
    for db in [&postgres.db, &view] {
        assert!(rows(db, "a").await.is_none());
        assert!(!db.read(None, |conn| Ok::<_, podium_db::Error>(conn.follows_changes())).await.unwrap());
    }
    let known = rows(&sqlite.db, "a").await.unwrap();
    assert!(sqlite.db.unchanged(&known) && !postgres.db.unchanged(&known));
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_who_was_answered_finds_an_old_row() {
    let Bed { db, .. } = &two_items().await;
    let keep = tokio::spawn({
        let db = db.clone();
        async move {
            let mut kept = Vec::new();
            for _ in 0..500 {
                let one = db.page(None, |conn| {
                    let number =
                        conn.query_one(&crate::support::NUMBER, params!["a"], |row| row.get::<i64>(0))?;
                    Ok::<_, podium_db::Error>((number, rows_of(conn, "a")?.unwrap()))
                });
                kept.push(one.await.unwrap());
                tokio::task::yield_now().await;
            }
            kept
        }
    });
    for value in 2..100 {
        db.write(None, move |tx| tx.execute(&SET, params!["a", value])).await.unwrap();
    }
    for (number, rows) in keep.await.unwrap() {
        assert!(number == 99 || !db.unchanged(&rows), "{number} is taken for what is there");
    }
}
