//! The channel to one core of the server: its port and the mutations in flight to it.
//!
//! The server remembers the last mutations of a client by their numbers. A mutation may be sent
//! only while the oldest unanswered one is within that window. The server then still remembers
//! every mutation that the client may retransmit. A client that retransmits nothing waits for none.

use glimmer_proto::native::Reach;
use std::collections::VecDeque;

/// One core, as the client sees it.
#[derive(Debug)]
pub struct Channel {
    pub port: u16,
    next: u32,
    /// Whether each mutation has been answered, starting with the oldest unanswered one.
    answered: VecDeque<bool>,
    /// Slots of mutations that wait for room in the window.
    pub held: VecDeque<u32>,
}

impl Channel {
    /// A channel on which no mutation has been sent.
    pub fn new(port: u16, first_mutation: u32) -> Channel {
        Channel {
            port,
            next: first_mutation,
            answered: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// Assigns the next mutation number if fewer than `window` mutations are in flight, or if none
    /// is ever sent again. Also returns how far back the unanswered mutations reach: those may be
    /// retransmitted.
    #[inline]
    pub fn number(&mut self, window: u32, resends: bool) -> Option<(u32, Reach)> {
        if self.answered.len() >= window as usize {
            if resends {
                return None;
            }
            self.answered.pop_front();
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.answered.push_back(false);
        Some((number, Reach::over(self.answered.len())))
    }

    /// Records that a mutation was answered or given up. Returns whether mutations are waiting for
    /// room.
    #[inline]
    pub fn settle(&mut self, number: u32) -> bool {
        let oldest = self.next.wrapping_sub(self.answered.len() as u32);
        if let Some(answered) = self.answered.get_mut(number.wrapping_sub(oldest) as usize) {
            *answered = true;
        }
        while self.answered.front() == Some(&true) {
            self.answered.pop_front();
        }
        !self.held.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_unanswered_mutation_holds_the_window() {
        let mut channel = Channel::new(1, u32::MAX);
        let numbered = |number, mutations| Some((number, Reach::over(mutations)));
        let numbers: Vec<_> = (0..4).map(|_| channel.number(3, true)).collect();
        let expected = [numbered(u32::MAX, 1), numbered(0, 2), numbered(1, 3), None];
        assert_eq!(numbers, expected);
        channel.settle(0);
        channel.settle(1);
        assert_eq!(channel.number(3, true), None);
        channel.settle(u32::MAX);
        assert_eq!(channel.number(3, true), numbered(2, 1));
        channel.settle(77);
        let numbers = [channel.number(3, true), channel.number(3, true)];
        assert_eq!(numbers, [numbered(3, 2), numbered(4, 3)]);
        assert_eq!(channel.number(3, true), None);
    }

    /// Otherwise a lost mutation would delay all that follow until its deadline, and a burst of
    /// these would lose more.
    #[test]
    fn what_is_never_sent_again_holds_nothing() {
        let mut channel = Channel::new(1, 0);
        let mut number = || channel.number(2, false);
        let numbers = [number(), number(), number(), number()];
        let numbered = |number, mutations| Some((number, Reach::over(mutations)));
        let expected = [(0, 1), (1, 2), (2, 2), (3, 2)].map(|(n, reach)| numbered(n, reach));
        assert_eq!(numbers, expected);
        assert!(!channel.settle(0) && !channel.settle(3) && !channel.settle(2));
        assert_eq!(channel.number(2, true), numbered(4, 1));
    }
}
