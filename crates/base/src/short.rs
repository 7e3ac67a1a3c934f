//! Copies byte strings that are usually short: keys, small values, message headers. For such
//! strings a call of `memcpy` takes longer than the copy itself.

/// Appends bytes, usually few.
#[inline(always)]
pub fn append(out: &mut Vec<u8>, bytes: &[u8]) {
    const FEW: usize = 32;
    if bytes.len() > FEW {
        return out.extend_from_slice(bytes);
    }
    // A copy of constant length needs no call. The excess is cut off afterwards.
    let start = out.len();
    out.extend_from_slice(&[0; FEW]);
    copy(&mut out[start..start + bytes.len()], bytes);
    out.truncate(start + bytes.len());
}

/// Copies bytes, usually few, to a slice of the same length.
///
/// # Panics
///
/// If the lengths differ.
#[inline(always)]
pub fn copy(place: &mut [u8], bytes: &[u8]) {
    assert_eq!(place.len(), bytes.len());
    if !(ends::<16>(place, bytes) || ends::<8>(place, bytes) || ends::<4>(place, bytes)) {
        place.copy_from_slice(bytes);
    }
}

/// Copies `N` to `2 N` bytes as the first `N` and the last `N` of them. Returns false if the length
/// is outside that range.
#[inline(always)]
fn ends<const N: usize>(place: &mut [u8], bytes: &[u8]) -> bool {
    let (Some(first), Some(last)) = (bytes.first_chunk::<N>(), bytes.last_chunk::<N>()) else {
        return false;
    };
    if bytes.len() > 2 * N {
        return false;
    }
    let end = place.len() - N;
    place[..N].copy_from_slice(first);
    place[end..].copy_from_slice(last);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_length_is_copied_whole() {
        let bytes: Vec<u8> = (1..=100).collect();
        for len in 0..=bytes.len() {
            let mut out = vec![0xAA; 3];
            append(&mut out, &bytes[..len]);
            assert_eq!(out, [&[0xAA; 3], &bytes[..len]].concat());
            let mut place = vec![0; len];
            copy(&mut place, &bytes[..len]);
            assert_eq!(place, bytes[..len]);
        }
    }
}
