//! The TCP option of experiments, with which each of our own options begins (RFC 6994).

/// Option kind shared by experiments (RFC 6994).
pub const KIND: u8 = 253;

/// Our experiment identifier, "WL" in ASCII. Not registered.
pub const EXPERIMENT_ID: u16 = 0x574C;

/// Writes the head of an option of `len` octets in all.
pub(super) fn head(len: usize, out: &mut Vec<u8>) {
    let [a, b] = EXPERIMENT_ID.to_be_bytes();
    out.extend_from_slice(&[KIND, len as u8, a, b]);
}
