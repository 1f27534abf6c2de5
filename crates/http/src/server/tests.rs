use super::*;

/// It is copied a few times on its way to the heap: with everything that any request may need in it, that was most of what
/// a small read cost.
#[test]
fn what_answers_a_request_is_small() {
    fn size<F>(_: impl Fn(&'static Server, Parts, RequestBody, (IpAddr, Arc<Peer>), Instant) -> F) -> usize {
        size_of::<F>()
    }
    let size = size(|server, parts, body, from, started| server.dispatch(parts, body, from, "", started));
    assert!(size <= 3072, "{size} bytes");
}
