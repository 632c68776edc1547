//! A Redis Cluster of three shards.

use std::ops::Range;
use std::thread;
use std::time::Duration;

use redis::cmd;

use super::clock::wait_until;
use super::server::Server;

/// Three primaries without replicas, which share the slots among them.
#[derive(Debug)]
pub struct Cluster {
    shards: Vec<Server>,
}

impl Cluster {
    /// Starts the shards, and returns when each of them serves its slots.
    ///
    /// # Panics
    /// Like [`ServerBuilder::start`](super::ServerBuilder::start).
    #[track_caller]
    #[allow(clippy::needless_collect, reason = "all of them are started before the first one is waited for")]
    pub fn start() -> Self {
        let shards: Vec<Server> = thread::scope(|scope| {
            let started: Vec<_> = SLOTS.iter().map(|_| scope.spawn(start_shard)).collect();
            started.into_iter().map(|shard| shard.join().expect("the shard has started")).collect()
        });
        for (number, (shard, slots)) in shards.iter().zip(SLOTS).enumerate() {
            // Without an epoch of their own they would have to agree on one first.
            shard.ask::<()>(cmd("CLUSTER").arg("SET-CONFIG-EPOCH").arg(number + 1));
            shard.ask::<()>(cmd("CLUSTER").arg("ADDSLOTS").arg(slots.collect::<Vec<_>>()));
        }
        for other in &shards[1..] {
            shards[0].ask::<()>(cmd("CLUSTER").arg("MEET").arg("127.0.0.1").arg(other.port()));
        }
        let this = Self { shards };
        wait_until("the shards know each other", CLUSTER_LIMIT, || this.is_sound());
        this
    }

    /// The shards, in the order of their slots.
    pub fn shards(&self) -> &[Server] {
        &self.shards
    }

    /// The URLs of all shards.
    pub fn urls(&self) -> Vec<String> {
        self.shards.iter().map(|shard| shard.url()).collect()
    }

    /// The number of the shard that serves `key`, as long as no slot has moved.
    pub fn shard_of(&self, key: &str) -> usize {
        let slot = self.slot_of(key);
        SLOTS.iter().position(|slots| slots.contains(&slot)).expect("every slot is somebody's")
    }

    /// Gives the slot of `key`, in which there must be no key, to another shard; all of them know it when this
    /// returns.
    pub fn move_slot_of(&self, key: &str, to: usize) {
        let slot = self.slot_of(key);
        let new_owner: String = self.shards[to].ask(cmd("CLUSTER").arg("MYID"));
        // The new owner first: a slot must not be without one.
        for shard in std::iter::once(&self.shards[to]).chain(&self.shards) {
            shard.ask::<()>(cmd("CLUSTER").arg("SETSLOT").arg(slot).arg("NODE").arg(&new_owner));
        }
    }

    fn slot_of(&self, key: &str) -> u16 {
        self.shards[0].ask(cmd("CLUSTER").arg("KEYSLOT").arg(key))
    }

    fn is_sound(&self) -> bool {
        self.shards.iter().all(|shard| {
            let info: String = shard.ask(cmd("CLUSTER").arg("INFO"));
            let has = |line: &str| info.lines().any(|other| other.trim_end() == line);
            has("cluster_state:ok") && has("cluster_slots_ok:16384") && has("cluster_known_nodes:3")
        })
    }
}

/// The port for the others is 10000 higher, by default and, before Redis 7, always.
fn start_shard() -> Server {
    Server::builder()
        .arg("--cluster-enabled", "yes")
        .arg("--cluster-node-timeout", "1000")
        // What one shard's failure does to the others is not the question.
        .arg("--cluster-require-full-coverage", "no")
        .start()
}

const SLOTS: [Range<u16>; 3] = [0..5_461, 5_461..10_923, 10_923..16_384];

/// It takes some three seconds, two of which a shard waits before it serves anything.
const CLUSTER_LIMIT: Duration = Duration::from_secs(30);

#[cfg(test)]
mod tests {
    use super::super::may_own_servers;
    use super::*;

    #[test]
    fn a_moved_slot_is_served_by_its_new_shard() {
        if !may_own_servers() {
            return;
        }
        let cluster = Cluster::start();
        let (old, new) = (cluster.shard_of("key"), (cluster.shard_of("key") + 1) % 3);
        cluster.shards()[old].set("key", "value");
        assert!(cluster.shards()[old].del("key"));
        cluster.move_slot_of("key", new);
        cluster.shards()[new].set("key", "value");
        let moved = cmd("GET").arg("key").exec(&mut cluster.shards()[old].connection()).unwrap_err();
        assert_eq!(moved.code(), Some("MOVED"));
    }
}
