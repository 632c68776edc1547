//! One key under observation.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::FutureExt as _;
use redis::{RedisError, Value, cmd};
use redlock_core::{Cause, CauseKind};

use super::super::{Connect, Connection as _, dial, fault, lock, timing};
use super::state::Ear;
use super::{Listener, Seek};
use crate::hints::{Mark, Sight, Watch};

/// Looks at a key, and hears when it changes after that.
///
/// A server tells of a change once, to those who have read the key since the last one. So each look is a read,
/// and there is none but the first before something has changed.
pub(crate) struct KeyWatch<R: Connect> {
    listener: Arc<Listener<R>>,
    key: Arc<str>,
    ear: Arc<Ear>,
    step: Step,
}

enum Step {
    /// To look, as soon as there is a connection.
    Looking,
    /// The answer of the connection of this generation is on its way.
    Reading(u64, Pin<Box<dyn Future<Output = Result<Value, Cause>> + Send>>),
    /// The key was read, and the connection of this generation will tell.
    Listening(u64),
    Over,
}

impl<R: Connect> KeyWatch<R> {
    pub(super) const fn new(listener: Arc<Listener<R>>, key: Arc<str>, ear: Arc<Ear>) -> Self {
        Self { listener, key, ear, step: Step::Looking }
    }

    /// Reads the key. An answer that does not come is one that the connection cannot give any more.
    fn read(
        &self,
        connection: R::Connection,
    ) -> impl Future<Output = Result<Value, Cause>> + Send + 'static + use<R> {
        let question = cmd("GET").arg(&*self.key).to_owned();
        let runtime = self.listener.runtime.clone();
        async move {
            let deadline = runtime.now().saturating_add(dial::CONNECT_TIMEOUT);
            match timing::by(&runtime, deadline, connection.call(question)).await {
                Some(answer) => answer
                    .and_then(Value::extract_error)
                    .map_err(|error: RedisError| fault::of_connect(&error, None)),
                None => Err(Cause::new(CauseKind::Timeout)),
            }
        }
    }
}

impl<R: Connect> Watch for KeyWatch<R> {
    fn poll_sight(&mut self, context: &mut Context<'_>) -> Poll<Sight> {
        // Before anything is looked at, so that nothing changes unseen.
        self.ear.waker.register(context.waker());
        loop {
            match &mut self.step {
                Step::Looking => match self.listener.seek() {
                    Seek::Found(connection, generation) => {
                        self.ear.take();
                        self.step = Step::Reading(generation, self.read(connection).boxed());
                    }
                    Seek::Later => return Poll::Pending,
                    Seek::Never => self.step = Step::Over,
                },
                Step::Reading(generation, answer) => {
                    let generation = *generation;
                    let Poll::Ready(answer) = answer.poll_unpin(context) else {
                        return Poll::Pending;
                    };
                    let sight = match answer {
                        Ok(Value::Nil) => Sight::Free,
                        Ok(Value::BulkString(value)) => Sight::Held(Mark::of(&value)),
                        Ok(_) => {
                            self.listener.lost(generation, &Cause::new(CauseKind::UnexpectedReply));
                            Sight::Over
                        }
                        Err(cause) => {
                            self.listener.lost(generation, &cause);
                            Sight::Over
                        }
                    };
                    self.step = if sight == Sight::Over { Step::Over } else { Step::Listening(generation) };
                    return Poll::Ready(sight);
                }
                Step::Listening(generation) => {
                    if self.ear.take() {
                        self.step = Step::Looking;
                        return Poll::Ready(Sight::Changed);
                    }
                    if self.listener.hears(*generation) {
                        return Poll::Pending;
                    }
                    self.step = Step::Over;
                }
                Step::Over => return Poll::Ready(Sight::Over),
            }
        }
    }
}

impl<R: Connect> Drop for KeyWatch<R> {
    fn drop(&mut self) {
        let now = self.listener.runtime.now();
        lock(&self.listener.state).forget(now, &self.key, &self.ear);
    }
}
