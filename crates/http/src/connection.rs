//! One client's bytes. It knows no socket and no clock.

use std::io::{self, ErrorKind, Read, Write};

use glimmer_base::limits::{
    HTTP_IDLE_MS, HTTP_LINGER_MS, HTTP_PATIENCE_MS, HTTP_REQUEST_BYTES_MAX,
};

use crate::request::{Parsed, parse};
use crate::{Reply, Request};

/// A stream of which one direction can be ended.
pub(crate) trait Finish {
    /// Sends no more: the peer receives what was sent, and then the end.
    fn finish(&mut self);
}

/// A client's connection over a stream that does not block.
pub(crate) struct Connection<S> {
    pub stream: S,
    /// Received, and not answered yet.
    input: Vec<u8>,
    /// To be sent, from `sent` on.
    output: Vec<u8>,
    sent: usize,
    /// Nothing more is answered, and the connection ends when everything is sent.
    is_last: bool,
    /// Everything is sent, and what still comes is passed over until then, in milliseconds of the
    /// caller's clock.
    lingers_until_ms: Option<u64>,
    /// When something last came or went, in milliseconds of the caller's clock.
    active_ms: u64,
    /// When the request that is incomplete began.
    began_ms: u64,
    /// It has sent more than is answered at a time.
    is_waiting: bool,
}

/// Requests of one connection that are answered before others have their turn.
const TURN_REQUESTS_MAX: usize = 4;

/// Receives whose bytes are passed over before others have their turn.
const TURN_PASSED_OVER_MAX: usize = 32;

impl<S: Read + Write + Finish> Connection<S> {
    pub fn new(stream: S, now_ms: u64) -> Connection<S> {
        Connection {
            stream,
            input: Vec::new(),
            output: Vec::new(),
            sent: 0,
            is_last: false,
            lingers_until_ms: None,
            active_ms: now_ms,
            began_ms: now_ms,
            is_waiting: false,
        }
    }

    /// Whether it has a turn without anything new.
    pub fn is_waiting(&self) -> bool {
        self.is_waiting
    }

    /// Whether bytes wait to be sent.
    pub fn is_sending(&self) -> bool {
        self.sent < self.output.len()
    }

    /// How long it has been silent.
    pub fn silent_ms(&self, now_ms: u64) -> u64 {
        now_ms.saturating_sub(self.active_ms)
    }

    /// When it is to be closed if nothing happens.
    pub fn deadline_ms(&self) -> u64 {
        if let Some(until_ms) = self.lingers_until_ms {
            return until_ms;
        }
        match (self.is_sending(), self.input.is_empty()) {
            (true, _) => self.active_ms + HTTP_PATIENCE_MS,
            // A byte now and then does not extend the time for a request.
            (false, false) => self.began_ms + HTTP_PATIENCE_MS,
            (false, true) => self.active_ms + HTTP_IDLE_MS,
        }
    }

    /// Does what there is to do. Returns whether the connection stays open.
    pub fn serve(
        &mut self,
        now_ms: u64,
        answer: &mut dyn FnMut(&Request<'_>) -> Reply,
    ) -> io::Result<bool> {
        self.is_waiting = false;
        if self.lingers_until_ms.is_some() {
            return self.pass_over();
        }
        let mut answered = 0;
        loop {
            if !self.send(now_ms)? {
                return Ok(true);
            }
            if self.is_last {
                self.stream.finish();
                self.input = Vec::new();
                self.lingers_until_ms = Some(now_ms + HTTP_LINGER_MS);
                return self.pass_over();
            }
            if answered == TURN_REQUESTS_MAX {
                self.is_waiting = true;
                return Ok(true);
            }
            if self.answer_first(now_ms, answer) {
                answered += 1;
                continue;
            }
            match self.receive(now_ms)? {
                Received::Some => {}
                Received::Nothing => return Ok(true),
                Received::End => return Ok(false),
            }
        }
    }

    /// Answers the first request of what has been received. Returns whether there was one.
    fn answer_first(&mut self, now_ms: u64, answer: &mut dyn FnMut(&Request<'_>) -> Reply) -> bool {
        if self.input.is_empty() {
            return false;
        }
        match parse(&self.input) {
            Parsed::Incomplete => return false,
            Parsed::Request(request, used) => {
                answer(&request).write(Some(&request), &mut self.output);
                self.is_last = !request.keeps_alive;
                self.input.drain(..used);
                self.began_ms = now_ms;
            }
            Parsed::Refused(status) => {
                Reply::refusal(status).write(None, &mut self.output);
                self.is_last = true;
            }
        }
        true
    }

    fn receive(&mut self, now_ms: u64) -> io::Result<Received> {
        let mut bytes = [0; 2048];
        // A request that does not end within the limit has been refused.
        let room = bytes.len().min(HTTP_REQUEST_BYTES_MAX - self.input.len());
        match self.stream.read(&mut bytes[..room]) {
            Ok(0) => Ok(Received::End),
            Ok(count) => {
                if self.input.is_empty() {
                    self.began_ms = now_ms;
                }
                self.active_ms = now_ms;
                self.input.extend_from_slice(&bytes[..count]);
                Ok(Received::Some)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(Received::Nothing),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(Received::Some),
            Err(error) => Err(error),
        }
    }

    /// Passes over what comes after the last request. Returns whether the connection stays open:
    /// the client has yet to end its direction.
    fn pass_over(&mut self) -> io::Result<bool> {
        let mut bytes = [0; 2048];
        for _ in 0..TURN_PASSED_OVER_MAX {
            match self.stream.read(&mut bytes) {
                Ok(0) => return Ok(false),
                Ok(_) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(true),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.is_waiting = true;
        Ok(true)
    }

    /// Sends what the stream takes. Returns whether that was everything.
    fn send(&mut self, now_ms: u64) -> io::Result<bool> {
        while self.is_sending() {
            match self.stream.write(&self.output[self.sent..]) {
                Ok(count) => {
                    self.sent += count;
                    self.active_ms = now_ms;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        // Between requests a connection holds no memory.
        self.output = Vec::new();
        self.sent = 0;
        if self.input.is_empty() {
            self.input = Vec::new();
        }
        Ok(true)
    }
}

enum Received {
    Some,
    Nothing,
    End,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Status;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};
    use std::collections::VecDeque;

    /// A stream that hands out pieces, and takes a few bytes at a time.
    #[derive(Default)]
    struct Pieces {
        incoming: VecDeque<Vec<u8>>,
        is_closed: bool,
        taken: Vec<u8>,
        takes: usize,
        has_finished: bool,
    }

    impl Read for Pieces {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            match self.incoming.pop_front() {
                Some(mut piece) => {
                    let count = piece.len().min(into.len());
                    into[..count].copy_from_slice(&piece[..count]);
                    let rest = piece.split_off(count);
                    if !rest.is_empty() {
                        self.incoming.push_front(rest);
                    }
                    Ok(count)
                }
                None if self.is_closed => Ok(0),
                None => Err(ErrorKind::WouldBlock.into()),
            }
        }
    }

    impl Write for Pieces {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let count = bytes.len().min(self.takes);
            if self.takes < usize::MAX {
                self.takes -= count;
            }
            if count == 0 {
                return Err(ErrorKind::WouldBlock.into());
            }
            self.taken.extend_from_slice(&bytes[..count]);
            Ok(count)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Finish for Pieces {
        fn finish(&mut self) {
            assert!(!std::mem::replace(&mut self.has_finished, true));
        }
    }

    fn page(request: &Request<'_>) -> Reply {
        Reply::text(Status::Ok, format!("page {}", request.path))
    }

    fn pages(taken: &[u8]) -> Vec<String> {
        let text = String::from_utf8_lossy(taken);
        let lines = text.lines().filter(|line| line.starts_with("page "));
        lines.map(str::to_owned).collect()
    }

    #[test]
    fn requests_come_in_pieces_and_replies_leave_in_pieces() {
        let mut connection = Connection::new(Pieces::default(), 0);
        let text = b"GET /a HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\nConnection: close\r\n\r\n";
        for byte in text {
            connection.stream.incoming.push_back(vec![*byte]);
        }
        connection.stream.is_closed = true;
        let mut turns = 0;
        loop {
            connection.stream.takes = 7;
            turns += 1;
            if !connection.serve(0, &mut page).unwrap() {
                break;
            }
        }
        assert_eq!(pages(&connection.stream.taken), ["page /a", "page /b"]);
        assert!(turns > 20, "each turn sends at most 7 bytes");
        assert!(connection.input.is_empty() && connection.output.is_empty());
    }

    /// A client of HTTP/1.0 reads until the connection is closed, unless a header of the reply says
    /// that it stays open.
    #[test]
    fn a_connection_that_an_old_client_asked_to_keep_is_kept_and_said_to_be() {
        let mut connection = Connection::new(Pieces::default(), 0);
        for (lines, said, is_kept) in [
            ("HTTP/1.1\r\n", None, true),
            (
                "HTTP/1.0\r\nConnection: keep-alive\r\n",
                Some("keep-alive"),
                true,
            ),
            ("HTTP/1.0\r\n", Some("close"), false),
        ] {
            connection.stream.takes = usize::MAX;
            let request = format!("GET /a {lines}\r\n").into_bytes();
            connection.stream.incoming.push_back(request);
            assert!(connection.serve(0, &mut page).unwrap());
            let taken = std::mem::take(&mut connection.stream.taken);
            let text = String::from_utf8(taken).unwrap();
            let mut headers = text.lines().filter_map(|line| line.split_once(": "));
            let found = headers.find(|(name, _)| *name == "Connection");
            assert_eq!(found.map(|(_, value)| value), said, "{lines}");
            assert_eq!(!connection.stream.has_finished, is_kept, "{lines}");
        }
    }

    #[test]
    fn a_request_that_trickles_in_has_a_deadline_and_an_idle_connection_another() {
        let mut connection = Connection::new(Pieces::default(), 1_000);
        assert_eq!(connection.deadline_ms(), 1_000 + HTTP_IDLE_MS);
        for second in 2..5 {
            connection.stream.incoming.push_back(vec![b'G']);
            assert!(connection.serve(second * 1_000, &mut page).unwrap());
        }
        assert_eq!(connection.deadline_ms(), 2_000 + HTTP_PATIENCE_MS);
    }

    #[test]
    fn what_never_ends_is_refused_within_the_limit() {
        let mut connection = Connection::new(Pieces::default(), 0);
        let begin = b"GET / HTTP/1.1\r\nA: ".to_vec();
        connection.stream.incoming.push_back(begin);
        for _ in 0..100 {
            connection.stream.incoming.push_back(vec![b'x'; 1000]);
        }
        connection.stream.takes = usize::MAX;
        let mut turns = 0;
        while !connection.stream.incoming.is_empty() {
            turns += 1;
            assert!(connection.serve(turns, &mut page).unwrap());
        }
        assert!(turns > 1, "others have their turns");
        assert!(connection.stream.has_finished && !connection.is_sending());
        let text = String::from_utf8_lossy(&connection.stream.taken);
        assert!(text.starts_with("HTTP/1.1 431 "), "{text}");
        // What still comes is passed over for a while, and is no reason to wait for longer.
        connection.stream.incoming.push_back(vec![b'x'; 1000]);
        assert!(connection.serve(turns + 1, &mut page).unwrap());
        assert_eq!(connection.deadline_ms(), 1 + HTTP_LINGER_MS);
        connection.stream.is_closed = true;
        assert!(!connection.serve(turns + 2, &mut page).unwrap());
    }

    #[test]
    fn a_client_that_sends_request_after_request_lets_others_go_first() {
        let mut connection = Connection::new(Pieces::default(), 0);
        let many = b"GET /a HTTP/1.1\r\n\r\n".repeat(TURN_REQUESTS_MAX + 1);
        connection.stream.incoming.push_back(many);
        for (answered, is_waiting) in [(TURN_REQUESTS_MAX, true), (TURN_REQUESTS_MAX + 1, false)] {
            connection.stream.takes = usize::MAX;
            assert!(connection.serve(0, &mut page).unwrap());
            assert_eq!(pages(&connection.stream.taken).len(), answered);
            assert_eq!(connection.is_waiting(), is_waiting);
        }
    }

    #[test]
    fn whatever_comes_gets_replies_or_the_end() {
        let mut random = SmallRng::seed_from_u64(glimmer_seeds::seed());
        let words: [&[u8]; 12] = [
            b"GET ",
            b"HEAD ",
            b"/metrics",
            b"/?a=1&",
            b" HTTP/1.1",
            b" HTTP/1.0",
            b"\r\n",
            b"\n\n",
            b"Host: ",
            b"Connection: close",
            b"Content-Length: 9",
            b"\0\xff",
        ];
        for _ in 0..2_000 {
            let mut connection = Connection::new(Pieces::default(), 0);
            connection.stream.is_closed = true;
            for _ in 0..random.random_range(1..20) {
                let word = words[random.random_range(0..words.len())];
                connection.stream.incoming.push_back(word.to_vec());
            }
            let mut turns = 0;
            loop {
                connection.stream.takes = random.random_range(1..500);
                turns += 1;
                assert!(turns < 10_000, "it comes to an end");
                if !connection.serve(0, &mut page).unwrap() {
                    break;
                }
            }
            let text = String::from_utf8_lossy(&connection.stream.taken);
            assert!(text.is_empty() || text.starts_with("HTTP/1.1 "), "{text}");
        }
    }

    #[test]
    fn a_client_that_leaves_is_closed() {
        let mut connection = Connection::new(Pieces::default(), 0);
        connection.stream.is_closed = true;
        assert!(!connection.serve(0, &mut page).unwrap());
    }
}
