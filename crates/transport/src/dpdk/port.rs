//! A port of DPDK's that the server has taken: who we are there, and whose datagrams are whose.
#![allow(
    unsafe_code,
    reason = "frames that are lent or wait are known by numbers"
)]

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::{Arc, Weak};
use std::time::Instant;

use glimmer_base::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering::Relaxed};

use super::control::{self, Asked};
use super::eal;
use super::mailbox::{Mailbox, Parked};
use super::neighbours::Neighbours;
use super::nic::{self, Held, Nic, Outgoing};
use super::setting::{MTU_MIN, Setting};
use crate::bypass::figures::Counts;
use crate::bypass::wire::{self, Ends, Reason, Rules, is_within};
use crate::packet::{Bypass, RxBatch};
use crate::sys::frames::{Frame, Lender};

/// The first of the ports that are given to who asks for any (RFC 6335, §6).
const ANY_PORT: u16 = 0xC000;
/// How many these are; the last one of all is never given.
const ANY_PORTS: u32 = (u16::MAX - ANY_PORT) as u32;

/// The driver of ports over memory that two processes share.
const SHARED_MEMORY: &str = "net_memif";

/// The ports that this process has taken.
static PORTS: Mutex<Vec<Weak<Port>>> = Mutex::new(Vec::new());

/// A port.
#[derive(Debug)]
pub struct Port {
    pub nic: Nic,
    setting: Setting,
    /// Who we are. Devices have ports of UDP and addresses of their own.
    pub rules: Rules,
    pub counts: Counts,
    pub asked: AskedCounts,
    neighbours: Mutex<Neighbours>,
    owners: Mutex<Owners>,
    reported: Reported,
    /// The driver took no rule for a port of UDP.
    is_unruled: AtomicBool,
    /// Ports that were given to who asked for any. One is not given again soon, so that late
    /// datagrams reach nobody else.
    given: AtomicU32,
    /// Of the next packet that may be fragmented. All devices send from the same addresses.
    pub identification: AtomicU32,
}

/// The devices of each address and port: one, or one of each worker.
type Owners = HashMap<(IpAddr, u16), Vec<Arc<Mailbox>>>;

/// What is counted beside datagrams.
#[derive(Debug, Default)]
pub struct AskedCounts {
    answered: [AtomicU64; Asked::ALL.len()],
    /// Datagrams that were lost because nobody knew the way to their receiver.
    pub unresolved: AtomicU64,
    /// Frames that were lost because a queue, or the frames waiting for a device, were full.
    pub full: AtomicU64,
}

/// How many frames dropped by the driver some device has reported. Nothing else depends on it.
#[derive(Debug, Default)]
struct Reported(AtomicU64);

impl Reported {
    /// How many of those that were dropped are still to be reported, by the caller. Callers may
    /// have asked the driver at different times.
    fn rest_of(&self, dropped: u64) -> u64 {
        dropped.saturating_sub(self.0.fetch_max(dropped, Relaxed))
    }
}

impl Port {
    /// The port that a setting names. It is taken, unless it is taken already with the same
    /// setting; `workers` says how many queues it gets at most.
    ///
    /// # Errors
    ///
    /// One line that says what to do.
    pub fn open(setting: &Setting, workers: usize) -> Result<Arc<Port>, String> {
        let mut ports = PORTS.lock();
        ports.retain(|port| port.strong_count() > 0);
        let taken = ports.iter().filter_map(Weak::upgrade);
        if let Some(port) = taken.into_iter().find(|it| it.setting.port == setting.port) {
            return match port.setting == *setting {
                true => Ok(port),
                false => Err(format!(
                    "this process uses port {} with another setting: give port=N for another port",
                    setting.port
                )),
            };
        }
        let complaint = eal::begin(&setting.eal)?;
        let port = Arc::new(Port::new(setting, workers, complaint)?);
        ports.push(Arc::downgrade(&port));
        drop(ports);
        eal::enter();
        port.announce(0);
        Ok(port)
    }

    fn new(setting: &Setting, workers: usize, complaint: Option<String>) -> Result<Port, String> {
        let number = setting.port;
        if !nic::exists(number) {
            let why = complaint.map_or(String::new(), |complaint| format!(" ({complaint})"));
            return Err(format!(
                "DPDK has no port {number}{why}: bind a NIC with `dpdk-devbind.py -b vfio-pci \
                 ADDRESS`, which no other program may use, and allow it with -a ADDRESS, or give a \
                 --vdev"
            ));
        }
        let refused = |error: io::Error| {
            format!("port {number} does not start: {error}; the log says more with --log-level=8")
        };
        let said = nic::describe(number).map_err(refused)?;
        if let Some(mtu) = setting.mtu
            && mtu > said.mtu_max
        {
            let most = said.mtu_max;
            return Err(format!(
                "mtu={mtu}: the driver of port {number} takes at most {most}"
            ));
        }
        let longest = setting.mtu.unwrap_or(said.mtu_unasked());
        if longest < MTU_MIN {
            return Err(format!(
                "the driver of port {number} has packets of at most {longest} bytes, and replies \
                 need {MTU_MIN}: give mtu={MTU_MIN} if it can have longer ones"
            ));
        }
        // The other end of shared memory may have fewer queues, and its driver tells nobody: it
        // would use the memory of the first queue for the others, too.
        let asked = match said.driver() {
            SHARED_MEMORY => setting.queues.unwrap_or(1).into(),
            _ => setting.queues.map_or(workers, usize::from),
        };
        let most = workers.min(said.queues_max.into());
        let queues = asked.min(most).max(1) as u16;
        let nic = Nic::open(number, queues, workers, setting.mtu).map_err(refused)?;
        let own: Vec<IpAddr> = setting.addresses.iter().map(|(ip, _)| *ip).collect();
        nic.join(&control::groups(&own));
        Ok(Port {
            rules: Rules {
                mac: nic.said.mac,
                interface: 0,
                addresses: own.clone(),
                own,
                port: 0,
                all_hosts: wire::all_hosts(&setting.addresses),
                links: setting.addresses.clone(),
                accepts_partial: false,
            },
            nic,
            setting: setting.clone(),
            counts: Counts::default(),
            asked: AskedCounts::default(),
            neighbours: Mutex::default(),
            owners: Mutex::default(),
            reported: Reported::default(),
            is_unruled: AtomicBool::new(false),
            given: AtomicU32::new(0),
            identification: AtomicU32::new(0),
        })
    }

    /// Tells neighbours that may have known another owner of our addresses.
    fn announce(&self, queue: usize) {
        for &ip in &self.rules.own {
            self.tell(queue, &control::announcement(ip, &self.rules));
        }
    }

    /// What a worker does for the port from time to time, by its queue. Returns how many frames the
    /// driver has dropped that no worker was told of yet.
    pub fn tend(&self, queue: usize) -> u64 {
        let lost = self.nic.lost();
        if self.nic.is_to_be_announced() {
            self.announce(queue);
        }
        self.reported.rest_of(lost.missed + lost.no_frame)
    }

    /// Gives an address and a port of UDP to devices: the address that is asked for if it is ours,
    /// and otherwise all of its family. Port 0 is replaced by one that is free. There may be no
    /// address of a family.
    ///
    /// # Errors
    ///
    /// The port is in use.
    pub fn register(
        self: &Arc<Port>,
        asked: SocketAddr,
        mailboxes: &[Arc<Mailbox>],
    ) -> io::Result<Registration> {
        let is_named = self.rules.own.contains(&asked.ip());
        let is_meant = |ip: &&IpAddr| match is_named {
            true => **ip == asked.ip(),
            false => ip.is_ipv4() == asked.is_ipv4(),
        };
        let mut owners = self.owners.lock();
        let meant: Vec<IpAddr> = self.rules.own.iter().filter(is_meant).copied().collect();
        let is_free = |port| meant.iter().all(|&ip| !owners.contains_key(&(ip, port)));
        let in_use = || io::Error::from_raw_os_error(libc::EADDRINUSE);
        let port = match asked.port() {
            0 => {
                let any = || ANY_PORT + (self.given.fetch_add(1, Relaxed) % ANY_PORTS) as u16;
                let mut tries = (0..ANY_PORTS).map(|_| any());
                tries.find(|&port| is_free(port)).ok_or_else(in_use)?
            }
            port => port,
        };
        // Several addresses of the kernel's, for TCP, may stand for the same ones here.
        let is_taken = |ip: &IpAddr| owners.contains_key(&(*ip, port));
        if is_named && meant.iter().any(is_taken) {
            return Err(in_use());
        }
        let addresses: Vec<IpAddr> = meant.into_iter().filter(|ip| !is_taken(ip)).collect();
        for &ip in &addresses {
            owners.insert((ip, port), mailboxes.to_vec());
        }
        let ip = match addresses.as_slice() {
            [one] => *one,
            _ => asked.ip(),
        };
        let mut registration = Registration {
            port: self.clone(),
            address: SocketAddr::new(ip, port),
            addresses,
            rules: Vec::new(),
        };
        drop(owners);
        registration.steer(mailboxes);
        Ok(registration)
    }

    /// Whose datagram arrived at a queue, if it is of no device that the caller is.
    pub fn owner(&self, ip: IpAddr, port: u16, queue: usize) -> Option<Arc<Mailbox>> {
        let owners = self.owners.lock();
        let all = owners.get(&(ip, port))?;
        let at_queue = all.iter().find(|it| it.home == queue);
        at_queue.or(all.first()).cloned()
    }

    /// Answers a frame that is no datagram, by the same queue. False: there is nothing to answer.
    pub fn attend<'p>(&'p self, frame: &[u8], queue: usize, out: &mut Outgoing<'p>) -> bool {
        let Some(duty) = control::duty(frame, &self.rules) else {
            return false;
        };
        if let Some((ip, mac)) = duty.says {
            self.neighbours.lock().learn(ip, mac);
        }
        if let Some((asked, answer)) = duty.answer {
            self.asked.answered[asked as usize].fetch_add(1, Relaxed);
            self.add(queue, &answer, out);
        }
        true
    }

    /// The ends of a datagram to a peer, from one of these addresses. If the neighbour by whom it
    /// is reached has to be asked for its hardware address, `question` is the frame for that.
    /// `is_doubted`: what is known of it may be wrong.
    pub fn resolve(
        &self,
        peer: SocketAddr,
        (ours, port): (&[IpAddr], u16),
        is_doubted: bool,
        question: &mut Option<Vec<u8>>,
    ) -> Option<Ends> {
        let is_near = |ip: &IpAddr| {
            let of = self.setting.addresses.iter().find(|(own, _)| own == ip);
            of.is_some_and(|network| is_within(&peer.ip(), network))
        };
        let (near, is_on_link) = match ours.iter().find(|ip| is_near(ip)) {
            Some(&ip) => (ip, true),
            None => (
                *ours.iter().find(|ip| ip.is_ipv4() == peer.is_ipv4())?,
                false,
            ),
        };
        let gateways = &self.setting.gateways;
        let next = match is_on_link {
            true => peer.ip(),
            false => *gateways.iter().find(|ip| ip.is_ipv4() == peer.is_ipv4())?,
        };
        let found = self
            .neighbours
            .lock()
            .find(next, Instant::now(), is_doubted);
        if found.is_to_be_asked {
            *question = Some(control::question(near, next, &self.rules));
        }
        Some(Ends {
            our_mac: self.rules.mac,
            their_mac: found.mac?,
            ours: SocketAddr::new(near, port),
            theirs: peer,
        })
    }

    /// Sends a frame of these bytes by a queue, if one is free.
    pub fn tell(&self, queue: usize, bytes: &[u8]) {
        let mut out = Outgoing::new();
        self.add(queue, bytes, &mut out);
        self.nic.send(queue, &mut out);
    }

    /// Adds a frame to those that are sent, if there is room for it.
    fn add<'p>(&'p self, queue: usize, bytes: &[u8], out: &mut Outgoing<'p>) {
        if out.is_full() {
            self.nic.send(queue, out);
        }
        out.extend(self.frame_of(bytes));
    }

    /// A frame with these bytes, if one is free.
    fn frame_of(&self, bytes: &[u8]) -> Option<Held<'_>> {
        let mut frame = self.nic.take()?;
        frame
            .bytes_mut()
            .get_mut(..bytes.len())?
            .copy_from_slice(bytes);
        frame.finish(bytes.len(), wire::Sums::Computed, false);
        Some(frame)
    }

    /// Lends the payload of a frame to a batch, whose lender is this port.
    pub fn lend(
        lender: &Arc<dyn Lender>,
        mut frame: Held<'_>,
        (ends, payload): (&Ends, Range<usize>),
        batch: &mut RxBatch,
    ) {
        let payload = &mut frame.bytes_mut()[payload];
        let (at, bytes) = (NonNull::from(&mut *payload).cast(), payload.len());
        let lent = Frame {
            at,
            id: frame.into_id(),
        };
        // SAFETY: the memory is initialised and stays mapped as long as the port, which the lender
        // is. The frame was ours alone, its slice above is not used any more, and it is given back
        // only when the lender takes it back.
        unsafe { batch.frames.lend(lender, lent, bytes) };
        batch.describe(batch.count() - 1, ends.theirs, bytes.max(1));
    }

    /// The frame that has waited.
    pub fn unparked(&self, parked: &Parked) -> Held<'_> {
        // SAFETY: `Mailbox` has made the number of a frame that had the whole payload, and gives
        // each out once. Mailboxes are of one port.
        unsafe { self.nic.of_id(parked.id, parked.payload.end) }
    }

    /// The frame that was lent, with its headers and the first `bytes` bytes of the payload.
    pub fn returned(&self, frame: Frame, header_bytes: usize, bytes: usize) -> Held<'_> {
        // SAFETY: the batch has given up a frame of this port that had at least as many bytes: a
        // batch only shortens what it was lent.
        unsafe { self.nic.of_id(frame.id, header_bytes + bytes) }
    }

    /// What it and its devices have counted.
    pub fn figures(&self) -> Bypass {
        let (counts, lost) = (&self.counts, self.nic.lost());
        let load = |all: &[AtomicU64]| all.iter().map(|it| it.load(Relaxed)).collect::<Vec<_>>();
        let driver = self.nic.said.driver();
        let reasons = Reason::ALL.iter().map(|reason| reason.name());
        let waiting: usize = {
            let owners = self.owners.lock();
            let all = owners.values().flatten();
            // A device may have several addresses.
            let each: HashMap<_, _> = all.map(|it| (Arc::as_ptr(it), it.count())).collect();
            each.into_values().sum()
        };
        let elsewhere = counts.elsewhere.load(Relaxed);
        let answered = Asked::ALL.iter().map(|asked| asked.name());
        let answered = answered.zip(load(&self.asked.answered)).collect();
        Bypass {
            interface: self.name(),
            mode: match self.nic.sums() {
                wire::Sums::Computed => driver.to_owned(),
                wire::Sums::LeftToHardware => format!("{driver}, checksums by the port"),
            },
            queues: self.nic.queues(),
            received: counts.received.load(Relaxed),
            sent: counts.sent.load(Relaxed),
            elsewhere,
            steering: (elsewhere > 0 && self.is_unruled.load(Relaxed)).then(|| {
                "the driver takes no rule for a port of UDP: clients reach the right queue only \
                 by chance"
                    .into()
            }),
            refused: reasons.zip(load(&counts.reasons)).collect(),
            answered,
            unresolved: Some(self.asked.unresolved.load(Relaxed)),
            dropped_full: lost.missed + self.asked.full.load(Relaxed),
            dropped_no_frame: lost.no_frame,
            rx_waiting: waiting as u64,
            frames_free: self.nic.frames_free(),
            bursts: load(&counts.bursts),
            ..Bypass::default()
        }
    }

    /// Its name for people.
    pub fn name(&self) -> String {
        format!("DPDK port {}", self.setting.port)
    }
}

impl Lender for Port {
    fn take_back(&self, frames: &[Frame]) {
        eal::enter();
        // SAFETY: the batch has given up frames of this port, which it was lent by their numbers.
        unsafe { self.nic.give_back(frames.iter().map(|frame| frame.id)) };
    }
}

/// What devices have of a port until the last of them goes.
#[derive(Debug)]
pub struct Registration {
    port: Arc<Port>,
    /// At which they are reached: their only address, or that which they were asked for.
    pub address: SocketAddr,
    /// Their addresses.
    pub addresses: Vec<IpAddr>,
    rules: Vec<nic::Rule>,
}

impl Registration {
    /// Has the NIC bring the datagrams of a device that is alone to its queue, if it can.
    fn steer(&mut self, mailboxes: &[Arc<Mailbox>]) {
        let [alone] = mailboxes else { return };
        if !alone.is_alone || self.port.nic.queues() == 1 {
            return;
        }
        for is_v6 in [false, true] {
            if self.addresses.iter().any(|ip| ip.is_ipv6() == is_v6) {
                let rule = self.port.nic.steer(is_v6, self.address.port(), alone.home);
                if rule.is_none() {
                    self.port.is_unruled.store(true, Relaxed);
                }
                self.rules.extend(rule);
            }
        }
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        let mut closed = Vec::new();
        {
            let mut owners = self.port.owners.lock();
            for &ip in &self.addresses {
                let gone = owners.remove(&(ip, self.address.port()));
                closed.extend(gone.into_iter().flatten());
            }
        }
        for parked in closed.iter().flat_map(|mailbox| mailbox.close()) {
            drop(self.port.unparked(&parked));
        }
        for rule in self.rules.drain(..) {
            self.port.nic.unsteer(rule);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_has_dropped_is_reported_once() {
        let reported = Reported::default();
        let told = [0, 5, 5, 9, 7, 9].map(|dropped| reported.rest_of(dropped));
        assert_eq!(told, [0, 5, 0, 4, 0, 0]);
    }
}
