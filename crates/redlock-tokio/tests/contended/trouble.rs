//! Five nodes, and what is done to two of them at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redlock_tests::harness::{Cut, Random, Relay, Server};

use crate::sleep;

/// Five servers, two of them behind a relay.
pub(crate) struct World {
    nodes: Vec<Server>,
    relays: Vec<Option<Relay>>,
    /// How long a node stays away that forgets what it granted.
    away: usize,
}

/// The nodes of one trouble maker, which harms one of them at a time. With one maker for each group never more
/// than a minority is harmed.
const GROUPS: [&[usize]; 2] = [&[0, 1, 2], &[3, 4]];
/// These forget what they granted when they are killed.
const FORGETFUL: [usize; 2] = [2, 3];
/// These are reached through a relay.
const RELAYED: [usize; 2] = [1, 4];

impl World {
    pub(crate) fn start(ttl: Duration) -> Self {
        let nodes: Vec<_> =
            (0..5).map(|node| Server::builder().appendonly(!FORGETFUL.contains(&node)).start()).collect();
        let relay = |(number, node): (usize, &Server)| {
            RELAYED.contains(&number).then(|| Relay::start(node.address()))
        };
        let relays = nodes.iter().enumerate().map(relay).collect();
        let away = ttl + Duration::from_millis(200);
        Self { nodes, relays, away: usize::try_from(away.as_millis()).unwrap() }
    }

    pub(crate) fn nodes(&self) -> &[Server] {
        &self.nodes
    }

    pub(crate) fn urls(&self) -> Vec<String> {
        let url =
            |(node, relay): (&Server, &Option<Relay>)| relay.as_ref().map_or_else(|| node.url(), Relay::url);
        self.nodes.iter().zip(&self.relays).map(url).collect()
    }
}

/// What can happen to a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    Freeze,
    Kill,
    PauseClients,
    KillClients,
    FlushScripts,
    /// The rest is the network's.
    Delay,
    Close,
    Reset,
    BlackHole,
    DropReplies,
    Refuse,
}

use Trouble::{
    BlackHole, Close, Delay, DropReplies, FlushScripts, Freeze, Kill, KillClients, PauseClients, Refuse,
    Reset,
};

const OF_NODES: [Trouble; 5] = [Freeze, Kill, PauseClients, KillClients, FlushScripts];
const OF_NETWORKS: [Trouble; 6] = [Delay, Close, Reset, BlackHole, DropReplies, Refuse];

impl Trouble {
    /// Makes trouble in threads until it is over; they tell how often which.
    pub(crate) fn start(
        world: &Arc<World>,
        seed: u64,
        over: &Arc<AtomicBool>,
    ) -> Vec<JoinHandle<Vec<(Self, usize)>>> {
        println!("faults are chosen with seed {seed}");
        let maker = |(number, group): (u64, &'static [usize])| {
            let (world, over) = (Arc::clone(world), Arc::clone(over));
            let mut random = Random::new(seed + number);
            thread::spawn(move || {
                let mut made: Vec<_> = OF_NODES.iter().chain(&OF_NETWORKS).map(|&kind| (kind, 0)).collect();
                while !over.load(Ordering::Relaxed) {
                    let node = *random.one_of(group);
                    let relayed = world.relays[node].is_some() && random.below(2) == 0;
                    let kind = *random.one_of(if relayed { &OF_NETWORKS[..] } else { &OF_NODES[..] });
                    kind.befall(&world, node, &mut random);
                    made.iter_mut().filter(|(other, _)| *other == kind).for_each(|(_, times)| *times += 1);
                    sleep(20 + random.below(200));
                }
                made
            })
        };
        (0..).zip(GROUPS).map(maker).collect()
    }

    /// Happens to this node, and is over when this returns.
    fn befall(self, world: &World, number: usize, random: &mut Random) {
        let node = &world.nodes[number];
        let ask =
            |words: &[&str]| redis::cmd(words[0]).arg(&words[1..]).exec(&mut node.connection()).unwrap();
        let span = 50 + random.below(500);
        match self {
            Self::Freeze => {
                node.freeze();
                sleep(span);
                node.thaw();
            }
            Self::Kill => {
                node.kill();
                sleep(if FORGETFUL.contains(&number) { world.away } else { span });
                node.restart();
            }
            Self::PauseClients => {
                node.pause_all(Duration::from_millis(span as u64));
                sleep(span);
            }
            Self::KillClients => ask(&["CLIENT", "KILL", "TYPE", "normal"]),
            Self::FlushScripts => ask(&["SCRIPT", "FLUSH"]),
            Self::Delay | Self::Close | Self::Reset | Self::BlackHole | Self::DropReplies | Self::Refuse => {
                if let Some(relay) = &world.relays[number] {
                    self.strike(relay, span, random);
                }
            }
        }
    }

    fn strike(self, relay: &Relay, span: usize, random: &mut Random) {
        match self {
            Self::Delay => {
                let delay = Duration::from_millis(random.below(120) as u64);
                relay.delay_requests(delay);
                relay.delay_replies(delay);
                sleep(span);
                relay.delay_requests(Duration::ZERO);
                relay.delay_replies(Duration::ZERO);
            }
            Self::Close => relay.reset_all(),
            Self::Reset => relay.cut_replies_after(random.below(12), Cut::Reset),
            Self::BlackHole => relay.black_hole_existing(),
            Self::DropReplies => {
                relay.drop_replies(true);
                sleep(span);
                relay.drop_replies(false);
            }
            Self::Refuse => {
                relay.refuse(true);
                relay.reset_all();
                sleep(span);
                relay.refuse(false);
            }
            Self::Freeze | Self::Kill | Self::PauseClients | Self::KillClients | Self::FlushScripts => {}
        }
    }
}
