//! Work rows: queued, claimed, settled, requeued.

use std::collections::BTreeSet;
use std::time::Duration;

use podium_api::{Id, Timestamp, TypedId};
use podium_db::{Result, Tx};
use podium_store::work::{self, Backlog, Claim, Pending, Reschedule};
use podium_testkit::{Engine, START, TestApp, block_on, on_both_engines};

const KIND: &str = "things";
const LEASE: i64 = 30_000;

fn at(millis: i64) -> Timestamp {
    Timestamp::from_millis(START + millis)
}

fn id<I: TypedId>(number: u32) -> I {
    I::from_raw(Id::from_parts(1, number, 0))
}

async fn write<T: Send + 'static>(app: &TestApp, unit: impl Fn(&Tx) -> Result<T> + Send + 'static) -> T {
    app.app.db(&app.system).write(None, unit).await.expect("it is written")
}

async fn ask(app: &TestApp, number: u32, due: i64, now: i64) {
    let system = app.system;
    write(app, move |tx| work::enqueue(tx, &system, KIND, id(number), at(due), at(now))).await;
}

async fn claim(app: &TestApp, holder: &'static str, now: i64, limit: u32) -> Vec<Claim> {
    let system = app.system;
    let mut claims =
        write(app, move |tx| work::claim(tx, &system, KIND, holder, at(now + LEASE), at(now), limit)).await;
    claims.sort_by_key(|claim| claim.id);
    claims
}

async fn settle(app: &TestApp, holder: &'static str, claim: &Claim, now: i64) -> bool {
    let system = app.system;
    let claim = claim.clone();
    write(app, move |tx| work::settle(tx, &system, holder, &claim, at(now))).await
}

async fn again(app: &TestApp, holder: &'static str, claim: &Claim, due: i64, now: i64) -> bool {
    let system = app.system;
    let claim = claim.clone();
    let back = Reschedule {
        due_at: at(due),
        since: claim.since,
        attempts: claim.attempts,
        reason: "no luck".into(),
    };
    write(app, move |tx| work::reschedule(tx, &system, holder, &claim, &back, at(now))).await
}

/// `number due since attempts holder reason` of everything that is pending.
async fn shown(app: &TestApp) -> Vec<String> {
    let show = |row: &Pending| {
        let number = (0..100).find(|number| id::<Id>(*number) == row.id).expect("one of ours");
        let (due, since) = (row.due_at.millis() - START, row.since.millis() - START);
        format!("{number} due {due} since {since} tries {} `{}` {}", row.attempts, row.holder, row.reason)
    };
    app.pending_work().await.iter().map(|row| show(row).trim_end().to_owned()).collect()
}

fn numbers(claims: &[Claim]) -> Vec<Id> {
    claims.iter().map(|claim| claim.id).collect()
}

on_both_engines! {
    async fn asking_again_makes_it_due_no_later(app) {
        ask(&app, 1, 0, 0).await;
        ask(&app, 1, 500, 10).await;
        assert_eq!(shown(&app).await, ["1 due 0 since 0 tries 0 ``"]);
        ask(&app, 2, 9_000, 0).await;
        assert_eq!(shown(&app).await[1], "2 due 9000 since 9000 tries 0 ``");
        ask(&app, 2, 700, 20).await;
        assert_eq!(shown(&app).await[1], "2 due 700 since 700 tries 0 ``");
    }

    async fn the_oldest_due_work_is_claimed_first_and_only_once(app) {
        let system = app.system;
        for (number, due) in [(1, 300), (2, 100), (3, 200), (4, 5_000)] {
            ask(&app, number, due, 0).await;
        }
        assert_eq!(numbers(&claim(&app, "a", 99, 10).await), []);
        assert_eq!(numbers(&claim(&app, "a", 1_000, 2).await), [id(2), id(3)]);
        assert_eq!(numbers(&claim(&app, "b", 1_000, 10).await), [id(1)]);
        assert_eq!(numbers(&claim(&app, "b", 1_000, 10).await), []);
        let claims = write(&app, move |tx| work::claim(tx, &system, "other", "a", at(0), at(9_999), 10)).await;
        assert_eq!(claims, [], "kinds are apart");
    }

    async fn a_lease_that_ends_lets_another_take_over(app) {
        ask(&app, 1, 0, 0).await;
        let first = claim(&app, "a", 0, 1).await.remove(0);
        assert_eq!((first.attempts, first.signal, first.since), (1, 1, at(0)));
        assert_eq!(claim(&app, "b", LEASE - 1, 1).await, []);
        let second = claim(&app, "b", LEASE, 1).await.remove(0);
        assert_eq!(second.attempts, 2);
        assert!(!settle(&app, "a", &first, LEASE).await, "it is not theirs any more");
        assert!(!again(&app, "a", &first, LEASE, LEASE).await);
        assert_eq!(shown(&app).await, ["1 due 60000 since 0 tries 2 `b`"]);
        assert!(settle(&app, "b", &second, LEASE).await);
        assert!(shown(&app).await.is_empty());
        assert!(!settle(&app, "b", &second, LEASE).await, "once is enough");
    }

    async fn work_queued_while_it_is_claimed_is_not_lost(app) {
        ask(&app, 1, 0, 0).await;
        let held = claim(&app, "a", 10, 1).await.remove(0);
        ask(&app, 1, 20, 20).await;
        assert_eq!(shown(&app).await, ["1 due 30010 since 0 tries 1 `a`"], "nobody else begins meanwhile");
        assert!(settle(&app, "a", &held, 30).await);
        assert_eq!(shown(&app).await, ["1 due 30 since 30 tries 0 ``"]);
        let held = claim(&app, "a", 40, 1).await.remove(0);
        ask(&app, 1, 50, 50).await;
        assert!(again(&app, "a", &held, 9_000, 60).await);
        assert_eq!(shown(&app).await, ["1 due 60 since 60 tries 0 ``"]);
    }

    async fn failed_work_is_requeued_with_its_reason(app) {
        ask(&app, 1, 0, 0).await;
        let held = claim(&app, "a", 10, 1).await.remove(0);
        assert!(again(&app, "a", &held, 2_000, 20).await);
        assert_eq!(shown(&app).await, ["1 due 2000 since 0 tries 1 `` no luck"]);
        let held = claim(&app, "a", 2_000, 1).await.remove(0);
        assert_eq!((held.attempts, held.since), (2, at(0)));
        assert!(again(&app, "a", &held, 8_000, 2_000).await);
        ask(&app, 1, 3_000, 3_000).await;
        assert_eq!(shown(&app).await, ["1 due 3000 since 0 tries 0 `` no luck"], "asking counts as new");
    }

    async fn claimed_work_can_be_released(app) {
        let system = app.system;
        for number in 1..=3 {
            ask(&app, number, 0, 0).await;
        }
        claim(&app, "a", 0, 2).await;
        claim(&app, "b", 0, 2).await;
        assert_eq!(write(&app, move |tx| work::release(tx, &system, "a", at(5))).await, 2);
        let held = |rows: Vec<Pending>| rows.into_iter().filter(|row| !row.holder.is_empty()).count();
        assert_eq!(held(app.pending_work().await), 1);
        assert!(shown(&app).await[..2].iter().all(|row| row.contains("due 5 since 0 tries 0")));
        assert_eq!(write(&app, move |tx| work::release_all(tx, &system, at(6))).await, 1);
        assert_eq!(held(app.pending_work().await), 0);
        assert_eq!(claim(&app, "c", 6, 10).await.len(), 3);
    }

    async fn pending_work_is_counted_and_listed(app) {
        let system = app.system;
        for number in 1..=4 {
            ask(&app, number, i64::from(number) * 100, 0).await;
        }
        let held = claim(&app, "a", 200, 2).await;
        again(&app, "a", &held[0], 250, 200).await;
        let held_again = claim(&app, "a", 250, 1).await;
        again(&app, "a", &held_again[0], 300, 250).await;
        let count = |now: i64| app.app.db(&app.system).scan(None, move |conn| work::backlog(conn, &system, at(now)));
        let expected = |due, oldest: Option<i64>| Backlog {
            kind: KIND.into(),
            pending: 4,
            due,
            held: 1,
            retried: 1,
            oldest_due_at: oldest.map(at),
        };
        let read = |result: Result<Vec<Backlog>>| result.expect("it reads");
        assert_eq!(read(count(0).await), [expected(0, None)]);
        assert_eq!(read(count(350).await), [expected(2, Some(300))]);
        let next = |kind: &'static str| app.app.db(&app.system).read(None, move |conn| work::next_due(conn, &system, kind));
        assert_eq!(next(KIND).await.expect("it reads"), Some(at(300)));
        assert_eq!(next("other").await.expect("it reads"), None);
        let some = app.app.db(&app.system).scan(None, move |conn| work::pending(conn, &system, Some(KIND), 2)).await;
        assert_eq!(some.expect("it reads").len(), 2);
        let none = app.app.db(&app.system).scan(None, move |conn| work::pending(conn, &system, Some("other"), 2)).await;
        assert_eq!(none.expect("it reads"), []);
    }

    async fn everything_can_be_queued_at_once(app) {
        let system = app.system;
        let workspace = app.workspace("Data").await;
        let (one, two) = (app.deployment(workspace).await, app.new_deployment(workspace).await);
        app.advance(Duration::from_secs(1));
        let now = app.world.now();
        assert_eq!(write(&app, move |tx| work::enqueue_everything(tx, &system, now)).await, 2);
        let ids: BTreeSet<Id> = app.pending_work().await.iter().map(|row| row.id).collect();
        assert_eq!(ids, BTreeSet::from([one.id(), two.id()]));
    }
}

#[test]
fn claimers_on_postgres_never_claim_the_same() {
    block_on(async {
        let app = TestApp::start(Engine::Postgres).await;
        let system = app.system;
        let replica = app.replica().await;
        write(&app, move |tx| {
            (0..400).try_for_each(|number| work::enqueue(tx, &system, KIND, id(number), at(0), at(0)))
        })
        .await;
        let take = async |app: &TestApp, holder: &'static str| {
            let mut taken = Vec::new();
            loop {
                let claims = claim(app, holder, 1, 7).await;
                if claims.is_empty() {
                    return taken;
                }
                assert!(claims.len() <= 7, "the limit holds whatever the plan of the query");
                taken.extend(numbers(&claims));
            }
        };
        let (a, b, c, d) =
            tokio::join!(take(&app, "a"), take(&replica, "b"), take(&app, "c"), take(&replica, "d"));
        let all: Vec<Id> = [a, b, c, d].concat();
        assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (400, 400));
    });
}
