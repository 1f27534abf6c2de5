//! Failures are retried forever, with growing delays and jitter.

use podium_dataplane::simulated::Call;
use podium_testkit::on_both_engines;

on_both_engines! {
    async fn delays_grow_within_bounds_and_end_with_the_failure(app) {
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.plane.script().fail(Call::Apply, "no room", 14);
        let mut pauses = Vec::new();
        let mut tries = Vec::new();
        loop {
            app.settle().await;
            let Some(pending) = app.pending_work().await.pop() else { break };
            pauses.push(pending.due_at.millis() - app.world.now().millis());
            tries.push(pending.attempts);
            app.world.set(pending.due_at);
        }
        let seconds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300, 300, 300, 300];
        for (pause, seconds) in pauses.iter().zip(seconds) {
            assert!((seconds * 500..=seconds * 1000).contains(pause), "{pauses:?}");
        }
        assert!(pauses.iter().zip(seconds).any(|(pause, seconds)| *pause != seconds * 1000), "{pauses:?}");
        assert_eq!(tries, (1..=14).collect::<Vec<_>>());
        assert_eq!(app.status(id).await.0.as_str(), "HEALTHY");
    }

    async fn many_that_fail_together_do_not_come_back_together(app) {
        let workspace = app.workspace("Data").await;
        for _ in 0..50 {
            app.new_deployment(workspace).await;
        }
        app.plane.script().fail(Call::Apply, "no room", 100);
        app.settle().await;
        app.advance(std::time::Duration::from_secs(1));
        app.settle().await;
        let mut due: Vec<i64> = app.pending_work().await.iter().map(|row| row.due_at.millis()).collect();
        due.dedup();
        assert!(due.len() > 40, "{due:?}");
        let now = app.world.now().millis();
        assert!(due.iter().all(|at| (now + 1000..=now + 2000).contains(at)), "{due:?}");
    }

    async fn asking_again_starts_over(app) {
        let id = app.new_deployment(app.workspace("Data").await).await;
        app.plane.script().fail(Call::Apply, "no room", 6);
        for _ in 0..5 {
            app.settle().await;
            app.world.set(app.pending_work().await[0].due_at);
        }
        app.change_deployment(id, |spec| spec.release.image_tag = "deploy-1".into()).await;
        app.settle().await;
        let pending = app.pending_work().await;
        assert_eq!(pending[0].attempts, 1, "somebody did something about it");
        assert!(pending[0].due_at.millis() - app.world.now().millis() <= 1000);
    }
}
