//! What follows `dpdk:` on the command line: what is ours, and EAL's arguments.

use std::net::IpAddr;

use crate::bypass::wire::is_one_host;

/// A port of DPDK's, and who it is on its link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The port's number.
    pub port: u16,
    /// Our addresses, each with the length of the prefix that is on the link.
    pub addresses: Vec<(IpAddr, u8)>,
    /// By whom other networks are reached, at most one of each family.
    pub gateways: Vec<IpAddr>,
    /// How many queues it gets at most; one for each worker, if that is not said.
    pub queues: Option<u16>,
    /// Bytes of the longest packet, if they are not those of the driver.
    pub mtu: Option<u16>,
    /// What EAL is given.
    pub eal: Vec<String>,
}

/// How it is written.
const FORM: &str = "dpdk:ip=ADDRESS/BITS EAL ARGUMENTS, such as \
                    'dpdk:ip=10.0.0.1/24,ip=fd00::1/64 -a 0000:01:00.0'; port=N, queues=N, \
                    mtu=BYTES and gateway=ADDRESS may follow ip=";
/// The least length that a port's longest packet may have: that of a reply's datagram of 1,400
/// bytes over IPv6. Longer replies are cut into such datagrams.
pub const MTU_MIN: u16 = 1400 + 8 + 40;
/// The longest one with room for a header of Ethernet in a frame's 16-bit length, and for more.
const MTU_MAX: u16 = 16_000;

impl std::str::FromStr for Setting {
    type Err = String;

    fn from_str(text: &str) -> Result<Setting, String> {
        let mut setting = Setting {
            port: 0,
            addresses: Vec::new(),
            gateways: Vec::new(),
            queues: None,
            mtu: None,
            eal: Vec::new(),
        };
        let mut words = text.split_whitespace().peekable();
        while let Some(own) = words.next_if(|word| !word.starts_with('-')) {
            for part in own.split(',').filter(|part| !part.is_empty()) {
                setting.take(part)?;
            }
        }
        setting.eal = words.map(str::to_owned).collect();
        if setting.addresses.is_empty() {
            return Err(FORM.into());
        }
        Ok(setting)
    }
}

impl Setting {
    /// Takes one of our own parts.
    fn take(&mut self, part: &str) -> Result<(), String> {
        let (name, value) = part.split_once('=').ok_or(FORM)?;
        let wrong = |what: &str| format!("{part:?}: {what}");
        match name {
            "ip" => {
                let address = prefixed(value).ok_or_else(|| {
                    wrong("an address of one host and the bits of its network, such as 10.0.0.1/24")
                })?;
                self.addresses.push(address);
            }
            "gateway" => {
                let gateway = value.parse().ok().filter(is_one_host);
                let gateway = gateway.ok_or_else(|| wrong("an address of one host"))?;
                if self
                    .gateways
                    .iter()
                    .any(|other| other.is_ipv4() == gateway.is_ipv4())
                {
                    return Err(wrong("there is another one of its family"));
                }
                self.gateways.push(gateway);
            }
            "port" => {
                let number = value.parse();
                self.port = number.map_err(|_| wrong("the number of a port, from 0 on"))?;
            }
            "queues" => {
                let queues = value.parse().ok().filter(|&queues| queues > 0);
                self.queues = Some(queues.ok_or_else(|| wrong("a number from 1 on"))?);
            }
            "mtu" => {
                let bytes = value
                    .parse()
                    .ok()
                    .filter(|it| (MTU_MIN..=MTU_MAX).contains(it));
                let from_to = format!("from {MTU_MIN} to {MTU_MAX} bytes");
                self.mtu = Some(bytes.ok_or_else(|| wrong(&from_to))?);
            }
            _ => return Err(FORM.into()),
        }
        Ok(())
    }
}

/// An address with the length of its network's prefix.
fn prefixed(text: &str) -> Option<(IpAddr, u8)> {
    let (ip, bits) = text.split_once('/')?;
    let (ip, bits): (IpAddr, u8) = (ip.parse().ok()?, bits.parse().ok()?);
    let most = if ip.is_ipv4() { 32 } else { 128 };
    (is_one_host(&ip) && bits <= most).then_some((ip, bits))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_parts_come_before_those_of_eal() {
        let text =
            "ip=10.0.0.1/24,ip=fd00::1/64 port=2,mtu=9000,gateway=10.0.0.9 --no-huge -m 64 x";
        let setting: Setting = text.parse().unwrap();
        let addresses = ["10.0.0.1", "fd00::1"].map(|ip| ip.parse().unwrap());
        assert_eq!(setting.addresses, [(addresses[0], 24), (addresses[1], 64)]);
        assert_eq!((setting.port, setting.mtu), (2, Some(9000)));
        assert_eq!(setting.queues, None);
        assert_eq!(setting.gateways, ["10.0.0.9".parse::<IpAddr>().unwrap()]);
        assert_eq!(setting.eal, ["--no-huge", "-m", "64", "x"]);
        assert_eq!("ip=10.0.0.1/24".parse::<Setting>().unwrap().eal.len(), 0);
        assert!("ip=240.0.0.1/24".parse::<Setting>().is_ok());
    }

    #[test]
    fn what_is_wrong_is_said_in_one_line() {
        for (text, part) in [
            ("", "dpdk:ip=ADDRESS/BITS"),
            ("--no-huge", "dpdk:ip=ADDRESS/BITS"),
            ("eth0", "dpdk:ip=ADDRESS/BITS"),
            ("queues=2", "dpdk:ip=ADDRESS/BITS"),
            ("ip=10.0.0.1/24,queues=0", "from 1 on"),
            ("ip=10.0.0.1", "10.0.0.1/24"),
            ("ip=10.0.0.1/33", "10.0.0.1/24"),
            ("ip=fd00::1/129", "10.0.0.1/24"),
            ("ip=224.0.0.1/24", "one host"),
            ("ip=0.0.0.0/0", "one host"),
            ("ip=255.255.255.255/0", "one host"),
            ("ip=::1/128", "one host"),
            ("ip=10.0.0.1/24,port=x", "number of a port"),
            ("ip=10.0.0.1/24,mtu=1447", "from 1448"),
            ("ip=10.0.0.1/24,gateway=ff02::1", "one host"),
            (
                "ip=10.0.0.1/24,gateway=10.0.0.2,gateway=10.0.0.3",
                "another one",
            ),
        ] {
            let error = text.parse::<Setting>().unwrap_err();
            assert!(
                error.contains(part) && !error.contains('\n'),
                "{text}: {error}"
            );
        }
    }
}
