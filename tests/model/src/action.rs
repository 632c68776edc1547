//! The things that can happen, one at a time.

/// One thing that happens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Time goes on by one tick.
    Tick,
    /// A client asks its machine for something.
    Ask {
        /// Which client.
        who: usize,
        /// What for.
        request: Request,
    },
    /// A client is told that its key may have gone at a node, true or not.
    Hint {
        /// Which client.
        who: usize,
        /// At which node.
        node: usize,
    },
    /// A client that does not keep time well handles a timer that is due.
    Wake {
        /// Which client.
        who: usize,
    },
    /// A node carries a command out.
    Execute {
        /// Whose command.
        who: usize,
        /// At which node.
        node: usize,
        /// Which of those under way.
        position: usize,
    },
    /// A node carries out so many commands of the other client, then one of this one, whose answer
    /// arrives at once.
    Exchange {
        /// Whose command.
        who: usize,
        /// At which node.
        node: usize,
        /// How many commands of the other client come first.
        ahead: usize,
    },
    /// Time is about to go on: nodes may still carry commands out, and nothing else happens before.
    Close,
    /// An answer arrives.
    Answer {
        /// Whose.
        who: usize,
        /// From which node.
        node: usize,
        /// Which of those under way.
        position: usize,
    },
    /// A node turns a command away without carrying it out.
    Refuse {
        /// Whose command.
        who: usize,
        /// Which node.
        node: usize,
        /// Which of those under way.
        position: usize,
    },
    /// The connection of a client to a node breaks, and the client is told.
    Break {
        /// Which client.
        who: usize,
        /// Which node.
        node: usize,
    },
    /// A node carries out a command that came over a connection that is broken by now.
    Haunt {
        /// Whose command.
        who: usize,
        /// At which node.
        node: usize,
        /// Which of those that are left.
        position: usize,
    },
    /// A key goes early, because the server's clock has gained what the drift allows.
    Lapse {
        /// Which server.
        server: usize,
    },
    /// A server restarts without its data.
    Forget {
        /// Which server.
        server: usize,
    },
    /// A server's clock jumps.
    Jump {
        /// Which server.
        server: usize,
    },
}

/// What a client can ask its machine for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// The lease.
    Acquire,
    /// More time: so many ticks from now on.
    Extend(u8),
    /// To give it back.
    Release,
    /// To drop everything.
    Abandon,
}
