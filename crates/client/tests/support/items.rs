//! A server of one core over any packet device: items in a map, one datagram to a request.
#![allow(dead_code, reason = "each test program uses its own part")]

#[path = "directory.rs"]
mod directory;

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use glimmer_client::{Change, Reply, Status};
use glimmer_proto::native::request::Action;
use glimmer_proto::native::{Record, RequestHeader};
use glimmer_transport::packet::{Message, PacketDevice, RxBatch};

/// A server on a thread of its own.
pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Server {
    /// Serves at this device, which has the port of its only core.
    pub fn start(mut device: Box<dyn PacketDevice>) -> Server {
        let address = device.address().unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let is_stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            let (mut items, mut batch) = (HashMap::new(), RxBatch::default());
            while !is_stopped.load(Ordering::Relaxed) {
                if device.receive(&mut batch) == 0 {
                    std::thread::yield_now();
                }
                for index in 0..batch.count() {
                    for datagram in batch.segments(index) {
                        let reply = answer(datagram, address.port(), &mut items);
                        device.send(&[Message::alone(batch.peer(index), &reply)]);
                    }
                }
            }
        });
        Server {
            address,
            stop,
            thread,
        }
    }

    /// Ends it, and closes its port.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap();
    }
}

fn answer(datagram: &[u8], port: u16, items: &mut HashMap<Vec<u8>, Vec<u8>>) -> Vec<u8> {
    let header = RequestHeader::read(datagram).unwrap();
    let (mut reply, is_complete) = directory::begin_reply(&header, port, 1);
    if is_complete {
        return reply;
    }
    let mut rest = &datagram[RequestHeader::BYTES..];
    for _ in 0..header.count {
        let (record, bytes) = Record::read(rest).unwrap();
        rest = &rest[bytes..];
        match record.action {
            Action::Get => match items.get(record.key) {
                Some(value) => Reply {
                    value,
                    ..Reply::bare(Status::Found)
                },
                None => Reply::bare(Status::NotFound),
            },
            Action::Mutate {
                change: Change::Store { value, .. },
                ..
            } => {
                items.insert(record.key.to_vec(), value.to_vec());
                Reply::bare(Status::Stored)
            }
            other => panic!("{other:?}"),
        }
        .write(&mut reply);
    }
    reply
}
