//! Parsing of the header `Authorization` (RFC 9110, section 11.4, and RFC 7617, section 2).

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A user name and a password, unverified.
pub(super) struct Credentials {
    pub(super) user: String,
    pub(super) password: Vec<u8>,
}

/// Returns the token after the scheme `Basic`; `None` for another scheme.
pub(super) fn token(authorization: &[u8]) -> Option<&[u8]> {
    let space = authorization.iter().position(|&byte| byte == b' ')?;
    let (scheme, token) = authorization.split_at(space);
    scheme.eq_ignore_ascii_case(b"Basic").then(|| token.trim_ascii())
}

impl Credentials {
    /// Decodes a token. The name ends at the first colon. Control characters are refused in both
    /// parts, as RFC 7617 demands; a NUL in particular would let two passwords match one bcrypt
    /// hash. The password may have any encoding.
    pub(super) fn parse(token: &[u8]) -> Option<Self> {
        let decoded = STANDARD.decode(token).ok()?;
        if decoded.iter().any(u8::is_ascii_control) {
            return None;
        }
        let colon = decoded.iter().position(|&byte| byte == b':')?;
        let (user, rest) = decoded.split_at(colon);
        let password = rest.get(1..)?.to_vec();
        Some(Self { user: String::from_utf8(user.to_vec()).ok()?, password })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_rfcs_examples() {
        let aladdin = Credentials::parse(token(b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==").unwrap()).unwrap();
        assert_eq!(
            (aladdin.user.as_str(), aladdin.password.as_slice()),
            ("Aladdin", b"open sesame".as_slice())
        );
        let test = Credentials::parse(token(b"bAsIc   dGVzdDoxMjPCow==").unwrap()).unwrap();
        assert_eq!((test.user.as_str(), test.password.as_slice()), ("test", "123£".as_bytes()));
    }

    proptest! {
        #![proptest_config(fathom_cases::property(256))]

        #[test]
        fn credentials_survive_a_round_trip(user in "[^:\\p{Cc}]{0,20}", password in "[^\\p{Cc}]{0,20}") {
            let header = format!("Basic {}", STANDARD.encode(format!("{user}:{password}")));
            let credentials = Credentials::parse(token(header.as_bytes()).unwrap()).unwrap();
            prop_assert_eq!(credentials.user, user);
            prop_assert_eq!(credentials.password, password.into_bytes());
        }

        #[test]
        fn bytes_of_any_kind_are_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            let encoded = STANDARD.encode(&bytes);
            let expected = bytes.contains(&b':')
                && !bytes.iter().any(u8::is_ascii_control)
                && std::str::from_utf8(bytes.split(|&byte| byte == b':').next().unwrap_or_default()).is_ok();
            prop_assert_eq!(Credentials::parse(encoded.as_bytes()).is_some(), expected);
            if let Some(token) = token(&bytes) {
                prop_assert!(token.len() < bytes.len());
            }
        }
    }
}
