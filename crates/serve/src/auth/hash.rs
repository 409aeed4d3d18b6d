//! Whether a password is the one that a stored hash was made of. Two kinds are taken, both made to be slow: argon2 (RFC 9106) and
//! bcrypt. What could not be computed when it is needed is refused when it is loaded.

use argon2::password_hash::phc::{Output, PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};

/// bcrypt looks at so many bytes of a password and no further.
const BCRYPT_BYTES: usize = 72;
/// Each step doubles the time: 16 are some seconds.
const BCRYPT_COST_MAX: u32 = 16;
/// Every request that is verified takes so much at most, and there may be as many as there are threads.
const ARGON2_MEMORY_KIB: u32 = 256 << 10;
const ARGON2_PASSES_MAX: u32 = 64;
const ARGON2_LANES_MAX: u32 = 64;

/// A stored hash.
pub(super) struct Hash {
    text: String,
    kind: Kind,
}

enum Kind {
    Argon2 { algorithm: Algorithm, version: Version, params: Params, salt: Vec<u8>, output: Output },
    Bcrypt,
}

/// Not for logs.
impl std::fmt::Debug for Hash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hash")
    }
}

impl Hash {
    /// Takes `$argon2id$`, `$argon2i$`, `$2a$`, `$2b$` and `$2y$`. An error says what is wrong, without the hash.
    pub(super) fn parse(text: &str) -> Result<Self, String> {
        let scheme = text.strip_prefix('$').and_then(|rest| rest.split('$').next());
        let kind = match scheme {
            Some("argon2id" | "argon2i") => argon2(text)?,
            Some("2a" | "2b" | "2y") => bcrypt(text)?,
            Some("argon2d") => return Err(format!("argon2d can be listened to; {WANTED}")),
            Some("apr1" | "1") => return Err(format!("MD5 is too fast to keep a password; {WANTED}")),
            Some(_) => return Err(format!("a hash of an unknown kind; {WANTED}")),
            None if text.starts_with("{SHA") => {
                return Err(format!("SHA is too fast to keep a password; {WANTED}"));
            }
            None => {
                return Err(format!(
                    "neither argon2 nor bcrypt; plain passwords and crypt(3) are refused; {WANTED}"
                ));
            }
        };
        Ok(Self { text: text.to_owned(), kind })
    }

    /// As it was loaded.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Whether it was made of `password`. Takes the same time whatever the password is.
    pub(super) fn verify(&self, password: &[u8]) -> bool {
        match &self.kind {
            Kind::Argon2 { algorithm, version, params, salt, output } => {
                let mut bytes = [0; Output::MAX_LENGTH];
                let argon2 = Argon2::new(*algorithm, *version, params.clone());
                let Some(bytes) = bytes.get_mut(..output.len()) else { return false };
                let computed = argon2.hash_password_into(password, salt, bytes);
                // `Output` compares in constant time.
                computed.is_ok() && Output::new(bytes).is_ok_and(|computed| computed == *output)
            }
            Kind::Bcrypt => {
                // Computed of what bcrypt would look at, so that a long password takes as long, and then refused: to cut it would
                // let all that begin alike in.
                let looked_at = password.get(..BCRYPT_BYTES).unwrap_or(password);
                let fits = ::bcrypt::verify(looked_at, &self.text).unwrap_or(false);
                fits && password.len() <= BCRYPT_BYTES
            }
        }
    }
}

const WANTED: &str = "it has to be argon2id, argon2i or bcrypt ('htpasswd -B')";

fn argon2(text: &str) -> Result<Kind, String> {
    let broken = || "a broken argon2 hash".to_owned();
    let hash = PasswordHash::new(text).map_err(|_| broken())?;
    let (Some(salt), Some(output)) = (&hash.salt, hash.hash) else { return Err(broken()) };
    let algorithm = Algorithm::new(hash.algorithm.as_str()).map_err(|_| broken())?;
    // The first version wrote no number.
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
    let kind = Kind::Argon2 { algorithm, version, params, salt: salt.to_vec(), output };
    Ok(kind)
}

fn bcrypt(text: &str) -> Result<Kind, String> {
    let parts: ::bcrypt::HashParts = text.parse().map_err(|_| "a broken bcrypt hash".to_owned())?;
    if !(4..=BCRYPT_COST_MAX).contains(&parts.get_cost()) {
        return Err(format!("bcrypt's cost is {}, 4 to {BCRYPT_COST_MAX} are allowed", parts.get_cost()));
    }
    Ok(Kind::Bcrypt)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Of `secret`, with the smallest costs there are.
    pub(in super::super) const ARGON2ID: &str =
        "$argon2id$v=19$m=8,t=1,p=1$c29tZXNhbHQ$QQCd8VPOryZiCF3MtwQnPTK7odKCaPcXJGplgNEuj1A";
    /// The same.
    pub(in super::super) const BCRYPT: &str = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

    #[test]
    fn a_hash_knows_its_password() {
        for text in [ARGON2ID, BCRYPT, &BCRYPT.replace("$2b$", "$2y$"), &BCRYPT.replace("$2b$", "$2a$")] {
            let hash = Hash::parse(text).unwrap();
            assert!(hash.verify(b"secret"), "{text}");
            for wrong in [b"".as_slice(), b"Secret", b"secret ", b"secret\0", b"secre"] {
                assert!(!hash.verify(wrong), "{text}");
            }
        }
    }

    /// From the list in the reference implementation's `src/test.c`; the last one is of its first version.
    #[test]
    fn hashes_of_the_reference_implementation_are_read() {
        for text in [
            "$argon2id$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$CTFhFdXPJO1aFaMaO6Mm5c8y7cJHAph8ArZWb2GRPPc",
            "$argon2i$v=19$m=65536,t=2,p=1$c29tZXNhbHQ$wWKIMhR9lyDFvRz9YTZweHKfbftvj+qf+YFY4NeBbtA",
            "$argon2i$m=65536,t=2,p=1$c29tZXNhbHQ$9sTbSlTio3Biev89thdrlKKiCaYsjjYVJxGAL3swxpQ",
        ] {
            let hash = Hash::parse(text).unwrap();
            assert!(hash.verify(b"password"), "{text}");
            assert!(!hash.verify(b"passwort"), "{text}");
        }
    }

    #[test]
    fn bcrypt_never_cuts_a_password() {
        let full = "p".repeat(72);
        let hash = Hash::parse(&::bcrypt::hash(&full, 4).unwrap()).unwrap();
        assert!(hash.verify(full.as_bytes()));
        assert!(!hash.verify(format!("{full}x").as_bytes()));
        assert!(!hash.verify(&full.as_bytes()[..71]));
    }

    #[test]
    fn what_is_not_slow_is_refused_and_not_repeated() {
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
            let error = Hash::parse(text).unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
            assert!(!error.contains("hunter2"), "{error}");
        }
        let slow = BCRYPT.replacen("$04$", "$31$", 1);
        assert!(Hash::parse(&slow).unwrap_err().contains("cost is 31"));
    }
}
