//! Parsers for the headers of proxies: the addresses in their order, `None` for an entry without an
//! address.

use std::net::{IpAddr, SocketAddr};

/// Parses a value of `X-Forwarded-For`: a list of addresses, with or without ports.
///
/// ```
/// use fathom_serve::proxies::{forwarded, x_forwarded_for};
///
/// let client = "192.0.2.1".parse().ok();
/// assert_eq!(x_forwarded_for(b"192.0.2.1, unknown"), [client, None]);
/// assert_eq!(forwarded(b"for=192.0.2.1;proto=https"), [client]);
/// ```
#[must_use]
pub fn x_forwarded_for(value: &[u8]) -> Vec<Option<IpAddr>> {
    value.split(|byte| *byte == b',').map(|element| address(element.trim_ascii())).collect()
}

/// Parses a value of `Forwarded` (RFC 7239): the parameter `for` of each element. An element
/// without it, or with a name instead of an address, has no address. A value that breaks the
/// grammar yields one element without an address.
#[must_use]
pub fn forwarded(value: &[u8]) -> Vec<Option<IpAddr>> {
    let (mut all, mut rest) = (Vec::new(), value);
    loop {
        let Some((found, after)) = element(rest) else { return vec![None] };
        all.push(found);
        match after.split_first() {
            None => return all,
            Some((_, after)) => rest = after,
        }
    }
}

/// Parses the first element of `text`. Returns its address, and the rest from the comma on.
fn element(mut text: &[u8]) -> Option<(Option<IpAddr>, &[u8])> {
    let mut found = None;
    loop {
        let (pair, after) = pair(text.trim_ascii_start())?;
        if let Some((name, value)) = pair
            && name.eq_ignore_ascii_case(b"for")
        {
            found = address(&value);
        }
        match after.split_first() {
            Some((b';', after)) => text = after,
            _ => return Some((found, after)),
        }
    }
}

/// A name and its unquoted value, if any, and the rest from the next semicolon or comma on.
type ForwardedPair<'a> = (Option<(&'a [u8], Vec<u8>)>, &'a [u8]);

fn pair(text: &[u8]) -> Option<ForwardedPair<'_>> {
    let end = text.iter().position(|byte| matches!(byte, b'=' | b';' | b',')).unwrap_or(text.len());
    let (name, after) = text.split_at(end);
    if !after.starts_with(b"=") {
        // Elements may be empty (RFC 9110, section 5.6.1).
        return name.trim_ascii().is_empty().then_some((None, after));
    }
    let (value, after) = value(after.get(1..)?)?;
    let after = after.trim_ascii_start();
    let ends = matches!(after.first(), None | Some(b';' | b','));
    ends.then_some((Some((name, value)), after))
}

/// Parses a token or a quoted string. Returns it and the rest.
fn value(text: &[u8]) -> Option<(Vec<u8>, &[u8])> {
    let Some(quoted) = text.strip_prefix(b"\"") else {
        let end =
            text.iter().position(|byte| matches!(byte, b';' | b',' | b' ' | b'\t')).unwrap_or(text.len());
        let (token, after) = text.split_at(end);
        return (!token.is_empty() && !token.contains(&b'"')).then(|| (token.to_vec(), after));
    };
    let (mut value, mut bytes) = (Vec::new(), quoted.iter());
    loop {
        match bytes.next()? {
            b'"' => return Some((value, bytes.as_slice())),
            b'\\' => value.push(*bytes.next()?),
            byte => value.push(*byte),
        }
    }
}

/// Parses an address, with or without a port.
fn address(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']'));
    let address = match bare {
        Some(bare) => bare.parse().map(IpAddr::V6).ok(),
        None => text.parse().ok().or_else(|| text.parse().map(|address: SocketAddr| address.ip()).ok()),
    };
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(read: fn(&[u8]) -> Vec<Option<IpAddr>>, value: &str, expected: &[&str]) {
        let found: Vec<String> = read(value.as_bytes())
            .into_iter()
            .map(|address| address.map_or_else(|| "-".to_owned(), |address| address.to_string()))
            .collect();
        assert_eq!(found, expected, "{value}");
    }

    #[test]
    fn lists_of_addresses_are_read() {
        check(x_forwarded_for, "192.0.2.1", &["192.0.2.1"]);
        check(x_forwarded_for, " 192.0.2.1:80 ,\t[::1]:80, [::2],::3", &["192.0.2.1", "::1", "::2", "::3"]);
        check(x_forwarded_for, "::ffff:192.0.2.1", &["192.0.2.1"]);
        check(
            x_forwarded_for,
            "unknown, 192.0.2.1, , 1.2.3.4.5, [1.2.3.4]",
            &["-", "192.0.2.1", "-", "-", "-"],
        );
    }

    #[test]
    fn elements_are_read() {
        check(forwarded, "for=192.0.2.1", &["192.0.2.1"]);
        check(forwarded, "For=\"[2001:db8:cafe::17]:4711\"", &["2001:db8:cafe::17"]);
        check(forwarded, "for=192.0.2.60; proto=http;by=203.0.113.43", &["192.0.2.60"]);
        check(
            forwarded,
            "by=1.1.1.1;for=192.0.2.43 , for=198.51.100.17:80",
            &["192.0.2.43", "198.51.100.17"],
        );
        check(forwarded, "proto=\"a,b;for=1.1.1.1\";for=2.2.2.2", &["2.2.2.2"]);
        check(forwarded, "for=\"_a\\\"b\", for=unknown,host=x, for=3.3.3.3", &["-", "-", "-", "3.3.3.3"]);
        check(forwarded, ",for=1.1.1.1,", &["-", "1.1.1.1", "-"]);
    }

    #[test]
    fn a_malformed_value_has_no_address() {
        for value in [
            "for=\"1.1.1.1",
            "for=1.1.1.1 2.2.2.2",
            "for",
            "for=",
            "for=1.1.1.1;=\"",
            "for=1\".1.1.1",
            "for=\"\\",
        ] {
            check(forwarded, value, &["-"]);
        }
    }
}
