//! What may happen next.

use crate::{Action, Grain, Sabotage, Setup, Timers, World};

impl World {
    pub(crate) fn actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        match (setup.grain, self.closing) {
            (Grain::Fine, _) => {
                if self.time_may_pass(setup) {
                    actions.push(Action::Tick);
                }
                self.client_actions(setup, actions);
                self.server_actions(setup, actions);
                self.each_line(setup, |who, node| self.fine_traffic(setup, who, node, actions));
            }
            (Grain::Coarse, None) => {
                if self.time_may_pass(setup) {
                    actions.push(Action::Close);
                }
                self.client_actions(setup, actions);
                self.server_actions(setup, actions);
                self.each_line(setup, |who, node| self.coarse_traffic(setup, who, node, actions));
            }
            (Grain::Coarse, Some(from)) => {
                actions.push(Action::Tick);
                self.each_line(setup, |who, node| {
                    if node >= from {
                        self.executions(setup, who, node, actions);
                    }
                });
            }
        }
    }

    fn time_may_pass(&self, setup: &Setup) -> bool {
        let behind = self.lines.iter().filter(|line| !line.flights.is_empty()).count();
        self.now < setup.horizon && behind <= setup.behind
    }

    fn client_actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        for (who, client) in self.clients.iter().enumerate() {
            let wishes = client.wishes(setup, who).into_iter();
            actions.extend(wishes.map(|request| Action::Ask { who, request }));
            let due = client.machine.next_timeout().is_some_and(|(at, _)| at <= self.instant());
            if due && setup.timers == Timers::Late {
                actions.push(Action::Wake { who });
            }
            if self.hints_left > 0 {
                actions.extend((0..setup.nodes).map(|node| Action::Hint { who, node }));
            }
        }
    }

    fn server_actions(&self, setup: &Setup, actions: &mut Vec<Action>) {
        for (server, state) in self.servers.iter().enumerate() {
            if state.may_lapse(setup, self.instant()) {
                actions.push(Action::Lapse { server });
            }
            match setup.sabotage {
                Sabotage::Forgetful if self.sabotage_left => actions.push(Action::Forget { server }),
                Sabotage::ClockJump if self.sabotage_left => actions.push(Action::Jump { server }),
                _ => {}
            }
        }
    }

    fn fine_traffic(&self, setup: &Setup, who: usize, node: usize, actions: &mut Vec<Action>) {
        self.executions(setup, who, node, actions);
        let line = self.line(setup, who, node);
        if self.trouble_left.refusals > 0 {
            let refusable = line.executable(setup.order);
            actions.extend(refusable.map(|position| Action::Refuse { who, node, position }));
        }
        actions.extend(line.answerable(setup.order).map(|position| Action::Answer { who, node, position }));
        actions.extend((0..line.ghosts.len()).map(|position| Action::Haunt { who, node, position }));
        if self.trouble_left.breaks > 0 && !line.flights.is_empty() {
            actions.push(Action::Break { who, node });
        }
    }

    fn coarse_traffic(&self, setup: &Setup, who: usize, node: usize, actions: &mut Vec<Action>) {
        match self.line(setup, who, node).flights.first() {
            None => {}
            Some(flight) if flight.answer.is_some() => {
                actions.push(Action::Answer { who, node, position: 0 });
            }
            Some(_) => {
                let others = self.line(setup, other(who), node).open().count();
                actions.extend((0..=others).map(|ahead| Action::Exchange { who, node, ahead }));
            }
        }
    }

    fn executions(&self, setup: &Setup, who: usize, node: usize, actions: &mut Vec<Action>) {
        let positions = self.line(setup, who, node).executable(setup.order);
        actions.extend(positions.map(|position| Action::Execute { who, node, position }));
    }

    fn each_line(&self, setup: &Setup, mut act: impl FnMut(usize, usize)) {
        for node in 0..setup.nodes {
            (0..self.clients.len()).for_each(|who| act(who, node));
        }
    }
}

/// The other one of the two clients.
pub(crate) const fn other(who: usize) -> usize {
    1 - who
}
