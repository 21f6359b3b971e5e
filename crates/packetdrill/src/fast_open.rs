//! Keys of fast open as scripts write them.

/// A key as `net.ipv4.tcp_fastopen_key` writes it: four words of eight hexadecimal digits.
pub fn key(text: &str) -> Option<[u8; 16]> {
    let mut key = [0; 16];
    let mut words = text.split('-');
    for part in key.chunks_exact_mut(4) {
        part.copy_from_slice(&u32::from_str_radix(words.next()?, 16).ok()?.to_le_bytes());
    }
    words.next().is_none().then_some(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_words_in_the_order_of_the_machine() {
        assert_eq!(
            key("04030201-08070605-0c0b0a09-100f0e0d").unwrap(),
            *b"\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c\x0d\x0e\x0f\x10"
        );
        assert_eq!((key("1-2-3"), key("1-2-3-4-5"), key("1-2-3-x")), (None, None, None));
    }
}
