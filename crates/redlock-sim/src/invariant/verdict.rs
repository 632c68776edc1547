//! "Released" is said only when a majority of the nodes is free of the token, and will stay so: no
//! command is on its way that could put it there again.

use redlock_core::{Command, CommandId, Token};

use super::Broken;
use crate::world::{Request, Stage};

#[derive(Debug, Default)]
pub(super) struct Verdict {
    /// By handle: its acquires that may still be carried out.
    under_way: Vec<Vec<Acquire>>,
}

#[derive(Clone, Debug)]
struct Acquire {
    id: CommandId,
    server: usize,
    token: Token,
}

impl Verdict {
    pub(super) fn begin(&mut self, handle: usize) {
        self.under_way.resize(self.under_way.len().max(handle + 1), Vec::new());
        self.under_way[handle].clear();
    }

    pub(super) fn under_way(&mut self, handle: usize, server: usize, command: &Command) {
        self.under_way[handle].push(Acquire { id: command.id, server, token: command.intent.token() });
    }

    pub(super) fn over(&mut self, request: &Request) {
        let (id, token) = (request.command.id, request.command.intent.token());
        self.under_way[request.handle].retain(|acquire| acquire.id != id || acquire.token != token);
    }

    /// Whether an acquire of this handle under one of these tokens may still be carried out.
    pub(super) fn awaits(&self, handle: usize, tokens: &[Token]) -> bool {
        self.under_way[handle].iter().any(|acquire| tokens.contains(&acquire.token))
    }

    pub(super) fn released(&self, stage: &Stage, handle: usize) -> Result<(), Broken> {
        let machine = &stage.handles[handle].machine;
        let (key, token, text) = (stage.key(handle), machine.token(), machine.token().to_hex());
        let awaits = |server| {
            self.under_way[handle].iter().any(|acquire| acquire.server == server && acquire.token == token)
        };
        let bound = (stage.servers.iter().enumerate())
            .filter(|(index, server)| server.value(stage.now, key) == Some(text.as_str()) || awaits(*index))
            .count();
        let free = stage.servers.len() - bound;
        if free * 2 <= stage.servers.len() {
            let what = format!(
                "{} was told that it has released, but only {free} servers are free",
                stage.name(handle)
            );
            return Err(Broken::new("verdict", what));
        }
        Ok(())
    }
}
