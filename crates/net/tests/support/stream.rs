//! Test data and the kernel's end of a transfer.

use rand::{Rng, SeedableRng};
use rand_pcg::Pcg64Mcg;
use sha2::{Digest, Sha256};
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

/// `count` octets that compress badly and repeat nowhere, from a seed.
pub fn octets(seed: u64, count: usize) -> Vec<u8> {
    let mut out = vec![0; count];
    Pcg64Mcg::seed_from_u64(seed).fill_bytes(&mut out);
    out
}

/// SHA-256 in hexadecimal digits.
pub fn sha256(octets: &[u8]) -> String {
    format!("{:x}", Sha256::digest(octets))
}

/// When an end of a connection sends its FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CloseOrder {
    /// As soon as everything is sent, while the other direction may still carry data.
    WhenSent,
    /// After the peer's FIN.
    AfterPeer,
}

/// The kernel's end of a connection: sends `data` and receives until the peer's FIN, both at once. Gives the SHA-256 and the number of
/// the octets received.
pub fn exchange(stream: TcpStream, data: &[u8], order: CloseOrder) -> io::Result<(String, u64)> {
    // A broken test shall end, not hang.
    stream.set_read_timeout(Some(Duration::from_secs(30)))?;
    stream.set_write_timeout(Some(Duration::from_secs(30)))?;
    let outcome = std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            (&stream).write_all(data)?;
            if order == CloseOrder::WhenSent {
                stream.shutdown(Shutdown::Write)?;
            }
            io::Result::Ok(())
        });
        let mut hash = Sha256::new();
        let mut count = 0;
        let mut buffer = vec![0; 1 << 18];
        loop {
            let read = match (&stream).read(&mut buffer) {
                Ok(0) => break,
                Ok(read) => read,
                // With a timeout on the socket even a signal without a handler (a stopped and continued process) ends a call.
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            hash.update(&buffer[..read]);
            count += read as u64;
        }
        sender.join().expect("the sending thread")?;
        if order == CloseOrder::AfterPeer {
            stream.shutdown(Shutdown::Write)?;
        }
        Ok((format!("{:x}", hash.finalize()), count))
    });
    drop(stream);
    outcome
}

/// The first `count` octets of the engine's synthetic stream, which `whyloss-peer --send-octets` sends.
pub fn synthetic(count: usize) -> Vec<u8> {
    (0..count as u64).map(whyloss_transport::segment::synthetic_octet).collect()
}
