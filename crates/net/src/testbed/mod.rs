//! A network of real hosts: a network namespace for each host and router of a plan, an emulated link for each of its links.
//!
//! Everything hangs on open descriptors and on one process: when the bed is dropped, or its process dies in whatever way, the kernel
//! takes namespaces, devices, routes and all processes that were started in it away.

mod keeper;
mod plan;

pub use plan::{Plan, PlanError};
pub use whyloss_sim::{WireLink, WireNode};

use crate::emulate::Emulator;
use crate::emulate::{Audit, EmulateError, Options};
use crate::namespace::{missing_capability, Namespace};
use crate::tun::Tun;
use keeper::Keeper;
use plan::Device;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, AsRawFd};
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// For so long after its devices have come up a kernel tells its neighbours, unasked, to which groups it belongs (measured: 30 ms with
/// the shortest interval that it can be given; RFC 3810, 6.1 wants it twice).
const CHATTER: Duration = Duration::from_millis(100);

/// Why there is no test bed.
#[derive(Debug, thiserror::Error)]
pub enum TestbedError {
    /// This machine, or this user, cannot have one.
    #[error("no test bed can be made here: {0}")]
    Unavailable(String),
    /// The plan is not one of a test bed.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A link cannot be emulated.
    #[error(transparent)]
    Emulate(#[from] EmulateError),
    /// The system refused something.
    #[error("{what}: {source}")]
    System {
        /// What was tried, in words.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

impl TestbedError {
    fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        let what = what.into();
        |source| Self::System { what, source }
    }
}

/// A running test bed; it disappears when dropped.
#[derive(Debug)]
pub struct Testbed {
    plan: Plan,
    // Dropped in this order: processes end before their links.
    keeper: Keeper,
    emulators: Vec<Emulator>,
    namespaces: Vec<Arc<Namespace>>,
}

impl Testbed {
    /// Builds what `plan` says. The directions of link `k` have the numbers `2 k` and `2 k + 1` in records.
    pub fn new(plan: Plan, options: &Options) -> Result<Self, TestbedError> {
        plan.check()?;
        if let Some(reason) = missing_capability() {
            return Err(TestbedError::Unavailable(reason));
        }
        let v6 = std::path::Path::new("/proc/sys/net/ipv6").exists();
        let mut namespaces = Vec::new();
        let mut ends: Vec<[Option<Tun>; 2]> = plan.links.iter().map(|_| [None, None]).collect();
        for (number, (node, commands)) in plan.nodes.iter().zip(plan.commands(v6)).enumerate() {
            let namespace = Namespace::new().map_err(TestbedError::system(format!("making the namespace of {}", node.name)))?;
            configure(&namespace, node.router, v6).map_err(TestbedError::system(format!("setting up {}", node.name)))?;
            for Device { name, link, side } in plan.devices(number) {
                let tun = namespace.run(|| Tun::open(&name));
                ends[link][side] = Some(tun.map_err(TestbedError::system(format!("making device {name} of {}", node.name)))?);
            }
            namespace.ip(&commands).map_err(TestbedError::system(format!("setting up {}", node.name)))?;
            namespaces.push(Arc::new(namespace));
        }
        let set_up = Instant::now();
        let names = plan.nodes.iter().map(|node| node.name.clone());
        let keeper = Keeper::start(names.zip(namespaces.iter().cloned()).collect(), plan.hosts_file())?;
        std::thread::sleep(CHATTER.saturating_sub(set_up.elapsed()));
        let mut emulators = Vec::new();
        for (number, (link, ends)) in plan.links.iter().zip(ends).enumerate() {
            let [Some(a), Some(b)] = ends else { unreachable!("both ends of every link are devices of some node") };
            discard(&a).and_then(|()| discard(&b)).map_err(TestbedError::system("reading a new device"))?;
            let options = Options { first_direction: options.first_direction + 2 * number as u16, ..options.clone() };
            emulators.push(Emulator::start_assisted([a, b], link.ways.clone(), link.agent.as_ref(), &options)?);
        }
        Ok(Self { plan, keeper, emulators, namespaces })
    }

    /// What it was built by.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The network namespace of a node.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn namespace(&self, node: usize) -> &Namespace {
        &self.namespaces[node]
    }

    /// A path that leads to the network namespace of a node as long as this process has the bed, for `nsenter --net=…`.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn namespace_path(&self, node: usize) -> PathBuf {
        format!("/proc/{}/fd/{}", std::process::id(), self.namespaces[node].as_fd().as_raw_fd()).into()
    }

    /// Runs `job` where processes of a node are started: in its network, with its `/etc/hosts`, with processes that end with the bed.
    /// One job runs at a time; it must not start threads.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn start_by<T: Send + 'static>(&self, node: usize, job: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
        assert!(node < self.plan.nodes.len(), "node {node} of {}", self.plan.nodes.len());
        self.keeper.run(node, job)
    }

    /// Starts a process in a node. It ends with the bed.
    ///
    /// # Panics
    /// If there is no node of that number.
    pub fn spawn(&self, node: usize, mut command: Command) -> io::Result<Child> {
        self.start_by(node, move || command.spawn())?
    }

    /// Puts guest number `guest` behind a node, a host that is not of the kernel: gives a device that leads to it, and its address.
    /// From then on the node forwards packets. A guest is there until its device is dropped.
    ///
    /// # Panics
    /// If there is no node of that number, or if `guest` is not in 1 to 254.
    pub fn add_guest(&self, node: usize, guest: u8) -> Result<(Tun, IpAddr), TestbedError> {
        assert!((1..=254).contains(&guest), "guest {guest}");
        let [a, b, c, _] = self.plan.guests(node).octets();
        let address = Ipv4Addr::new(a, b, c, guest);
        let (namespace, name) = (&self.namespaces[node], format!("guest{guest}"));
        let fail = || TestbedError::system(format!("making device {name} of {}", self.plan.nodes[node].name));
        let tun = namespace.run(|| Tun::open(&name)).map_err(fail())?;
        namespace.run(|| std::fs::write("/proc/sys/net/ipv4/ip_forward", "1")).map_err(fail())?;
        let commands = format!("link set dev {name} mtu {} multicast off up\nroute add {address}/32 dev {name}", self.plan.mtu);
        namespace.ip(&commands).map_err(fail())?;
        discard(&tun).map_err(fail())?;
        Ok((tun, address.into()))
    }

    /// What the links have done so far: two directions each.
    pub fn audit(&self) -> Vec<Audit> {
        self.emulators.iter().flat_map(Emulator::audit).collect()
    }

    /// The emulators, one for each link.
    pub fn emulators(&self) -> &[Emulator] {
        &self.emulators
    }

    /// Ends all processes and links, and says what the links did.
    pub fn stop(self) -> Result<Vec<Audit>, TestbedError> {
        let Self { keeper, emulators, namespaces, .. } = self;
        drop(keeper);
        let mut audits = Vec::new();
        for emulator in emulators {
            audits.extend(emulator.stop()?);
        }
        drop(namespaces);
        Ok(audits)
    }
}

/// Makes a new namespace a quiet host or a router: nobody speaks unasked, so that the packets on a link are those of the experiment.
fn configure(namespace: &Namespace, router: bool, v6: bool) -> io::Result<()> {
    let forward = if router { "1" } else { "0" };
    let mut settings = vec![
        ("ipv4/conf/all/rp_filter", "0"),
        ("ipv4/conf/default/rp_filter", "0"),
        ("ipv4/conf/all/send_redirects", "0"),
        ("ipv4/conf/default/send_redirects", "0"),
        ("ipv4/ip_forward", forward),
    ];
    if v6 {
        settings.extend([
            ("ipv6/conf/default/accept_ra", "0"),
            ("ipv6/conf/default/dad_transmits", "0"),
            ("ipv6/conf/default/addr_gen_mode", "1"),
            ("ipv6/conf/default/mldv2_unsolicited_report_interval", "1"),
            ("ipv6/conf/all/forwarding", forward),
        ]);
    }
    namespace.run(|| {
        settings.iter().try_for_each(|(key, value)| {
            let path = format!("/proc/sys/net/{key}");
            std::fs::write(&path, value)
                .map_err(|error| io::Error::new(error.kind(), format!("writing {value} to {path}: {error}")))
        })
    })
}

/// Throws away what the kernel sent while the device was set up.
fn discard(tun: &Tun) -> io::Result<()> {
    let mut buffer = [0; 2048];
    while tun.receive(&mut buffer)?.is_some() {}
    Ok(())
}
