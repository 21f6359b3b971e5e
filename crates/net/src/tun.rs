//! A TUN device: whole IP packets through a file descriptor.
//!
//! No offload is asked of the device: the kernel segments before it and fills in real checksums, so every read gives one packet as it would cross
//! a wire. With [`Tun::open_offloading`] the other direction may be different: the kernel takes many segments in one piece.

use bytes::{Buf as _, BytesMut};
use nix::libc;
use std::fs::{File, OpenOptions};
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::OpenOptionsExt;

#[allow(unsafe_code)]
mod sys {
    use nix::libc;
    nix::ioctl_write_ptr_bad!(set_interface, nix::request_code_write!(b'T', 202, size_of::<libc::c_int>()), libc::ifreq);
    nix::ioctl_write_int_bad!(set_offload, nix::request_code_write!(b'T', 208, size_of::<libc::c_uint>()));
}

/// Octets of the `struct virtio_net_hdr` before each packet of a device that was opened with [`Tun::open_offloading`].
pub(crate) const VIRTIO_HEADER: usize = 10;

/// A TUN device, non-blocking.
#[derive(Debug)]
pub struct Tun {
    file: File,
    offloads: bool,
}

impl Tun {
    /// One whose packets are what is read from a file, and what is written to it.
    #[cfg(test)]
    pub(crate) fn of(file: File) -> Self {
        Self { file, offloads: false }
    }

    /// Attaches to the TUN device `name` of the caller's network namespace, creating it if it does not exist. A device that this
    /// creates goes away with the `Tun`; one that was there before (`ip tuntap add mode tun NAME`) stays.
    ///
    /// The descriptor belongs to the device, not to the namespace: it works from any thread.
    pub fn open(name: &str) -> io::Result<Self> {
        Self::attach(name, false)
    }

    /// As [`Tun::open`], for a device that takes segments in one piece ([`crate::train`]).
    pub fn open_offloading(name: &str) -> io::Result<Self> {
        Self::attach(name, true)
    }

    fn attach(name: &str, offloads: bool) -> io::Result<Self> {
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
        let header = if offloads { libc::IFF_VNET_HDR } else { 0 };
        let flags = (libc::IFF_TUN | libc::IFF_NO_PI | header) as libc::c_short;
        let request = libc::ifreq { ifr_name, ifr_ifru: libc::__c_anonymous_ifr_ifru { ifru_flags: flags } };
        // SAFETY: the descriptor is open and the request is a valid `ifreq` for the duration of the call.
        #[allow(unsafe_code)]
        unsafe {
            sys::set_interface(file.as_raw_fd(), &raw const request)?;
        }
        if offloads {
            // Whoever had the device before may have asked for segments in one piece.
            // SAFETY: the descriptor is open, and the call takes a number.
            #[allow(unsafe_code)]
            unsafe {
                sys::set_offload(file.as_raw_fd(), 0)?;
            }
        }
        Ok(Self { file, offloads })
    }

    /// Whether it takes what [`Tun::send_cut`] sends.
    pub fn offloads(&self) -> bool {
        self.offloads
    }

    /// Octets before each packet that a buffer needs room for.
    fn prefix(&self) -> usize {
        if self.offloads {
            VIRTIO_HEADER
        } else {
            0
        }
    }

    /// Reads one packet into `buffer` and gives its length; `None` if none is waiting. A longer packet is cut off.
    pub fn receive(&self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        let mut header = [0; VIRTIO_HEADER];
        let read = if self.offloads {
            (&self.file).read_vectored(&mut [IoSliceMut::new(&mut header), IoSliceMut::new(buffer)])
        } else {
            (&self.file).read(buffer)
        };
        match read {
            Ok(length) => Ok(Some(length.saturating_sub(self.prefix()))),
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads one packet into the empty `buffer`, as far as its capacity goes, and gives its length; `None` if none is waiting.
    pub fn receive_to(&self, buffer: &mut BytesMut) -> io::Result<Option<usize>> {
        debug_assert!(buffer.is_empty());
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
        buffer.advance(self.prefix().min(length));
        Ok(Some(buffer.len()))
    }

    /// Writes one packet; whether the kernel took it. It refuses what is no IP packet and what arrives while the device is down:
    /// to the sender that is a lost packet.
    pub fn send(&self, packet: &[u8]) -> io::Result<bool> {
        if self.offloads {
            return taken((&self.file).write_vectored(&[IoSlice::new(&[0; VIRTIO_HEADER]), IoSlice::new(packet)]));
        }
        taken((&self.file).write(packet))
    }

    /// Writes one packet that stands behind its virtio header, which may say that it is to be cut into segments; whether the kernel took it.
    pub fn send_cut(&self, octets: &[u8]) -> io::Result<bool> {
        debug_assert!(self.offloads);
        taken((&self.file).write(octets))
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
