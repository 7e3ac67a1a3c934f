//! The dummy server over UDP.

use std::sync::Arc;

use anyhow::Result;
use arrayvec::ArrayVec;
use glimmer_transport::packet::{Message, PACKET_BATCH_MAX, PacketDevice, PacketSender, RxBatch};
use glimmer_transport::udp::UdpDevice;
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
};

use super::{Answers, Life};

const FRAME_BYTES: usize = 8;
const TICK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 50_000_000,
};

/// The server's thread.
pub struct Datagrams {
    pub device: UdpDevice,
    pub answers: Answers,
    pub life: Arc<Life>,
}

impl Datagrams {
    /// Serves until the server is stopped.
    pub fn serve(&mut self) -> Result<()> {
        let mut received = RxBatch::default();
        let mut replies = Vec::new();
        while self.life.goes_on() {
            if self.device.receive(&mut received) == 0 {
                let mut ready = [PollFd::new(&self.device, PollFlags::IN)];
                match poll(&mut ready, Some(&TICK)) {
                    Ok(_) | Err(Errno::INTR) => continue,
                    Err(error) => return Err(error.into()),
                }
            }
            self.answer(&received, &mut replies);
            self.life.note_cpu();
        }
        Ok(())
    }

    /// Answers every request with its own frame. Anything else gets no reply.
    fn answer(&mut self, received: &RxBatch, replies: &mut Vec<u8>) {
        replies.clear();
        let mut ends = ArrayVec::<_, PACKET_BATCH_MAX>::new();
        for index in 0..received.count() {
            let frame = received.bytes(index).split_first_chunk::<FRAME_BYTES>();
            if let Some((&frame, request)) = frame
                && self.answers.request(request, replies).is_some()
            {
                ends.push((index, frame, replies.len()));
            }
        }
        let mut begin = 0;
        let outgoing = ends.iter().map(|&(index, header, end)| {
            let payload = &replies[begin..end];
            begin = end;
            Message::framed(received.peer(index), header, payload)
        });
        let outgoing: ArrayVec<_, PACKET_BATCH_MAX> = outgoing.collect();
        self.device.send(&outgoing);
    }
}
