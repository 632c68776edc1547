//! What every adapter needs of the `redis` crate's asynchronous connections.

use redis::AsyncConnectionConfig;

use crate::redis::MAX_UNANSWERED;

/// The settings to dial with.
///
/// None of the client's own timeouts: the driver has one deadline around connecting and calling, on the clock
/// of its runtime, and a second clock could only contradict it. And room in the client's queue for every
/// command that the driver lets be unanswered: commands that wait for a place overtake each other, so that a
/// delete could pass the very acquire that it is to undo.
#[must_use]
pub fn dial_settings() -> AsyncConnectionConfig {
    AsyncConnectionConfig::new()
        .set_connection_timeout(None)
        .set_response_timeout(None)
        .set_pipeline_buffer_size(MAX_UNANSWERED)
}
