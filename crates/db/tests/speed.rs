//! ad hoc
use std::time::Instant;
use podium_db::*;
static GET: Sql = Sql::new("SELECT id, number, note FROM items WHERE id = $1");
static INS: Sql = Sql::new("INSERT INTO items (id, number, note) VALUES ($1, $2, $3)");
static UPD: Sql = Sql::new("UPDATE items SET number = number + 1 WHERE id = $1");
async fn run(db: Db) {
    let create = "CREATE TABLE items (id TEXT NOT NULL PRIMARY KEY, number BIGINT, note TEXT)";
    db.migrate(&[Migration { version: 1, name: "x", sqlite: create, postgres: create }]).await.unwrap();
    for n in 0..1000i64 { db.write(None, move |tx| tx.execute(&INS, params![&format!("id-{n:020}"), n, "some note"])).await.unwrap(); }
    let ids: Vec<String> = (0..1000).map(|n| format!("id-{n:020}")).collect();
    let count = if db.engine() == Engine::Sqlite { 400_000 } else { 10_000 };
    let start = Instant::now();
    for n in 0..count {
        let id = ids[(n * 7919) % 1000].clone();
        db.read(None, move |c| c.query_opt(&GET, params![&id], |r| Ok((r.get::<String>(0)?, r.get::<i64>(1)?)))).await.unwrap().unwrap();
    }
    eprintln!("{:?} sequential read {:.2} us, {:.0}/s", db.engine(), start.elapsed().as_secs_f64() * 1e6 / count as f64, count as f64 / start.elapsed().as_secs_f64());
    for tasks in [2usize, 64, 256] {
        let start = Instant::now();
        let handles: Vec<_> = (0..tasks).map(|t| { let db = db.clone(); let ids = ids.clone(); tokio::spawn(async move {
            for n in 0..(count * 2 / tasks) { let id = ids[(n * 7919 + t) % 1000].clone();
                db.read(None, move |c| c.query_opt(&GET, params![&id], |r| Ok((r.get::<String>(0)?, r.get::<i64>(1)?)))).await.unwrap().unwrap(); }
        })}).collect();
        for h in handles { h.await.unwrap(); }
        eprintln!("  {tasks} tasks read {:.0}/s", count as f64 * 2. / start.elapsed().as_secs_f64());
    }
    for (tasks, each) in [(1usize, 500usize), (256, 400)] {
        let start = Instant::now();
        let handles: Vec<_> = (0..tasks).map(|t| { let db = db.clone(); tokio::spawn(async move {
            for n in 0..each { let id = format!("w-{tasks}-{t}-{n}");
                db.write(None, move |tx| tx.execute(&INS, params![&id, 1, "some note of a row"])).await.unwrap(); }
        })}).collect();
        for h in handles { h.await.unwrap(); }
        eprintln!("  {tasks} tasks insert {:.0}/s", (tasks * each) as f64 / start.elapsed().as_secs_f64());
        let start = Instant::now();
        let handles: Vec<_> = (0..tasks).map(|t| { let db = db.clone(); tokio::spawn(async move {
            for n in 0..each { let id = format!("id-{:020}", (n * 7919 + t) % 1000);
                db.write(None, move |tx| tx.execute(&UPD, params![&id])).await.unwrap(); }
        })}).collect();
        for h in handles { h.await.unwrap(); }
        eprintln!("  {tasks} tasks update {:.0}/s", (tasks * each) as f64 / start.elapsed().as_secs_f64());
    }
    let start = Instant::now();
    let n = 20_000;
    for _ in 0..n { db.scan(None, |c| c.query_one(&Sql::new("SELECT 1"), params![], |r| r.get::<i64>(0))).await.unwrap(); }
    eprintln!("  sequential scan {:.1} us", start.elapsed().as_secs_f64() * 1e6 / n as f64);
    db.close().await;
}
#[tokio::test(flavor = "multi_thread")]
async fn speed() {
    let dir = tempfile::tempdir_in("/work").unwrap();
    run(Db::open(Options::new(Target::Sqlite(dir.path().join("x.db")))).await.unwrap()).await;
    let url = std::env::var("SPEED_PG").unwrap();
    run(Db::open(Options::new(Target::Postgres(url))).await.unwrap()).await;
}
