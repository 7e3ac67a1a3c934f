//! When the kernel received what a TCP connection reads.

use std::{
    io::{IoSliceMut, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
    os::fd::{AsFd, AsRawFd},
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{Context, Result, ensure};
use nix::{
    errno::Errno,
    sys::{
        socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt},
        time::TimeSpec,
    },
};

/// After this time without a timestamp, the kernel is taken to have none.
const BEGINS_WITHIN: Duration = Duration::from_secs(10);

/// Space for the control message of a read.
pub struct Arrivals {
    control: Vec<u8>,
}

/// A read: its bytes, and when the kernel received the last segment that it took bytes from, in
/// nanoseconds of `CLOCK_REALTIME`; zero if the kernel did not say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Read {
    /// Bytes; zero at the end of the stream.
    pub bytes: usize,
    /// The time.
    pub arrived_ns: u64,
}

impl Arrivals {
    /// Has the kernel note when it receives segments (`SO_TIMESTAMPNS`), and waits until it does.
    pub fn of(socket: &impl AsFd) -> Result<Arrivals> {
        wait_until_noted()?;
        Arrivals::asked_of(socket)
    }

    fn asked_of(socket: &impl AsFd) -> Result<Arrivals> {
        setsockopt(socket, sockopt::ReceiveTimestampns, &true).context("SO_TIMESTAMPNS")?;
        Ok(Arrivals {
            control: nix::cmsg_space!(TimeSpec),
        })
    }

    /// Reads what has arrived.
    pub fn read(&mut self, socket: &impl AsFd, room: &mut [u8]) -> Result<Read, Errno> {
        let socket = socket.as_fd().as_raw_fd();
        let mut parts = [IoSliceMut::new(room)];
        let control = Some(&mut self.control[..]);
        let read = recvmsg::<()>(socket, &mut parts, control, MsgFlags::MSG_DONTWAIT)?;
        let time = read.cmsgs()?.find_map(|message| match message {
            ControlMessageOwned::ScmTimestampns(time) => Some(time),
            _ => None,
        });
        let ns = |time: TimeSpec| time.tv_sec() as u64 * 1_000_000_000 + time.tv_nsec() as u64;
        Ok(Read {
            bytes: read.bytes,
            arrived_ns: time.map_or(0, ns),
        })
    }
}

/// Returns when the kernel notes the arrival of segments.
///
/// It begins to do so after a socket has asked, at a time of its own, and ends when no socket asks
/// any longer. So the socket of the first call stays open.
fn wait_until_noted() -> Result<()> {
    static ASKING: Mutex<Option<TcpStream>> = Mutex::new(None);
    let mut asking = ASKING.lock().unwrap_or_else(PoisonError::into_inner);
    if asking.is_some() {
        return Ok(());
    }
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let ours = TcpStream::connect(listener.local_addr()?)?;
    let (mut theirs, _) = listener.accept()?;
    theirs.set_nodelay(true)?;
    let mut arrivals = Arrivals::asked_of(&ours)?;
    let begin = Instant::now();
    loop {
        theirs.write_all(b"?")?;
        match arrivals.read(&ours, &mut [0]) {
            Ok(read) if read.arrived_ns > 0 => break,
            Ok(_) | Err(Errno::EAGAIN | Errno::EINTR) => {}
            Err(error) => return Err(error).context("reading a timestamp"),
        }
        ensure!(
            begin.elapsed() < BEGINS_WITHIN,
            "the kernel does not say when it received segments of TCP"
        );
        thread::sleep(Duration::from_millis(1));
    }
    *asking = Some(ours);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::time::{ClockId, clock_gettime};

    fn now_ns() -> u64 {
        let time = clock_gettime(ClockId::Realtime);
        time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
    }

    /// The time is that of the arrival, however late the read is, and of the last segment, however
    /// many one read takes.
    #[test]
    fn a_read_says_when_its_last_segment_arrived() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut theirs, _) = listener.accept().unwrap();
        theirs.set_nodelay(true).unwrap();
        let mut arrivals = Arrivals::of(&ours).unwrap();
        let mut room = [0; 64];
        assert_eq!(arrivals.read(&ours, &mut room), Err(Errno::EAGAIN));
        theirs.write_all(b"first").unwrap();
        let between = now_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let before = now_ns();
        theirs.write_all(b"second").unwrap();
        let after = now_ns();
        std::thread::sleep(std::time::Duration::from_millis(20));
        let read = arrivals.read(&ours, &mut room).unwrap();
        assert_eq!(read.bytes, 11);
        assert!(
            between < before && before <= read.arrived_ns,
            "{read:?} {before}"
        );
        assert!(read.arrived_ns <= after, "{read:?} {after}");
        drop(theirs);
        assert_eq!(arrivals.read(&ours, &mut room).unwrap().bytes, 0);
    }
}
