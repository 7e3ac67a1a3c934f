//! What a certificate says of itself (RFC 5280, §4.1): until when it is valid, its key, and the
//! common name of its subject.
//!
//! The library that verifies certificates keeps these to itself. What is read here is shown and
//! compared. Whom to trust is for the library to decide; only of a client that shows a root itself
//! are the dates looked at once more.

const BOOLEAN_OR_HIGHER_TAG_FORMS: u8 = 0x1f;
const INTEGER: u8 = 0x02;
const OID: u8 = 0x06;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;

/// 2.5.4.3, the attribute `CN`.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];

/// What a certificate says of itself.
#[derive(Debug)]
pub(crate) struct Certificate<'a> {
    pub not_before: Time,
    pub not_after: Time,
    /// The common name, if it has one.
    pub common_name: Option<&'a [u8]>,
    /// The public key with its algorithm (`SubjectPublicKeyInfo`).
    pub public_key: &'a [u8],
}

/// A time to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time {
    year: i64,
    month: u8,
    day: u8,
    seconds_of_day: u32,
}

/// One element of DER, and what follows it.
struct Element<'a> {
    tag: u8,
    content: &'a [u8],
    /// With its tag and length.
    whole: &'a [u8],
    rest: &'a [u8],
}

fn element(bytes: &[u8]) -> Option<Element<'_>> {
    let (&tag, after) = bytes.split_first()?;
    if tag & BOOLEAN_OR_HIGHER_TAG_FORMS == BOOLEAN_OR_HIGHER_TAG_FORMS {
        return None;
    }
    let (&first, after) = after.split_first()?;
    let (length, after) = match first {
        0..=0x7f => (usize::from(first), after),
        0x81..=0x84 => {
            let (length, after) = after.split_at_checked(usize::from(first & 0x7f))?;
            let length = length.iter().fold(0, |sum, &it| sum << 8 | usize::from(it));
            (length, after)
        }
        _ => return None,
    };
    let (content, rest) = after.split_at_checked(length)?;
    Some(Element {
        tag,
        content,
        whole: &bytes[..bytes.len() - rest.len()],
        rest,
    })
}

fn tagged(tag: u8, bytes: &[u8]) -> Option<Element<'_>> {
    element(bytes).filter(|element| element.tag == tag)
}

impl Certificate<'_> {
    /// Reads a certificate. None if it is none.
    pub fn read(der: &[u8]) -> Option<Certificate<'_>> {
        let to_be_signed = tagged(SEQUENCE, tagged(SEQUENCE, der)?.content)?.content;
        let after_version = match tagged(VERSION, to_be_signed) {
            Some(version) => version.rest,
            None => to_be_signed,
        };
        let serial = tagged(INTEGER, after_version)?;
        let algorithm = tagged(SEQUENCE, serial.rest)?;
        let issuer = tagged(SEQUENCE, algorithm.rest)?;
        let validity = tagged(SEQUENCE, issuer.rest)?;
        let subject = tagged(SEQUENCE, validity.rest)?;
        let public_key = tagged(SEQUENCE, subject.rest)?;
        let not_before = element(validity.content)?;
        let not_after = element(not_before.rest)?;
        Some(Certificate {
            not_before: Time::read(&not_before)?,
            not_after: Time::read(&not_after)?,
            common_name: common_name(subject.content),
            public_key: public_key.whole,
        })
    }
}

/// The common name in the attributes of a name. The last one, as in memcached, would be the most
/// specific; there is one.
fn common_name(mut sets: &[u8]) -> Option<&[u8]> {
    while let Some(set) = tagged(SET, sets) {
        sets = set.rest;
        let mut attributes = set.content;
        while let Some(attribute) = tagged(SEQUENCE, attributes) {
            attributes = attribute.rest;
            let name = tagged(OID, attribute.content)?;
            if name.content == COMMON_NAME {
                return element(name.rest).map(|value| value.content);
            }
        }
    }
    None
}

impl Time {
    /// `YYMMDDhhmmssZ`, or with four digits of the year.
    fn read(element: &Element<'_>) -> Option<Time> {
        let text = std::str::from_utf8(element.content).ok()?;
        let (year, rest) = match element.tag {
            UTC_TIME => {
                let (year, rest) = text.split_at_checked(2)?;
                let year: i64 = year.parse().ok()?;
                (year + if year < 50 { 2000 } else { 1900 }, rest)
            }
            GENERALIZED_TIME => {
                let (year, rest) = text.split_at_checked(4)?;
                (year.parse().ok()?, rest)
            }
            _ => return None,
        };
        let two = |at: usize| rest.get(at..at + 2)?.parse::<u8>().ok();
        let [hour, minute, second] = [two(4)?, two(6)?, two(8)?].map(u32::from);
        let (month, day) = (two(0)?, two(2)?);
        let is_time = (1..=12).contains(&month) && (1..=31).contains(&day) && rest.ends_with('Z');
        is_time.then_some(Time {
            year,
            month,
            day,
            seconds_of_day: hour * 3_600 + minute * 60 + second,
        })
    }

    /// Seconds since 1970.
    pub fn unix_s(self) -> i64 {
        // Days since 1970 in the Gregorian calendar, counted in years that begin with March.
        let month = i64::from(self.month);
        let year = self.year - i64::from(month <= 2);
        let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + i64::from(self.day) - 1;
        let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468;
        days * 86_400 + i64::from(self.seconds_of_day)
    }
}

/// As a date.
impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DnType, KeyPair, date_time_ymd};

    #[test]
    fn a_certificate_says_who_it_is_of_and_until_when() {
        let mut params = CertificateParams::new(vec!["a.example".into()]).unwrap();
        params
            .distinguished_name
            .push(DnType::OrganizationName, "Org");
        params
            .distinguished_name
            .push(DnType::CommonName, "cache client");
        params.not_before = date_time_ymd(2024, 2, 29);
        params.not_after = date_time_ymd(2096, 12, 31);
        let key = KeyPair::generate_for(&rcgen::PKCS_ED25519).unwrap();
        let made = params.self_signed(&key).unwrap();
        let der = made.der();
        let read = Certificate::read(der).unwrap();
        assert_eq!(read.common_name, Some(&b"cache client"[..]));
        assert_eq!(read.not_before.unix_s(), 1_709_164_800);
        assert_eq!(read.not_after.unix_s(), 4_007_750_400);
        assert_eq!(read.not_after.to_string(), "2096-12-31");
        for end in 0..der.len() {
            assert!(Certificate::read(&der[..end]).is_none(), "cut at {end}");
        }
    }
}
