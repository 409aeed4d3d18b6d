//! Verification of passwords against stored hashes. Two slow schemes are accepted: argon2 (RFC
//! 9106) and bcrypt. A hash whose parameters could not be computed at verification is refused when
//! it is loaded.

use argon2::password_hash::phc::{Output, PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};

/// The bytes of a password that bcrypt uses.
const BCRYPT_BYTES: usize = 72;
/// The largest accepted cost of bcrypt. Each step doubles the time; 16 takes some seconds.
const BCRYPT_COST_MAX: u32 = 16;
/// The largest accepted memory of argon2. As many verifications may run at once as the pool has
/// threads.
const ARGON2_MEMORY_KIB: u32 = 256 << 10;
const ARGON2_PASSES_MAX: u32 = 64;
const ARGON2_LANES_MAX: u32 = 64;

/// A stored hash.
pub(super) struct StoredHash {
    text: String,
    scheme: HashScheme,
}

enum HashScheme {
    Argon2 { algorithm: Algorithm, version: Version, params: Params, salt: Vec<u8>, output: Output },
    Bcrypt,
}

/// Formats no part of the hash, which must not reach logs.
impl std::fmt::Debug for StoredHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoredHash")
    }
}

impl StoredHash {
    /// Parses a hash of the schemes `$argon2id$`, `$argon2i$`, `$2a$`, `$2b$` and `$2y$`.
    ///
    /// # Errors
    /// The reason, without the hash.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let scheme = text.strip_prefix('$').and_then(|rest| rest.split('$').next());
        let scheme = match scheme {
            Some("argon2id" | "argon2i") => argon2(text)?,
            Some("2a" | "2b" | "2y") => bcrypt(text)?,
            Some("argon2d") => return Err(format!("argon2d leaks through side channels; {ACCEPTED_HASHES}")),
            Some("apr1" | "1") => {
                return Err(format!("MD5 is too fast to keep a password; {ACCEPTED_HASHES}"));
            }
            Some(_) => return Err(format!("a hash of an unknown kind; {ACCEPTED_HASHES}")),
            None if text.starts_with("{SHA") => {
                return Err(format!("SHA is too fast to keep a password; {ACCEPTED_HASHES}"));
            }
            None => {
                return Err(format!(
                    "neither argon2 nor bcrypt; plain passwords and crypt(3) are refused; {ACCEPTED_HASHES}"
                ));
            }
        };
        Ok(Self { text: text.to_owned(), scheme })
    }

    /// Returns the hash as it was loaded.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns whether `password` has this hash. The time does not depend on the password.
    pub(super) fn verify(&self, password: &[u8]) -> bool {
        match &self.scheme {
            HashScheme::Argon2 { algorithm, version, params, salt, output } => {
                let mut bytes = [0; Output::MAX_LENGTH];
                let argon2 = Argon2::new(*algorithm, *version, params.clone());
                let Some(bytes) = bytes.get_mut(..output.len()) else { return false };
                let computed = argon2.hash_password_into(password, salt, bytes);
                // `Output` compares in constant time.
                computed.is_ok() && Output::new(bytes).is_ok_and(|computed| computed == *output)
            }
            HashScheme::Bcrypt => {
                // Verify the prefix that bcrypt uses, so that a long password takes as long, and
                // then refuse it: truncation would accept every password with this prefix.
                let looked_at = password.get(..BCRYPT_BYTES).unwrap_or(password);
                let fits = ::bcrypt::verify(looked_at, &self.text).unwrap_or(false);
                fits && password.len() <= BCRYPT_BYTES
            }
        }
    }
}

const ACCEPTED_HASHES: &str = "it has to be argon2id, argon2i or bcrypt ('htpasswd -B')";

fn argon2(text: &str) -> Result<HashScheme, String> {
    let broken = || "a broken argon2 hash".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| broken())?;
    let (Some(salt), Some(output)) = (&hash.salt, hash.hash) else { return Err(broken()) };
    let algorithm = Algorithm::new(hash.algorithm.as_str()).map_err(|_| broken())?;
    // The first version of argon2 wrote no version number.
    let version = hash.version.unwrap_or(Version::V0x10.into());
    let version = Version::try_from(version).map_err(|_| broken())?;
    let params = Params::try_from(&hash).map_err(|_| broken())?;
    if params.m_cost() > ARGON2_MEMORY_KIB {
        return Err(format!(
            "it takes {} KiB of memory for each request, {ARGON2_MEMORY_KIB} are allowed",
            params.m_cost()
        ));
    }
    if params.t_cost() > ARGON2_PASSES_MAX || params.p_cost() > ARGON2_LANES_MAX {
        return Err(format!("it takes more than {ARGON2_PASSES_MAX} passes or {ARGON2_LANES_MAX} lanes"));
    }
    let scheme = HashScheme::Argon2 { algorithm, version, params, salt: salt.to_vec(), output };
    Ok(scheme)
}

fn bcrypt(text: &str) -> Result<HashScheme, String> {
    let parts: ::bcrypt::HashParts = text.parse().map_err(|_| "a broken bcrypt hash".to_owned())?;
    if !(4..=BCRYPT_COST_MAX).contains(&parts.get_cost()) {
        return Err(format!("bcrypt's cost is {}, 4 to {BCRYPT_COST_MAX} are allowed", parts.get_cost()));
    }
    Ok(HashScheme::Bcrypt)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A hash of `secret` at the smallest cost.
    pub(in super::super) const ARGON2ID: &str =
        "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
    /// A hash of `secret` at the smallest cost.
    pub(in super::super) const BCRYPT: &str = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

    #[test]
    fn a_hash_knows_its_password() {
        for text in [ARGON2ID, BCRYPT, &BCRYPT.replace("$2b$", "$2y$"), &BCRYPT.replace("$2b$", "$2a$")] {
            let hash = StoredHash::parse(text).unwrap();
            assert!(hash.verify(b"secret"), "{text}");
            for wrong in [b"".as_slice(), b"Secret", b"secret ", b"secret\0", b"secre"] {
                assert!(!hash.verify(wrong), "{text}");
            }
        }
    }

    /// From `src/test.c` of the reference implementation; the last hash is of its first version.
    #[test]
    fn hashes_of_the_reference_implementation_are_read() {
        for text in [
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA",
            "$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ",
        ] {
            let hash = StoredHash::parse(text).unwrap();
            assert!(hash.verify(b"password"), "{text}");
            assert!(!hash.verify(b"passwort"), "{text}");
        }
    }

    #[test]
    fn bcrypt_never_cuts_a_password() {
        let full = "p".repeat(72);
        let hash = StoredHash::parse(&::bcrypt::hash(&full, 4).unwrap()).unwrap();
        assert!(hash.verify(full.as_bytes()));
        assert!(!hash.verify(format!("{full}x").as_bytes()));
        assert!(!hash.verify(&full.as_bytes()[..71]));
    }

    #[test]
    fn fast_hashes_are_refused_and_not_repeated() {
        for (text, reason) in [
            ("hunter2", "plain passwords"),
            ("", "plain passwords"),
            ("rqXexS6ZhobKA", "crypt(3)"),
            ("$apr1$hunter2$Ec6fYQ4RzvFT1", "MD5"),
            ("{SHA}hunter2fp1Lmw=", "SHA"),
            ("$6$hunter2$x", "unknown kind"),
            ("$2x$05$hunter2", "unknown kind"),
            ("$argon2d$v=19$m=8,t=1,p=1$c29tZXNhbHQ$hunter2", "argon2d"),
            ("$2b$05$hunter2", "broken bcrypt"),
            ("$argon2id$v=19$m=8,t=1,p=1$hunter2", "broken argon2"),
            (
                "$argon2id$v=20$m=8,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
                "broken argon2",
            ),
            (
                "$argon2id$v=19$m=4194304,t=1,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
                "4194304 KiB",
            ),
            (
                "$argon2id$v=19$m=65536,t=100,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
                "64 passes",
            ),
        ] {
            let error = StoredHash::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let slow = BCRYPT.replacen("$04$", "$31$", 1);
        assert!(StoredHash::parse(&slow).unwrap_err().contains("cost is 31"));
    }
}
