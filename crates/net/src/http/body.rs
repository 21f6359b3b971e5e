//! Where the body of a response ends (RFC 9112, 6.3).

use std::io;

/// What is still to come of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many octets (`Content-Length`).
    Length(u64),
    /// Chunks (`Transfer-Encoding: chunked`).
    Chunked(Chunk),
    /// Everything until the connection closes.
    UntilClose,
    /// Nothing: it is complete.
    Done,
}

/// Where in a chunked body the next octet stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chunk {
    /// In the line with the size of a chunk.
    Size,
    /// In a chunk that has so many octets left.
    Data(u64),
    /// In the line end behind a chunk.
    End,
    /// In the lines behind the last chunk.
    Trailer,
}

/// The longest line between chunks, in octets.
const MAX_LINE: usize = 4096;

impl Framing {
    /// Takes what it can from the start of `octets`, hands the body in it to `sink`, and gives how many octets were used. What is left
    /// begins an unfinished line: it is to be offered again with what follows.
    pub fn take(&mut self, octets: &[u8], mut sink: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<usize> {
        let mut used = 0;
        loop {
            let rest = &octets[used..];
            match self {
                Self::Done => return Ok(used),
                Self::UntilClose => {
                    sink(rest)?;
                    return Ok(octets.len());
                }
                Self::Length(left) | Self::Chunked(Chunk::Data(left)) => {
                    let take = rest.len().min(usize::try_from(*left).unwrap_or(usize::MAX));
                    sink(&rest[..take])?;
                    *left -= take as u64;
                    used += take;
                    if *left > 0 {
                        return Ok(used);
                    }
                    *self = if matches!(self, Self::Length(_)) { Self::Done } else { Self::Chunked(Chunk::End) };
                }
                Self::Chunked(place) => {
                    let Some(length) = rest.iter().position(|&octet| octet == b'\n') else {
                        return if rest.len() > MAX_LINE { Err(bad("a line without end between chunks")) } else { Ok(used) };
                    };
                    let line = rest[..length].strip_suffix(b"\r").unwrap_or(&rest[..length]);
                    used += length + 1;
                    match place {
                        Chunk::Size => {
                            let parsed = httparse::parse_chunk_size(&rest[..=length]);
                            let Ok(httparse::Status::Complete((_, size))) = parsed else { return Err(bad("no size of a chunk")) };
                            *place = if size == 0 { Chunk::Trailer } else { Chunk::Data(size) };
                        }
                        Chunk::End if line.is_empty() => *place = Chunk::Size,
                        Chunk::Trailer if line.is_empty() => *self = Self::Done,
                        Chunk::Trailer => {}
                        Chunk::End | Chunk::Data(_) => return Err(bad("a chunk is longer than it says")),
                    }
                }
            }
        }
    }

    /// Whether the body is complete if the connection closes now.
    pub const fn may_end(self) -> bool {
        matches!(self, Self::Done | Self::UntilClose)
    }
}

fn bad(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("the server's chunked body makes no sense: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds `octets` in pieces of every size and gives the body and what was not used.
    fn decode(framing: Framing, octets: &[u8]) -> io::Result<(Vec<u8>, Framing, usize)> {
        let mut results = Vec::new();
        for piece in 1..=octets.len() {
            let (mut framing, mut held, mut body) = (framing, Vec::new(), Vec::new());
            for part in octets.chunks(piece) {
                held.extend_from_slice(part);
                let used = framing.take(&held, |octets| {
                    body.extend_from_slice(octets);
                    Ok(())
                })?;
                held.drain(..used);
            }
            results.push((body, framing, held.len()));
        }
        assert!(results.windows(2).all(|pair| pair[0] == pair[1]), "the pieces do not matter");
        Ok(results.remove(0))
    }

    #[test]
    fn bodies_end_where_they_say() {
        assert_eq!(decode(Framing::Length(3), b"abcdef").unwrap(), (b"abc".to_vec(), Framing::Done, 3));
        assert_eq!(decode(Framing::UntilClose, b"abc").unwrap(), (b"abc".to_vec(), Framing::UntilClose, 0));
        assert_eq!(decode(Framing::Length(4), b"abc").unwrap(), (b"abc".to_vec(), Framing::Length(1), 0));
    }

    #[test]
    fn chunks_are_joined() {
        // RFC 9112, 7.1: extensions and trailers are passed over.
        let octets = b"4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nAge: 1\r\n\r\nX";
        assert_eq!(decode(Framing::Chunked(Chunk::Size), octets).unwrap(), (b"Wikipedia".to_vec(), Framing::Done, 1));
    }

    #[test]
    fn nonsense_between_chunks_is_an_error() {
        for octets in [&b"xyz\r\n"[..], b"2\r\nabc\r\n", b"fffffffffffffffff\r\n"] {
            assert!(decode(Framing::Chunked(Chunk::Size), octets).is_err(), "{octets:?}");
        }
        let endless = vec![b'0'; MAX_LINE + 1];
        assert!(Framing::Chunked(Chunk::Size).take(&endless, |_| Ok(())).is_err());
    }
}
