//! One of many who want the same lease, again and again.

use std::time::Duration;

use redlock_tokio::{Lease, Lock};
use rslock::LockManager;
use tokio::time::{sleep, timeout};

use crate::Failure;
use crate::contestant::{Kind, TTL};
use crate::monotonic::now;
use crate::peer::PATIENCE;
use crate::turn::Turn;

#[derive(Clone)]
pub(crate) enum Contender {
    Redlock(Box<Lock>),
    /// With the retries that it has by default, and asked again when they were in vain.
    Rslock(LockManager, String),
}

enum Held {
    Redlock(Lease),
    Rslock(rslock::Lock),
}

impl Contender {
    pub(crate) fn redlock(lock: Lock) -> Self {
        Self::Redlock(Box::new(lock))
    }

    /// Connects.
    pub(crate) async fn rslock(urls: &[String], resource: &str) -> Result<Self, Failure> {
        let manager = LockManager::new(urls.to_vec());
        let warm_up = format!("{resource}:rslock:{}", std::process::id());
        let lock = manager.lock(warm_up.as_bytes(), TTL).await;
        manager.unlock(&lock.map_err(|error| format!("rslock: {error:?}"))?).await;
        Ok(Self::Rslock(manager, format!("{resource}:rslock")))
    }

    pub(crate) const fn who(&self) -> &'static str {
        match self {
            Self::Redlock(_) => Kind::Redlock.name(),
            Self::Rslock(..) => Kind::Rslock.name(),
        }
    }

    /// Acquires, holds for [`HOLD`] and releases, again and again, between two readings of the shared clock.
    pub(crate) async fn contend(
        &self,
        seat: usize,
        from: Duration,
        until: Duration,
    ) -> Result<Vec<Turn>, Failure> {
        sleep(from.saturating_sub(now()?)).await;
        let mut turns = Vec::new();
        loop {
            let asked = now()?;
            let left = until.saturating_sub(asked);
            if left.is_zero() {
                return Ok(turns);
            }
            let Ok(held) = timeout(left, self.acquire()).await else {
                turns.push(Turn { seat, asked, acquired: until, released: until });
                return Ok(turns);
            };
            let (held, acquired) = (held?, now()?);
            sleep(HOLD).await;
            turns.push(Turn { seat, asked, acquired, released: now()? });
            self.release(held).await?;
        }
    }

    async fn acquire(&self) -> Result<Held, Failure> {
        match self {
            Self::Redlock(lock) => Ok(Held::Redlock(lock.acquire_within(PATIENCE).await?)),
            Self::Rslock(manager, resource) => loop {
                if let Ok(lock) = manager.lock(resource.as_bytes(), TTL).await {
                    return Ok(Held::Rslock(lock));
                }
            },
        }
    }

    async fn release(&self, held: Held) -> Result<(), Failure> {
        match held {
            Held::Redlock(lease) => lease.release().await?,
            Held::Rslock(lock) => lock.lock_manager.unlock(&lock).await,
        }
        Ok(())
    }
}

/// How long each keeps what it got.
pub(crate) const HOLD: Duration = Duration::from_millis(1);
