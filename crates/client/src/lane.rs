//! One core of the server: its port, and the mutations under way to it.
//!
//! The server remembers the last mutations of a client by their numbers. A mutation may be sent only while the oldest unanswered one is among those: then
//! no retransmission can ever be older than what is remembered.

use glimmer_proto::native::Reach;
use std::collections::VecDeque;

/// A core as the client sees it.
#[derive(Debug)]
pub struct Lane {
    pub port: u16,
    next: u32,
    /// Whether each mutation from the oldest unanswered one on has been answered.
    answered: VecDeque<bool>,
    /// Mutations that wait for their turn.
    pub held: VecDeque<u32>,
}

impl Lane {
    /// A core that no mutation has been sent to.
    pub fn new(port: u16, first_mutation: u32) -> Lane {
        Lane {
            port,
            next: first_mutation,
            answered: VecDeque::new(),
            held: VecDeque::new(),
        }
    }

    /// The next mutation's number, if so many may be under way; and that those may be sent again which come before it, from the oldest unanswered one on.
    #[inline]
    pub fn number(&mut self, window: u32) -> Option<(u32, Reach)> {
        if self.answered.len() >= window as usize {
            return None;
        }
        let number = self.next;
        self.next = number.wrapping_add(1);
        self.answered.push_back(false);
        Some((number, Reach::over(self.answered.len())))
    }

    /// A mutation has been answered, or has been given up. True: others may go now.
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
        let mut lane = Lane::new(1, u32::MAX);
        let numbered = |number, mutations| Some((number, Reach::over(mutations)));
        let numbers: Vec<_> = (0..4).map(|_| lane.number(3)).collect();
        let expected = [numbered(u32::MAX, 1), numbered(0, 2), numbered(1, 3), None];
        assert_eq!(numbers, expected);
        lane.settle(0);
        lane.settle(1);
        assert_eq!(lane.number(3), None);
        lane.settle(u32::MAX);
        assert_eq!(lane.number(3), numbered(2, 1));
        lane.settle(77);
        let numbers = [lane.number(3), lane.number(3)];
        assert_eq!(numbers, [numbered(3, 2), numbered(4, 3)]);
        assert_eq!(lane.number(3), None);
    }
}
