//! Waits for several futures concurrently, without a runtime. If the wait is dropped, all of them are cancelled.

use std::task::Poll;

use llm::BoxFuture;

/// Returns the outputs of `futures`, in their order.
pub(super) async fn together<T>(futures: Vec<BoxFuture<'_, T>>) -> Vec<T> {
    let mut slots: Vec<(BoxFuture<'_, T>, Option<T>)> = futures.into_iter().map(|future| (future, None)).collect();
    std::future::poll_fn(|context| {
        for (future, done) in slots.iter_mut().filter(|(_, done)| done.is_none()) {
            if let Poll::Ready(value) = future.as_mut().poll(context) {
                *done = Some(value);
            }
        }
        if slots.iter().all(|(_, done)| done.is_some()) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    slots.into_iter().filter_map(|(_, done)| done).collect()
}
