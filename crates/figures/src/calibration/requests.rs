//! What requests cost a server.

use glimmer_measure::stats::Spread;
use glimmer_queueing::{Service, packets};
use serde::{Deserialize, Serialize};

use super::{Transport, fit};

/// CPU time of requests of one kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Bytes of the value.
    pub bytes: u32,
    /// CPU time of the server per request, in nanoseconds, by repetition.
    pub nanoseconds: Vec<f64>,
}

impl Sample {
    /// The median time in nanoseconds.
    pub fn ns(&self) -> f64 {
        Spread::of(&self.nanoseconds).median
    }

    /// The number of packets and the time.
    pub fn place(&self) -> (f64, f64) {
        (f64::from(packets(self.bytes)), self.ns())
    }
}

/// CPU time of a small GET where several are in flight.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Together {
    /// Requests in flight.
    pub requests: u32,
    /// CPU time of the server per request, in nanoseconds, by repetition.
    pub nanoseconds: Vec<f64>,
}

/// The costs of requests over one transport.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Requests {
    /// How they come.
    #[serde(default)]
    pub transport: Transport,
    /// CPU time of the server per GET, by the size of the value.
    pub get: Vec<Sample>,
    /// The same of a PUT.
    pub put: Vec<Sample>,
    /// The same of a small GET, by the requests in flight. Empty: not measured.
    #[serde(default)]
    pub together: Vec<Together>,
    /// Median latency of a GET that is alone, by the size of the value. Empty: not measured.
    #[serde(default)]
    pub alone: Vec<Sample>,
}

/// The part of a latency for which no core of the server works on the request.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Path {
    /// The way there and back, and until a worker that sleeps is awake, in nanoseconds.
    pub fixed_ns: f64,
    /// What each packet of the reply takes besides, in nanoseconds: the client's work on it.
    pub packet_ns: f64,
}

impl Requests {
    /// Adds further repetitions of the same measurements.
    pub fn add(&mut self, other: Requests) {
        if self.get.is_empty() {
            *self = other;
            return;
        }
        let sized = (self.get.iter_mut().zip(other.get))
            .chain(self.put.iter_mut().zip(other.put))
            .chain(self.alone.iter_mut().zip(other.alone));
        sized.for_each(|(to, from)| to.nanoseconds.extend(from.nanoseconds));
        let together = self.together.iter_mut().zip(other.together);
        together.for_each(|(to, from)| to.nanoseconds.extend(from.nanoseconds));
    }

    /// What a look for requests costs, however many it finds: the part of a small GET's CPU time
    /// that becomes less as more of them are in flight. `None`: not measured.
    pub fn look_ns(&self) -> Option<f64> {
        let place = |together: &Together| {
            let ns = Spread::of(&together.nanoseconds).median;
            (1.0 / f64::from(together.requests), ns)
        };
        let (_, look_ns) = fit::line(self.together.iter().map(place));
        (!self.together.is_empty()).then(|| look_ns.max(0.0))
    }

    /// The costs of GETs and of PUTs, without the looks.
    pub fn services(&self) -> [Service; 2] {
        let looks_ns = self.look_ns().unwrap_or_default() / f64::from(self.transport.in_flight());
        [&self.get, &self.put].map(|samples| {
            let (fixed_ns, packet_ns) = fit::line(samples.iter().map(Sample::place));
            Service {
                execute_ns: (fixed_ns - looks_ns).max(0.0),
                packet_ns,
            }
        })
    }

    /// What GETs that are alone take beyond the server's work. Zero if it was not measured.
    pub fn path(&self) -> Path {
        if self.alone.is_empty() {
            return Path::default();
        }
        let [get, _] = self.services();
        let look_ns = self.look_ns().unwrap_or_default();
        let (fixed_ns, packet_ns) = fit::line(self.alone.iter().map(Sample::place));
        Path {
            fixed_ns: (fixed_ns - get.execute_ns - look_ns).max(0.0),
            packet_ns: (packet_ns - get.packet_ns).max(0.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_look_costs_is_told_from_what_a_request_costs() {
        // A look takes 3000 ns, a request 500 ns and 100 ns for each packet.
        let in_flight = Transport::Tcp.in_flight();
        let small_ns = |requests: u32| 600.0 + 3000.0 / f64::from(requests);
        let sized = [1, 10, 100].map(|packets| Sample {
            bytes: 1400 * packets,
            nanoseconds: vec![small_ns(in_flight) + 100.0 * f64::from(packets - 1)],
        });
        let together = [1, 4, 32].map(|requests| Together {
            requests,
            nanoseconds: vec![small_ns(requests)],
        });
        let requests = Requests {
            transport: Transport::Tcp,
            get: sized.to_vec(),
            put: sized.to_vec(),
            together: together.to_vec(),
            alone: [1, 10, 100]
                .map(|packets| Sample {
                    bytes: 1400 * packets,
                    nanoseconds: vec![9500.0 + 150.0 * f64::from(packets)],
                })
                .to_vec(),
        };
        assert!((requests.look_ns().unwrap() - 3000.0).abs() < 1e-6);
        for service in requests.services() {
            assert!((service.execute_ns - 500.0).abs() < 1e-6);
            assert!((service.packet_ns - 100.0).abs() < 1e-6);
        }
        let mut twice = requests.clone();
        twice.add(requests);
        assert_eq!(twice.together[2].nanoseconds.len(), 2);
        // Less the request and a look, and less the server's work on a packet.
        let path = twice.path();
        assert!((path.fixed_ns - 6000.0).abs() < 1e-6);
        assert!((path.packet_ns - 50.0).abs() < 1e-6);
    }
}
