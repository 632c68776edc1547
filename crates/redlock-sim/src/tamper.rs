//! What stands between a machine and its world. In a sound scenario, nothing. In some modes it alters
//! commands, answers or the time on their way, so that the real machine acts as one with a known flaw
//! would. Nothing of the machine is imitated.

use std::time::Duration;

use redlock_core::{Command, CommandId, Instant, Intent, NodeId, Token};

use crate::Mode;

#[derive(Clone, Debug)]
pub(crate) enum Tamper {
    Nothing,
    /// Every command carries this token, whatever the attempt.
    OneToken(Token),
    /// An answer to an acquire goes in as one to the newest acquire of that node.
    OldReplies(Vec<Option<CommandId>>),
    /// The machine's clock is held back by the time that questions have been under way, so that an
    /// answer seems to come at once. The value says by how much.
    ReplyTime(Duration),
}

impl Tamper {
    pub(crate) fn new(mode: Mode, base: Token, nodes: usize) -> Self {
        match mode {
            Mode::OneToken => Self::OneToken(base),
            Mode::OldReplies => Self::OldReplies(vec![None; nodes]),
            Mode::ReplyTime => Self::ReplyTime(Duration::ZERO),
            _ => Self::Nothing,
        }
    }

    /// The time that the machine is shown.
    pub(crate) fn shown(&self, local: Instant) -> Instant {
        match self {
            Self::ReplyTime(held_back) => local.saturating_sub(*held_back),
            _ => local,
        }
    }

    /// The local time at which it is shown this.
    pub(crate) fn local(&self, shown: Instant) -> Instant {
        match self {
            Self::ReplyTime(held_back) => shown.saturating_add(*held_back),
            _ => shown,
        }
    }

    /// A command on its way to the network.
    pub(crate) fn command(&mut self, command: &mut Command) {
        match self {
            Self::OneToken(base) => match &mut command.intent {
                Intent::SetNxPx { token, .. }
                | Intent::FencedAcquire { token, .. }
                | Intent::CompareAndDelete { token }
                | Intent::CompareAndPexpire { token, .. } => *token = *base,
            },
            Self::OldReplies(newest) if command.intent.acquires() => {
                if let Some(newest) = newest.get_mut(command.node.index()) {
                    *newest = Some(command.id);
                }
            }
            _ => {}
        }
    }

    /// An answer on its way to the machine, at this local time. `asked` is what the machine was shown
    /// when it put the question. Returns the id under which the answer goes in.
    pub(crate) fn answer(
        &mut self,
        local: Instant,
        asked: Instant,
        id: CommandId,
        node: NodeId,
        is_vote: bool,
        acquires: bool,
    ) -> CommandId {
        match self {
            Self::OldReplies(newest) if acquires => newest.get(node.index()).copied().flatten().unwrap_or(id),
            Self::ReplyTime(held_back) if is_vote => {
                *held_back = local.saturating_since(asked).max(*held_back);
                id
            }
            _ => id,
        }
    }
}
