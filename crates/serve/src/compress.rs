//! Compression of whole bodies while serving. Precompressed files are made in advance, at a better
//! level.
//!
//! Does not own: whether a client accepts the coding, whether the type is worth compressing,
//! caching of the result. A megabyte takes up to 50 ms: run this on a thread of the pool.
//!
//! The same body always gives the same bytes, so an entity tag derived from the tag of the
//! uncompressed body may be strong.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::negotiate::Coding;

// The levels were chosen with 64 KiB and 1 MiB of prose and source text.

/// The lowest quality that models contexts: 8 % smaller than quality 4 and than gzip at its best,
/// in the time of gzip at its default.
const BR_QUALITY: i32 = 5;
/// The largest window of the format (RFC 7932, section 9.1). Below 17 the library's search takes 2
/// ms to set up, whatever the body.
const BR_WINDOW_BITS: i32 = 22;
/// The library's default: as small as gzip, and 4 times as fast. Its window is far below the 8 MiB
/// that a client has to support (RFC 9659, section 3).
const ZSTD_LEVEL: i32 = 3;
/// The default of gzip(1), 6, is 2 % smaller and takes twice the time.
const GZIP_LEVEL: u32 = 4;

/// An encoder of one content coding.
pub type Coder = fn(&[u8]) -> io::Result<Vec<u8>>;

/// Encodes `body`. Returns `None` if the result is not smaller, so that the body should be sent as
/// it is.
///
/// # Errors
/// The errors of `coder`.
///
/// ```
/// use fathom_serve::compress::{gzip, smaller, zstd};
///
/// let coded = smaller(zstd, &[b'a'; 1000])?.expect("equal bytes become less");
/// assert!(coded.len() < 100);
/// // A body that would grow is sent as it is.
/// assert_eq!(smaller(gzip, b"a")?, None);
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn smaller(coder: Coder, body: &[u8]) -> io::Result<Option<Vec<u8>>> {
    coder(body).map(|coded| Some(coded).filter(|coded| coded.len() < body.len()))
}

/// Encodes as Brotli (RFC 7932).
///
/// # Errors
/// The errors of the library, if it cannot allocate memory.
pub fn br(mut body: &[u8]) -> io::Result<Vec<u8>> {
    let params = brotli::enc::BrotliEncoderParams {
        quality: BR_QUALITY,
        lgwin: BR_WINDOW_BITS,
        size_hint: body.len(),
        ..Default::default()
    };
    let mut coded = Vec::with_capacity(body.len() / 2);
    brotli::BrotliCompress(&mut body, &mut coded, &params)?;
    Ok(coded)
}

/// Encodes as Zstandard (RFC 8878): one frame, which states the length of the body.
///
/// # Errors
/// The errors of the library, if it cannot allocate memory.
pub fn zstd(body: &[u8]) -> io::Result<Vec<u8>> {
    zstd::bulk::compress(body, ZSTD_LEVEL)
}

/// Encodes as gzip (RFC 1952), without a name or a time.
///
/// # Errors
/// None that the library documents for a body in memory.
pub fn gzip(body: &[u8]) -> io::Result<Vec<u8>> {
    let coded = Vec::with_capacity(body.len() / 2);
    let mut encoder = GzEncoder::new(coded, Compression::new(GZIP_LEVEL));
    encoder.write_all(body)?;
    encoder.finish()
}

/// Returns the compressor of `coding`.
pub(crate) fn coder(coding: Coding) -> Coder {
    match coding {
        Coding::Br => br,
        Coding::Zstd => zstd,
        Coding::Gzip => gzip,
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use proptest::prelude::*;

    use super::*;

    const CODERS: [(&str, Coder, Coder); 3] =
        [("br", br, un_br), ("zstd", zstd, un_zstd), ("gzip", gzip, un_gzip)];

    fn un_br(mut coded: &[u8]) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        brotli::BrotliDecompress(&mut coded, &mut body).map(|()| body)
    }

    fn un_zstd(coded: &[u8]) -> io::Result<Vec<u8>> {
        zstd::decode_all(coded)
    }

    fn un_gzip(coded: &[u8]) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        flate2::read::GzDecoder::new(coded).read_to_end(&mut body).map(|_| body)
    }

    fn text(len: usize) -> Vec<u8> {
        (0u64..)
            .flat_map(|line| format!("<li>item {}</li>\n", line * line % 977).into_bytes())
            .take(len)
            .collect()
    }

    fn noise(len: usize) -> Vec<u8> {
        fathom_io::Random::new(1).bytes(len)
    }

    #[test]
    fn texts_come_back_and_are_much_smaller() {
        for (name, coder, decoder) in CODERS {
            for len in [1024, 65_536, 1_048_576, 5_000_000] {
                let body = text(len);
                let coded = smaller(coder, &body).unwrap().unwrap();
                assert!(coded.len() < len / 3, "{name}: {len} bytes to {}", coded.len());
                assert_eq!(coded, coder(&body).unwrap(), "{name}: the same each time");
                assert!(decoder(&coded).unwrap() == body, "{name}: {len} bytes");
            }
        }
    }

    #[test]
    fn incompressible_bodies_are_left_alone() {
        for (name, coder, decoder) in CODERS {
            for body in [Vec::new(), b"a".to_vec(), noise(1000), noise(100_000)] {
                assert_eq!(smaller(coder, &body).unwrap(), None, "{name}: {} bytes", body.len());
                assert!(decoder(&coder(&body).unwrap()).unwrap() == body, "{name}: {} bytes", body.len());
            }
        }
    }

    #[test]
    fn gzip_tells_neither_time_nor_name() {
        let coded = gzip(b"body").unwrap();
        // RFC 1952, section 2.3: magic, deflate, no flags, no time.
        assert_eq!(coded[..8], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0]);
    }

    proptest! {
        #![proptest_config(fathom_cases::property(200))]

        #[test]
        fn any_body_comes_back(part in proptest::collection::vec(any::<u8>(), 0..600), times in 0usize..20) {
            let body = part.repeat(times);
            for (name, coder, decoder) in CODERS {
                prop_assert_eq!(&decoder(&coder(&body).unwrap()).unwrap(), &body, "{}", name);
            }
        }
    }
}
