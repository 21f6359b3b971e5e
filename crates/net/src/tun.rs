//! A TUN device: whole IP packets through a file descriptor.
//!
//! The device is opened without the packet-information header and without a virtio header, and no offload is requested. The kernel
//! then segments before the device and fills in real checksums, so every read gives one packet as it would cross a wire.

use bytes::BytesMut;
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

#[allow(unsafe_code)]
mod sys {
    use nix::libc;
    nix::ioctl_write_ptr_bad!(set_interface, nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()), libc::ifreq);
}

/// A TUN device, non-blocking.
#[derive(Debug)]
pub struct Tun {
    file: File,
}

impl Tun {
    /// Attaches to the TUN device `name` of the caller's network namespace, creating it if it does not exist. A device that this
    /// creates goes away with the `Tun`; one that was there before (`ip tuntap add mode tun NAME`) stays.
    ///
    /// The descriptor belongs to the device, not to the namespace: it works from any thread.
    pub fn open(name: &str) -> io::Result<Self> {
        // One octet of the name field is the terminating zero.
        if name.is_empty() || name.len() >= libc::IFNAMSIZ {
            let allowed = libc::IFNAMSIZ - 1;
            return Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                format!("a device name has 1 to {allowed} octets, `{name}` has {}", name.len()),
            ));
        }
        let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
        let mut ifr_name = [0; libc::IFNAMSIZ];
        for (slot, octet) in ifr_name.iter_mut().zip(name.bytes()) {
            *slot = octet as libc::c_char;
        }
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
        let request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
        // SAFETY: the descriptor is open and the request is a valid `ifreq` for the duration of the call.
        #[allow(unsafe_code)]
        unsafe {
            sys::set_interface(file.as_raw_fd(), &raw const request)?;
        }
        Ok(Self { file })
    }

    /// Reads one packet into `buffer` and gives its length; `None` if none is waiting. A longer packet is cut off.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match (&self.file).read(buffer) {
            Ok(length) => Ok(Some(length)),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one packet to the end of `buffer`, as far as its capacity goes, and gives its length; `None` if none is waiting.
    pub fn receive_to(&self, buffer: &mut BytesMut) -> io::Result<Option<usize>> {
        let spare = buffer.spare_capacity_mut();
        // SAFETY: the descriptor is open, and the kernel writes at most `spare.len()` octets to memory that is ours alone.
        #[allow(unsafe_code)]
        let read = unsafe { libc::read(self.file.as_raw_fd(), spare.as_mut_ptr().cast(), spare.len()) };
        let Ok(length) = usize::try_from(read) else {
            let error = io::Error::last_os_error();
            return match error.kind() {
                io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(None),
                _ => Err(error),
            };
        };
        // SAFETY: the kernel has just written these octets.
        #[allow(unsafe_code)]
        unsafe {
            buffer.set_len(buffer.len() + length);
        }
        Ok(Some(length))
    }

    /// Writes one packet; whether the kernel took it. It refuses what is no IP packet and what arrives while the device is down:
    /// to the sender that is a lost packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        taken((&self.file).write(packet))
    }
}

fn taken(written: io::Result<usize>) -> io::Result<bool> {
    match written {
        Ok(_) => Ok(true),
        Err(error) => match error.raw_os_error() {
            Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::EIO | libc::EINVAL | libc::ENOMEM) => Ok(false),
            _ => Err(error),
        },
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}
