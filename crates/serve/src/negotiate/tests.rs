//! The choices for the headers of browsers and programs, compared with a model on the weights.

use proptest::prelude::*;

use super::*;

fn best(header: &str) -> Option<Coding> {
    AcceptedCodings::parse(Some(header.as_bytes())).best(&Coding::ALL)
}

fn json(accept: &str) -> bool {
    prefers_json(Some(accept.as_bytes()))
}

#[test]
fn names_are_read_as_they_are_written() {
    for coding in Coding::ALL {
        assert_eq!(Coding::parse(coding.token().as_bytes()), Some(coding));
    }
    assert_eq!(Coding::parse(b"X-GZip"), Some(Coding::Gzip));
    assert_eq!(Coding::parse(b"deflate"), None);
}

#[test]
fn the_client_chooses_by_weight_and_the_server_among_equals() {
    assert_eq!(best("gzip, deflate, br, zstd"), Some(Coding::Br));
    assert_eq!(best("gzip;q=1.0, br;q=0.9"), Some(Coding::Gzip));
    assert_eq!(best("gzip ; Q=0.001"), Some(Coding::Gzip));
    assert_eq!(best("x-gzip"), Some(Coding::Gzip));
    assert_eq!(best("*"), Some(Coding::Br));
    assert_eq!(best("br;q=0, *"), Some(Coding::Zstd));
    assert_eq!(best("*;q=0.5, gzip"), Some(Coding::Gzip));
    let accepted = AcceptedCodings::parse(Some(b"br, gzip"));
    assert_eq!(accepted.best(&[Coding::Gzip, Coding::Br]), Some(Coding::Gzip));
    assert_eq!(accepted.best(&[Coding::Zstd]), None);
}

#[test]
fn without_an_accepted_coding_the_body_is_unencoded() {
    assert_eq!(AcceptedCodings::parse(None).best(&Coding::ALL), None);
    for header in [
        "",
        "identity",
        "deflate",
        "br;q=0",
        "*;q=0",
        "identity;q=0",
        "gzip;q=0.5, identity",
        "br;q=2, zstd;q=x, gzip;q=",
        "gzip;level=1",
    ] {
        assert_eq!(best(header), None, "{header}");
    }
    assert_eq!(best("identity;q=0.5, gzip;q=0.5"), Some(Coding::Gzip));
    assert_eq!(best("identity;q=0, gzip;q=0.1"), Some(Coding::Gzip));
}

#[test]
fn browsers_get_html_and_programs_json() {
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8,application/signed-exchange;v=b3;q=0.7";
    for accept in [
        browser,
        "*/*",
        "",
        "text/html, application/json",
        "application/json;q=0",
        "image/png",
        "application/json;q=0.8, text/*",
    ] {
        assert!(!json(accept), "{accept}");
    }
    assert!(!prefers_json(None));
    for accept in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/*",
        "application/json, */*;q=0.5",
        "text/html;q=0, */*",
        "text/x;a=\"b,application/pdf\", application/json",
    ] {
        assert!(json(accept), "{accept}");
    }
    assert!(!json("text/x;a=\"\\\",application/json,\""));
}

#[test]
fn the_most_exact_range_counts() {
    let rfc = "text/*;q=0.3, text/html;q=0.7, text/html;level=1, text/html;level=2;q=0.4, */*;q=0.5";
    assert!(!json(rfc));
    assert!(!json(&format!("{rfc}, application/json;q=0.7")));
    assert!(json(&format!("{rfc}, application/json;q=0.701")));
}

#[test]
fn a_weight_has_three_digits_at_most() {
    let weights = ["0", "0.", "0.5", "0.05", "0.999", "1", "1.000"].map(|text| thousandths(text.as_bytes()));
    assert_eq!(weights, [0, 0, 500, 50, 999, 1000, 1000].map(Some));
    for text in ["", ".", ".5", "1.001", "0.1234", "2", "-1", "1e0", "0.5 ", "0,5", "00", "\u{661}"] {
        assert_eq!(thousandths(text.as_bytes()), None, "{text}");
    }
}

/// Generates elements with weights in thousandths.
fn lists() -> impl Strategy<Value = Vec<(&'static str, u16)>> {
    let names = vec!["br", "zstd", "gzip", "deflate", "identity", "*"];
    prop::sample::subsequence(names, 0..6)
        .prop_shuffle()
        .prop_flat_map(|names| names.into_iter().map(|name| (Just(name), weights())).collect::<Vec<_>>())
}

fn weights() -> impl Strategy<Value = u16> {
    prop_oneof![Just(0), Just(1000), Just(500), 0..=1000u16]
}

fn written(list: &[(&str, u16)], gap: &str) -> String {
    let element =
        |(name, weight): &(&str, u16)| format!("{name}{gap};{gap}q={}.{:03}", weight / 1000, weight % 1000);
    list.iter().map(element).collect::<Vec<_>>().join(&format!("{gap},{gap}"))
}

proptest! {
    #![proptest_config(fathom_cases::property(4000))]

    #[test]
    fn the_best_is_what_no_other_beats(
        list in lists(), gap in "[ \t]{0,2}",
        available in prop::sample::subsequence(Coding::ALL.to_vec(), 0..=3).prop_shuffle(),
    ) {
        let listed = |name: &str| list.iter().find(|element| element.0 == name).map(|element| element.1);
        let weight = |name| listed(name).or(listed("*"));
        let mut model = (weight("identity").unwrap_or(0), None);
        for coding in available.iter().rev() {
            let weight = weight(coding.token()).unwrap_or(0);
            if weight > 0 && weight >= model.0 {
                model = (weight, Some(*coding));
            }
        }
        let accepted = AcceptedCodings::parse(Some(written(&list, &gap).as_bytes()));
        prop_assert_eq!(accepted.best(&available), model.1);
    }

    #[test]
    fn json_wins_only_with_a_higher_weight(
        weights in prop::collection::vec(prop::option::of(weights()), 5), gap in "[ \t]{0,2}",
    ) {
        let names = ["application/json", "application/*", "text/html", "text/*", "*/*"];
        let list: Vec<_> = names.into_iter().zip(&weights).filter_map(|(name, weight)| Some((name, (*weight)?))).collect();
        let json_weight = weights[0].or(weights[1]).or(weights[4]).unwrap_or(0);
        let html_weight = weights[2].or(weights[3]).or(weights[4]).unwrap_or(0);
        prop_assert_eq!(json(&written(&list, &gap)), json_weight > html_weight);
    }

    #[test]
    fn any_bytes_choose_something_available(header in any::<Vec<u8>>()) {
        let best = AcceptedCodings::parse(Some(&header)).best(&[Coding::Gzip]);
        prop_assert!(matches!(best, None | Some(Coding::Gzip)));
        prop_assert!(!prefers_json(Some(&header)) || header.contains(&b'/'));
    }
}
