//! Properties of a running application.

use proptest::strategy::Strategy;
use proptest::test_runner::{Config, RngAlgorithm, TestRng, TestRunner};
use tokio::runtime::Handle;
use tokio::task::block_in_place;

/// Checks a property for some values, the same ones in every run; a value that fails is made smaller.
pub(crate) fn for_all<S: Strategy, F: Future<Output = ()>>(
    cases: u32,
    values: &S,
    property: impl Fn(S::Value) -> F,
) {
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let holds = |value| {
        block_in_place(|| Handle::current().block_on(property(value)));
        Ok(())
    };
    if let Err(failure) = TestRunner::new_with_rng(config, rng).run(values, holds) {
        panic!("{failure}");
    }
}
