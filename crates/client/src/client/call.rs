//! The requests of one call, those of them that wait for room, and their answers.

use super::link::Links;
use crate::answer::{Answer, Told};
use crate::error::Failed;
use crate::operation::Operation;
use crate::placement::Choice;
use crate::{Failure, Reply};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;

/// One operation on each of these keys.
pub struct Call<'a, T, E> {
    keys: &'a [&'a [u8]],
    operation: &'a Operation<'a, T, E>,
    choice: &'a Choice,
    servers: Vec<SocketAddr>,
    answers: Vec<Option<Result<Told, Failure>>>,
    /// For each link, the keys that wait until there is room in its congestion window. Empty if no
    /// key has had to wait.
    waiting: Vec<VecDeque<usize>>,
}

impl<'a, T, E> Call<'a, T, E> {
    /// Nothing has been asked yet.
    pub fn new(
        keys: &'a [&'a [u8]],
        operation: &'a Operation<'a, T, E>,
        choice: &'a Choice,
    ) -> Call<'a, T, E> {
        Call {
            keys,
            operation,
            choice,
            servers: Vec::with_capacity(keys.len()),
            answers: Vec::with_capacity(keys.len()),
            waiting: Vec::new(),
        }
    }

    /// Sends the requests and waits for the answers, until the deadline at most. The keys of one
    /// server do not wait for those of another.
    pub fn run(mut self, links: &mut Links) -> io::Result<Vec<Answer>> {
        for &key in self.keys {
            let link = self.choose(links, key);
            self.servers.push(links.server(link));
            self.answers.push(None);
            self.ask(links, link, self.answers.len() - 1);
        }
        // A request's deadline starts when it is issued. Those that are issued later get no more
        // time than the first ones.
        let deadline_us = (!self.waiting.is_empty()).then(|| links.deadline_us());
        while links.under_way() > 0 {
            links.turn_until(deadline_us, &mut take(&mut self.answers))?;
            if let Some(deadline_us) = deadline_us {
                if links.now_us() >= deadline_us {
                    links.give_up(&mut take(&mut self.answers));
                    break;
                }
                self.ask_waiting(links);
            }
        }
        Ok(self.into_answers())
    }

    fn choose(&self, links: &Links, key: &[u8]) -> usize {
        self.choice.of(key, |link| links.is_away(link))
    }

    /// Issues the request for a key, or has it wait.
    fn ask(&mut self, links: &mut Links, link: usize, index: usize) {
        if links.has_queue(link) {
            if self.waiting.is_empty() {
                self.waiting.resize_with(links.count(), VecDeque::new);
            }
            self.waiting[link].push_back(index);
            return;
        }
        let ask = self.operation.ask(self.keys[index]);
        if let Err(failure) = links.ask(link, &ask, index) {
            self.answers[index] = Some(Err(failure));
        }
    }

    /// Issues requests for which there is room now. A server that has gone away meanwhile may have
    /// lost its keys to others.
    fn ask_waiting(&mut self, links: &mut Links) {
        for link in 0..self.waiting.len() {
            while !links.has_queue(link)
                && let Some(index) = self.waiting[link].pop_front()
            {
                let link = self.choose(links, self.keys[index]);
                self.servers[index] = links.server(link);
                self.ask(links, link, index);
            }
        }
    }

    /// A request that was never issued is one to a silent server.
    fn into_answers(self) -> Vec<Answer> {
        let answers = self.answers.into_iter().zip(self.servers);
        answers
            .map(|(answer, server)| {
                let answer = answer.unwrap_or(Err(Failure::Silent));
                answer.map_err(|failure| Failed { failure, server })
            })
            .collect()
    }
}

/// Stores each answer under its tag.
fn take(
    answers: &mut [Option<Result<Told, Failure>>],
) -> impl FnMut(usize, Result<&Reply<'_>, Failure>) {
    |index, reply| answers[index] = Some(reply.map(Told::of))
}
