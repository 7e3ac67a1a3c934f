//! Watchers: connections that are shown what happens and ask for nothing more.

use glimmer_proto::text::lines;
use glimmer_transport::Received;

use crate::stream::key::ConnectionKey;
use crate::stream::registry::Activity;
use crate::worker::Worker;

impl Worker {
    /// Makes a watcher of a connection that asked for it, or tells it that there are too many.
    pub fn begin_to_watch(&mut self, key: ConnectionKey, interests: u32) {
        let feed = self.shared.observers.add(self.me, interests);
        let connection = &mut self.connections[key];
        let line = match feed {
            Some(_) => lines::OK,
            None => lines::TOO_MANY_WATCHERS,
        };
        connection.tx.extend_from_slice(line.as_bytes());
        if let Some(feed) = feed {
            connection.feed = Some(feed);
            if let Some(entry) = connection.entry() {
                entry.note(Activity::Watch);
            }
            self.watchers.push(key);
        }
    }

    /// Sends what happened to the watchers of this worker that have taken what they were sent
    /// before.
    pub fn serve_watchers(&mut self) {
        if !self.shared.observers.take_pending(self.me) {
            return;
        }
        for index in 0..self.watchers.len() {
            let key = self.watchers[index];
            if self.connections.get(key).is_some_and(|it| it.tx.is_empty()) {
                self.feed_watcher(key);
            }
        }
        let connections = &self.connections;
        self.watchers.retain(|&key| connections.contains_key(key));
    }

    /// Sends what a watcher has yet to be sent; it has taken what it was sent before.
    pub fn feed_watcher(&mut self, key: ConnectionKey) {
        // As often as it takes all at once, it gets what has come meanwhile.
        for _ in 0..2 {
            let Some(connection) = self.connections.get_mut(key) else {
                return;
            };
            let Some(feed) = connection.feed.clone() else {
                return;
            };
            if !connection.tx.is_empty() {
                return;
            }
            if connection.tx.capacity() == 0 {
                connection.tx = self.pool.take();
            }
            feed.take(&mut connection.tx);
            if connection.tx.is_empty() {
                self.pool.give(std::mem::take(&mut connection.tx));
                return;
            }
            self.send_and_settle(key);
        }
    }

    /// Passes over what a watcher sends, and closes it when it is gone.
    pub fn hear_watcher(&mut self, key: ConnectionKey) {
        let mut scratch = self.pool.take();
        loop {
            scratch.clear();
            let Some(connection) = self.connections.get_mut(key) else {
                break;
            };
            match connection.receive_into(&mut scratch) {
                Received::Full(_) => {}
                Received::Drained(_) => break,
                Received::Ended => {
                    self.close(key);
                    break;
                }
            }
        }
        self.pool.give(scratch);
    }
}
