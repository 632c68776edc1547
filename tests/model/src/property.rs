//! What must hold in every world, and what must happen in some.

use redlock_core::quorum;
use stateright::Property;

use crate::server::Server;
use crate::{Fact, Setup, Timers, World};

/// The promise itself.
pub const ONE_HOLDER: &str = "at most one holder";
/// What it rests on.
pub const BACKED: &str = "a majority keeps the holder's token to the end";
pub(crate) const IN_TIME: &str = "every request ends in time";
pub(crate) const TRUE: &str = "nothing that was promised or said is untrue";

pub(crate) fn properties(setup: &Setup) -> Vec<Property<Setup>> {
    let mut properties = vec![
        Property::always(ONE_HOLDER, |_, world: &World| world.holders().count() <= 1),
        Property::always(BACKED, |setup, world: &World| is_backed(setup, world)),
        Property::always(TRUE, |_, world: &World| world.flaw.is_none()),
    ];
    if setup.timers == Timers::Punctual {
        properties.push(Property::always(IN_TIME, |_, world: &World| {
            !world.clients.iter().any(|client| client.is_overdue(world.now))
        }));
    }
    properties.extend(setup.facts.iter().copied().map(sometimes));
    properties
}

impl World {
    /// The clients that hold the lease.
    pub(crate) fn holders(&self) -> impl Iterator<Item = usize> {
        let now = self.instant();
        (0..self.clients.len()).filter(move |who| self.clients[*who].machine.is_held(now))
    }
}

/// Whether a majority of servers holds the token of each holder, and will to the end of the lease.
pub(crate) fn is_backed(setup: &Setup, world: &World) -> bool {
    let now = world.instant();
    world.holders().all(|who| {
        let machine = &world.clients[who].machine;
        let (token, end) = (machine.token(), machine.valid_until());
        let keeps = |server: &Server| server.holds(now, token) && server.kept_until(setup, now) >= end;
        world.servers.iter().filter(|server| keeps(server)).count() >= quorum(world.servers.len())
    })
}

/// A property is a plain function, so each fact has its own.
fn sometimes(fact: Fact) -> Property<Setup> {
    macro_rules! each {
        ($($name:ident)*) => {
            match fact {
                $(Fact::$name => Property::sometimes(stringify!($name), |_, world: &World| {
                    world.news.says(Fact::$name)
                }),)*
            }
        };
    }
    each! {
        Acquired AcquiredLater NotAcquired ExpiredWhileAcquiring Cancelled Extended Shortened NotExtended
        Renewed NotRenewed LostExpired LostRefused LostClosed Released AlreadyExpired NotReleased DeletedAgain Hinted
    }
}
