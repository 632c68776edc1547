//! The reusable description of a lease.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redlock_core::{Config, ConfigBuilder, ConfigError, Error, LeaseSpec, Renewal};

use crate::redis::hash_slot;
use crate::turns::Asking;
use crate::{Lease, Manager, RunError, Runtime};

/// A lease that can be asked for, any number of times and from anywhere. Cheap to clone.
///
/// Settings start from the manager's. A mistake in them is reported when the lease is asked for, before
/// anything is sent.
pub struct Lock<R> {
    manager: Manager<R>,
    resource: Arc<str>,
    fencing: Option<Arc<str>>,
    builder: ConfigBuilder,
    /// What the fields above add up to.
    spec: Result<LeaseSpec, Error>,
}

/// Settings.
impl<R: Runtime> Lock<R> {
    pub(crate) fn new(manager: Manager<R>, resource: Arc<str>) -> Self {
        let builder = manager.config().to_builder();
        let spec = describe(&manager, &resource, None, &builder);
        Self { manager, resource, fencing: None, builder, spec }
    }

    /// How long the lease lives if nobody renews it.
    #[must_use]
    pub fn ttl(self, ttl: Duration) -> Self {
        self.configure(|settings| settings.ttl(ttl))
    }

    /// Renews the lease by itself while it is held: every so often, for a duration, or as [`Renewal`] says.
    #[must_use]
    pub fn auto_renew(self, renewal: impl Into<Renewal>) -> Self {
        self.configure(|settings| settings.auto_renew(renewal))
    }

    /// Takes a fencing token from the counter at `key` with each acquisition. Only in the single mode:
    /// otherwise the lease cannot be acquired, and nothing is sent.
    ///
    /// The counter stays when the lease is released. Tokens increase for as long as it does: let Redis
    /// persist it, and never evict it.
    #[must_use]
    pub fn fencing(mut self, key: impl Into<Arc<str>>) -> Self {
        self.fencing = Some(key.into());
        self.described()
    }

    /// Changes any of the settings.
    ///
    /// ```
    /// # use redlock_driver::{Lock, Runtime};
    /// # fn example<R: Runtime>(lock: Lock<R>) -> Lock<R> {
    /// lock.configure(|settings| settings.attempts(10).max_hold(std::time::Duration::from_secs(60)))
    /// # }
    /// ```
    #[must_use]
    pub fn configure(mut self, change: impl FnOnce(ConfigBuilder) -> ConfigBuilder) -> Self {
        self.builder = change(self.builder);
        self.described()
    }

    fn described(mut self) -> Self {
        self.spec = describe(&self.manager, &self.resource, self.fencing.as_ref(), &self.builder);
        self
    }
}

/// Use.
impl<R: Runtime> Lock<R> {
    /// Asks for the lease with as many attempts as are configured.
    ///
    /// Callers of one manager who want the same resource wait in line and are served in the order of coming;
    /// only the first of them asks the nodes. Waiting in line for one `retry_delay` counts as an attempt,
    /// and whoever has one attempt left makes it, in line or not.
    ///
    /// # Cancel safety
    /// The future may be dropped at any point: what was asked for is taken back in the background.
    ///
    /// # Errors
    /// [`Error::NotAcquired`] with the reason and what each node said; [`Error::Config`] and
    /// [`Error::FencingUnsupported`] for a description that cannot work; [`Error::Closed`],
    /// [`Error::NoRuntime`].
    pub async fn acquire(&self) -> Result<Lease<R>, Error> {
        self.manager.acquire(self.spec.clone()?, Asking::Attempts).await
    }

    /// Asks for the lease once, and at once: without waiting in line.
    ///
    /// On independent nodes one attempt can fail although nobody gets the lease: contenders that ask in the
    /// same moment may each be granted a minority. Where it matters that somebody gets it, use a few attempts
    /// ([`acquire`](Self::acquire)) or some patience ([`acquire_within`](Self::acquire_within)).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire).
    pub async fn try_acquire(&self) -> Result<Lease<R>, Error> {
        self.manager.acquire(self.spec.clone()?, Asking::Once).await
    }

    /// Asks for the lease again and again for this long, however many attempts are configured and whatever is
    /// in the way: nodes that are down may come back. Zero still asks once. Callers of one manager wait in
    /// line, as for [`acquire`](Self::acquire).
    ///
    /// # Cancel safety
    /// As for [`acquire`](Self::acquire).
    ///
    /// # Errors
    /// As for [`acquire`](Self::acquire); the reason is [`WaitedInVain`](redlock_core::NotAcquiredReason::WaitedInVain) with what was
    /// last in the way.
    pub async fn acquire_within(&self, patience: Duration) -> Result<Lease<R>, Error> {
        self.manager.acquire(self.spec.clone()?, Asking::Within(patience)).await
    }

    /// Acquires the lease, runs `work` while it is held, and releases it whatever came of the work.
    ///
    /// The work is dropped at an await point if the lease is lost. Its own value is returned as it is,
    /// an error of its own included; a release that reached too few nodes does not hide it, since the
    /// lease was held to the end of the work all the same.
    ///
    /// In a task that is spawned, write the work as an `async` closure (`async |lease| ..`); a plain closure
    /// that returns a future needs the type of its parameter.
    ///
    /// # Cancel safety
    /// Dropping the future drops the work and gives the lease back in the background.
    ///
    /// # Errors
    /// [`RunError::Lease`] as for [`acquire`](Self::acquire), and with [`Error::LockLost`] when the lease was
    /// lost before the work had ended. [`RunError::LostMeanwhile`], with what the work returned, when the
    /// release found the lease already gone.
    pub async fn run<T>(&self, work: impl AsyncFnOnce(&Lease<R>) -> T) -> Result<T, RunError<T>> {
        let lease = self.acquire().await?;
        let done = lease.run(work(&lease)).await.map_err(Error::from)?;
        match lease.release().await {
            Err(Error::LockLost(lost)) => Err(RunError::LostMeanwhile { lost, done }),
            // Logged where it happened.
            Ok(()) | Err(_) => Ok(done),
        }
    }

    /// The resource: the key that the lock stands under.
    #[must_use]
    pub fn resource(&self) -> &str {
        &self.resource
    }

    /// The settings, if they can work.
    ///
    /// # Errors
    /// What asking for the lease would fail with.
    pub fn config(&self) -> Result<&Config, Error> {
        self.spec.as_ref().map(LeaseSpec::config).map_err(Clone::clone)
    }
}

fn describe<R: Runtime>(
    manager: &Manager<R>,
    resource: &Arc<str>,
    fencing: Option<&Arc<str>>,
    builder: &ConfigBuilder,
) -> Result<LeaseSpec, Error> {
    let config = builder.clone().build()?;
    // The nodes have the manager's.
    if config.restart_guard() != manager.config().restart_guard() {
        return Err(ConfigError::PerManager { field: "restart_guard" }.into());
    }
    let spec = LeaseSpec::new(Arc::clone(resource), Arc::clone(manager.names()), config)?;
    let Some(fencing) = fencing else { return Ok(spec) };
    let spec = spec.with_fencing(Arc::clone(fencing))?;
    let (resource_slot, fencing_slot) = (hash_slot(resource.as_bytes()), hash_slot(fencing.as_bytes()));
    if manager.is_cluster() && resource_slot != fencing_slot {
        let (resource, fencing_key) = (resource.as_ref().into(), fencing.as_ref().into());
        return Err(ConfigError::CrossSlot { resource, resource_slot, fencing_key, fencing_slot }.into());
    }
    Ok(spec)
}

impl<R> Clone for Lock<R> {
    fn clone(&self) -> Self {
        Self {
            manager: self.manager.clone(),
            resource: Arc::clone(&self.resource),
            fencing: self.fencing.clone(),
            builder: self.builder.clone(),
            spec: self.spec.clone(),
        }
    }
}

impl<R> fmt::Debug for Lock<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Lock")
            .field("resource", &self.resource)
            .field("fencing", &self.fencing)
            .field("settings", &self.builder)
            .finish_non_exhaustive()
    }
}
