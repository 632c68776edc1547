//! One lease on five nodes that all say yes, without anything around the machine.

use std::sync::Arc;
use std::time::Duration;

use redlock_core::{
    CommandId, Config, Event, Instant, Intent, LeaseMachine, LeaseSpec, Output, Patience, ReleaseOutcome,
    Reply, Token,
};

use crate::Failure;

pub(crate) const NODES: usize = 5;

pub(crate) fn spec() -> Result<LeaseSpec, Failure> {
    let nodes: Vec<Arc<str>> = (0..NODES).map(|node| format!("node {node}").into()).collect();
    Ok(LeaseSpec::new("bench:core", nodes, Config::default())?)
}

/// A machine, and the answers that its nodes have yet to give.
#[derive(Clone)]
pub(crate) struct Rounds {
    machine: LeaseMachine,
    now: Instant,
    asked: [Option<CommandId>; NODES],
}

impl Rounds {
    pub(crate) fn new(spec: &LeaseSpec) -> Self {
        let machine = LeaseMachine::new(spec.clone(), Token::from_bytes([7; Token::LEN]), 42);
        Self { machine, now: Instant::EPOCH, asked: [None; NODES] }
    }

    /// From the request until all nodes have answered.
    pub(crate) fn acquire(&mut self) -> Result<(), Failure> {
        self.machine.acquire(self.now, Patience::Attempts(1))?;
        self.until_answered(|event| matches!(event, Event::Acquired { .. }))
    }

    pub(crate) fn extend(&mut self) -> Result<(), Failure> {
        self.machine.extend(self.now, Duration::from_secs(30))?;
        self.until_answered(|event| matches!(event, Event::Extended { .. }))
    }

    pub(crate) fn release(&mut self) -> Result<(), Failure> {
        self.machine.release(self.now)?;
        self.until_answered(|event| *event == Event::Released(ReleaseOutcome::Released))
    }

    fn until_answered(&mut self, wanted: impl Fn(&Event) -> bool) -> Result<(), Failure> {
        let (mut good, mut yes) = (0, Reply::Int(1));
        self.drain(&mut good, &mut yes, &wanted);
        for node in 0..NODES {
            let Some(id) = self.asked.get_mut(node).and_then(Option::take) else {
                return Err("a node was not asked".into());
            };
            self.now = self.now.saturating_add(Duration::from_micros(10));
            self.machine.handle_reply(self.now, id, Ok(yes.clone()));
            self.drain(&mut good, &mut Reply::Nil, &wanted);
        }
        if good == 1 {
            Ok(())
        } else {
            Err(format!("{good} events of the kind that a round ends with").into())
        }
    }

    /// Takes all outputs, as a driver does.
    fn drain(&mut self, good: &mut usize, yes: &mut Reply, wanted: &impl Fn(&Event) -> bool) {
        loop {
            match self.machine.poll_output() {
                Output::Send(command) => {
                    if matches!(command.intent, Intent::SetNxPx { .. }) {
                        *yes = Reply::Ok;
                    }
                    if let Some(asked) = self.asked.get_mut(command.node.index()) {
                        *asked = Some(command.id);
                    }
                }
                Output::Event(event) => *good += usize::from(wanted(&event)),
                Output::Wait(_) => return,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_can_be_repeated_on_one_machine() {
        let mut rounds = Rounds::new(&spec().unwrap());
        for _ in 0..3 {
            rounds.acquire().unwrap();
            rounds.extend().unwrap();
            rounds.release().unwrap();
            assert!(rounds.machine.is_settled());
        }
        rounds.acquire().unwrap();
        assert!(rounds.acquire().is_err());
    }
}
