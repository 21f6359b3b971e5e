//! From what a user says to a host that runs.

use crate::device;
use crate::error::SetupError;
use crate::host::Host;
use crate::tun::Tun;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use whyloss_transport::scheme::{Catalogue, Selection};
use whyloss_transport::stack::{Listener, Settings};
use whyloss_transport::tcp::{Config, PROFILES};

/// Handshakes that a listener lets be under way at a time.
const BACKLOG: usize = 128;

/// Everything that a user can choose about a host on a TUN device.
#[derive(Clone, Debug)]
pub struct Setup {
    /// TUN device; created, given addresses and brought up if it does not exist.
    pub tun: String,
    /// Addresses of the host.
    pub addresses: Vec<IpAddr>,
    /// Address of the kernel on a device that is created, for each family at most one; by default the other host of the /30 (or /126)
    /// of the host's first address.
    pub kernel: Vec<IpAddr>,
    /// The largest packet that the link takes, in octets.
    pub mtu: u16,
    /// Profile of all connections.
    pub profile: String,
    /// Algorithms of all connections.
    pub selection: Selection,
    /// What their names mean.
    pub catalogue: Catalogue,
    /// Whether ECN is negotiated.
    pub ecn: bool,
    /// The program tells of its link ([`Stack::tell_link`](whyloss_transport::stack::Stack::tell_link)). Some receiver agents depend on it.
    pub link_hints: bool,
}

impl Default for Setup {
    /// A host at 198.18.1.2, an address of the range for tests of networks (RFC 2544), with profile `modern`.
    fn default() -> Self {
        Self {
            tun: "whyloss0".to_owned(),
            addresses: vec![Ipv4Addr::new(198, 18, 1, 2).into()],
            kernel: Vec::new(),
            mtu: 1500,
            profile: "modern".to_owned(),
            selection: Selection::default(),
            catalogue: Catalogue::default(),
            ecn: false,
            link_hints: false,
        }
    }
}

impl Setup {
    /// The configuration of connections, once everything that was chosen is known to exist.
    pub fn config(&self) -> Result<Config, SetupError> {
        let mut config = Config::profile(&self.profile).ok_or_else(|| {
            let allowed = PROFILES.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            SetupError::Choice(format!("there is no profile `{}`; there are {allowed}", self.profile))
        })?;
        config.ecn |= self.ecn;
        config.mtu_probing = true;
        let parts = self.selection.build_from(&self.catalogue, &mut config.clone())?;
        if parts.receiver.wants_link() && !self.link_hints {
            let names = self.selection.names().collect::<Vec<_>>().join("`, `");
            return Err(SetupError::Choice(format!(
                "`{names}` wants to be told when the link goes down, and nobody tells a host on a TUN device; a program that knows can (Setup::link_hints)"
            )));
        }
        Ok(config)
    }

    /// How connections to a listener shall be.
    pub fn listener(&self) -> Result<Listener, SetupError> {
        Ok(Listener { config: self.config()?, selection: self.selection.clone(), backlog: BACKLOG })
    }

    /// Takes the device, or makes it, and gives the host behind it.
    pub fn open(&self) -> Result<Host, SetupError> {
        self.open_with(Tun::open)
    }

    /// As [`Setup::open`], for a host that sends more than it receives ([`Tun::open_offloading`]).
    pub fn open_to_send(&self) -> Result<Host, SetupError> {
        let mut host = self.open_with(Tun::open_offloading)?;
        host.copy_received();
        Ok(host)
    }

    fn open_with(&self, take: fn(&str) -> io::Result<Tun>) -> Result<Host, SetupError> {
        self.config()?;
        self.check_addresses()?;
        let mut key = [0; 16];
        getrandom::fill(&mut key).map_err(|error| SetupError::Unavailable(format!("no random numbers: {error}")))?;
        let before = device::state(&self.tun)?;
        let tun = take(&self.tun).map_err(|error| self.explain(error))?;
        match before {
            None => device::configure(&self.tun, self.mtu, &self.addresses, &self.kernel_addresses())?,
            Some(state) if !state.up => {
                let name = &self.tun;
                return Err(SetupError::Unavailable(format!(
                    "device `{name}` is down; bring it up with `ip link set dev {name} up`"
                )));
            }
            Some(_) => {}
        }
        let settings = Settings { addresses: self.addresses.clone(), mtu: self.mtu, key };
        Ok(Host::with_catalogue(tun, settings, self.catalogue.clone()))
    }

    fn check_addresses(&self) -> Result<(), SetupError> {
        if self.addresses.is_empty() {
            return Err(SetupError::Choice("the host needs an address".to_owned()));
        }
        if self.mtu < 1280 {
            return Err(SetupError::Choice(format!("an MTU of {} octets; at least 1280 are needed", self.mtu)));
        }
        match self.kernel.iter().find(|address| self.addresses.contains(address)) {
            Some(both) => Err(SetupError::Choice(format!("{both} cannot be the host's and the kernel's address at once"))),
            None => Ok(()),
        }
    }

    /// The kernel's address for each family that the host has.
    fn kernel_addresses(&self) -> Vec<IpAddr> {
        let of_family = |v4: bool| {
            let given = self.kernel.iter().copied().find(|address| address.is_ipv4() == v4);
            let first = self.addresses.iter().copied().find(|address| address.is_ipv4() == v4);
            first.map(|own| given.unwrap_or_else(|| neighbour(own)))
        };
        [true, false].into_iter().filter_map(of_family).collect()
    }

    /// A refusal of the device in terms of what the user can do about it.
    fn explain(&self, error: io::Error) -> SetupError {
        let name = &self.tun;
        let text = match (error.kind(), error.raw_os_error()) {
            (io::ErrorKind::InvalidInput, None) => return SetupError::Choice(error.to_string()),
            (io::ErrorKind::PermissionDenied, _) => format!(
                "attaching to TUN device `{name}` needs root (CAP_NET_ADMIN), or a device that root has made for you: \
                 `ip tuntap add {name} mode tun user $USER`"
            ),
            (io::ErrorKind::NotFound, _) => "this system has no /dev/net/tun (no TUN devices)".to_owned(),
            (io::ErrorKind::ResourceBusy, _) => format!("another program has taken TUN device `{name}`"),
            (_, Some(nix::libc::EINVAL)) => format!("`{name}` is not a TUN device of one queue"),
            _ => return SetupError::Io(error),
        };
        SetupError::Unavailable(text)
    }
}

/// The other host address of the /30 or /126 around `address`.
fn neighbour(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(v4) => Ipv4Addr::from(u32::from(v4) ^ 3).into(),
        IpAddr::V6(v6) => Ipv6Addr::from(u128::from(v6) ^ 3).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_gets_the_neighbouring_address_unless_one_is_given() {
        let mut setup = Setup { addresses: vec!["fd00::2".parse().unwrap(), [198, 18, 0, 1].into()], ..Setup::default() };
        assert_eq!(setup.kernel_addresses(), [IpAddr::from([198, 18, 0, 2]), "fd00::1".parse().unwrap()]);
        setup.kernel = vec![[10, 0, 0, 1].into()];
        assert_eq!(setup.kernel_addresses()[0], IpAddr::from([10, 0, 0, 1]));
    }

    #[test]
    fn wrong_choices_are_told_before_the_device_is_touched() {
        let said = |setup: Setup| setup.open().map(|_| ()).unwrap_err().to_string();
        assert_eq!(
            said(Setup { profile: "morden".to_owned(), ..Setup::default() }),
            "there is no profile `morden`; there are modern, linux, ns2, ns2-2001, freebsd45, qualnet"
        );
        assert!(said(Setup { selection: Selection::scheme("cubicc"), ..Setup::default() }).contains("did you mean `cubic`"));
        let freeze = Setup { selection: Selection::scheme("freeze-tcp"), ..Setup::default() };
        assert!(said(freeze.clone()).contains("`freeze-tcp` wants to be told when the link goes down"));
        assert!(Setup { link_hints: true, ..freeze }.config().is_ok());
        assert!(said(Setup { mtu: 500, ..Setup::default() }).contains("1280"));
        assert!(said(Setup { tun: "a name too long for a device".to_owned(), ..Setup::default() }).contains("1 to 15"));
        assert!(said(Setup { addresses: vec![], ..Setup::default() }).contains("needs an address"));
    }
}
