//! `cargo xtask demo`: what a lease does, step by step, with the proof of each claim.

mod contention;
mod expiry;
mod fencing;
mod nodes;
mod options;
mod quorum;
mod renewal;
mod stage;
mod summary;

use std::error::Error;
use std::hash::{BuildHasher as _, RandomState};
use std::time::Duration;

use redlock_tokio::{Config, Lock, Manager};
use tokio::runtime::Runtime;
use tokio::time::Instant;

use nodes::Nodes;
pub(crate) use options::Options;

/// Anything that keeps a step from showing what it claims.
type Failure = Box<dyn Error + Send + Sync>;

/// Runs all steps up to the first that fails.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let runtime = Runtime::new().map_err(|error| format!("no runtime: {error}"))?;
    runtime.block_on(show(options.nodes())).map_err(|failure| failure.to_string())
}

async fn show(nodes: Nodes) -> Result<(), Failure> {
    let started = Instant::now();
    let demo = Demo {
        manager: nodes.manager()?,
        fenced: nodes.fenced()?,
        // Two demos on the same servers, or one after a crash, must not meet.
        run: format!("{:016x}", RandomState::new().hash_one("demo")),
        nodes,
    };
    demo.nodes.introduce();
    demo.reach().await?;
    let shown = demo.steps().await;
    demo.close().await;
    demo.nodes.remove(&demo.keys()).await;
    shown?;
    summary::show(&demo, started.elapsed())
}

/// What the steps share.
struct Demo {
    nodes: Nodes,
    /// Leases on all the nodes.
    manager: Manager,
    /// Leases on one node, which can be fenced.
    fenced: Manager,
    /// What tells this run's keys from those of others.
    run: String,
}

/// The resources, one for each step that needs one, and the counter.
const RESOURCES: [&str; 6] = ["counter", "renewal", "expiry", "quorum", "guarded", "guarded-fence"];

impl Demo {
    async fn steps(&self) -> Result<(), Failure> {
        contention::show(self).await?;
        renewal::show(self).await?;
        expiry::show(self).await?;
        match &self.nodes {
            Nodes::Memory(servers) => quorum::show(self, servers).await?,
            Nodes::Real(urls) => quorum::show_harmlessly(self, urls).await?,
        }
        fencing::show(self).await
    }

    /// Takes a lease and gives it back, so that servers that are not there are noticed at once.
    async fn reach(&self) -> Result<(), Failure> {
        Ok(self.lock("counter").acquire().await?.release().await?)
    }

    fn lock(&self, resource: &str) -> Lock {
        self.manager.lock(self.key(resource))
    }

    fn key(&self, resource: &str) -> String {
        format!("redlock-demo:{{{}}}:{resource}", self.run)
    }

    fn keys(&self) -> Vec<String> {
        RESOURCES.iter().map(|resource| self.key(resource)).collect()
    }

    async fn close(&self) {
        self.manager.close().await;
        self.fenced.close().await;
    }
}

/// The settings that the steps start from.
fn config() -> Result<Config, Failure> {
    // More than the usual 1 %, so that one can see with the naked eye what it is for.
    Ok(Config::builder().ttl(ms(2_000)).drift_factor(0.05).retry_delay(ms(5)).build()?)
}

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::runtime::Builder;

    /// On a clock that does not wait, so it takes no time, and nothing in it depends on luck.
    #[test]
    fn every_step_shows_what_it_claims() {
        let runtime = Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
        runtime.block_on(show(Nodes::memory())).unwrap();
    }
}
