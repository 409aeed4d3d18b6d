//! The table compared with common files of the web, a site's own types, and refused values.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

fn site(types: &[(&str, &str)], charset: &str, compress: &[&str]) -> SiteConfig {
    let owned = |(extension, media_type): &(&str, &str)| ((*extension).to_owned(), (*media_type).to_owned());
    let mut site = SiteConfig { charset: charset.to_owned(), ..SiteConfig::default() };
    site.types = types.iter().map(owned).collect::<BTreeMap<_, _>>();
    site.compress.types = compress.iter().map(|&pattern| pattern.to_owned()).collect();
    site
}

fn types() -> MediaTypes {
    MediaTypes::new(&SiteConfig::default()).unwrap()
}

#[test]
fn types_of_the_files_of_the_web() {
    let table: [(&[u8], &str); 36] = [
        (b"/index.html", "text/html; charset=utf-8"),
        (b"/a/B.HTM", "text/html; charset=utf-8"),
        (b"a.css", "text/css; charset=utf-8"),
        (b"a.js", "text/javascript; charset=utf-8"),
        (b"a.mjs", "text/javascript; charset=utf-8"),
        (b"a.b.txt", "text/plain; charset=utf-8"),
        (b"a.md", "text/markdown; charset=utf-8"),
        (b"a.csv", "text/csv; charset=utf-8"),
        (b"a.svg", "image/svg+xml; charset=utf-8"),
        (b"a.xml", "text/xml; charset=utf-8"),
        (b"a.xhtml", "application/xhtml+xml; charset=utf-8"),
        (b"a.rss", "application/rss+xml; charset=utf-8"),
        (b"a.json", "application/json"),
        (b"a.js.map", "application/json"),
        (b"a.webmanifest", "application/manifest+json"),
        (b"a.geojson", "application/geo+json"),
        (b"a.wasm", "application/wasm"),
        (b"a.yaml", "application/yaml"),
        (b"a.png", "image/png"),
        (b"a.jpg", "image/jpeg"),
        (b"a.avif", "image/avif"),
        (b"a.webp", "image/webp"),
        (b"a.ico", "image/vnd.microsoft.icon"),
        (b"a.woff", "font/woff"),
        (b"a.woff2", "font/woff2"),
        (b"a.ttf", "font/ttf"),
        (b"a.mp4", "video/mp4"),
        (b"a.webm", "video/webm"),
        (b"a.ts", "video/mp2t"),
        (b"a.m3u8", "application/vnd.apple.mpegurl"),
        (b"a.mp3", "audio/mpeg"),
        (b"a.pdf", "application/pdf"),
        (b"a.tar.gz", "application/gzip"),
        (b"a.zst", "application/zstd"),
        (b"a.br", "application/octet-stream"),
        (b"a.docx", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"),
    ];
    let types = types();
    for (path, expected) in table {
        assert_eq!(types.of(path), expected, "{}", String::from_utf8_lossy(path));
    }
}

#[test]
fn names_without_an_extension_are_octets() {
    let paths: [&[u8]; 9] =
        [b"", b"/", b"/program", b"/.html", b"/a.html/b", b"/a.", b"/a.\xff", b"/a.no-such", b"/a.html "];
    for path in paths {
        assert_eq!(types().of(path), UNKNOWN, "{}", String::from_utf8_lossy(path));
    }
}

#[test]
fn sources_models_and_archives_have_types() {
    let types = types();
    let text = "text/plain; charset=utf-8";
    for name in [
        "a.rb",
        "a.kt",
        "a.swift",
        "a.scala",
        "a.tsx",
        "a.vue",
        "a.svelte",
        "a.lua",
        "a.proto",
        "Cargo.lock",
        "a.R",
    ] {
        assert_eq!(types.of(name.as_bytes()), text, "{name}");
    }
    for name in [
        "README",
        "LICENSE",
        "LICENSE-MIT",
        "Makefile",
        "Dockerfile",
        "x/COPYING",
        ".gitignore",
        "d/Gemfile",
        "changelog",
    ] {
        assert_eq!(types.of(name.as_bytes()), text, "{name}");
    }
    for name in ["README/x", "MANIFEST-000001", "licenses", "readme-a.bin", "makefile.o"] {
        assert_ne!(types.of(name.as_bytes()), text, "{name}");
    }
    for (name, expected) in [
        ("a.ipynb", "application/x-ipynb+json"),
        ("a.obj", "model/obj"),
        ("a.stl", "model/stl"),
        ("a.mtl", "model/mtl"),
        ("a.glb", "model/gltf-binary"),
        ("a.tgz", "application/gzip"),
        ("a.txz", "application/x-xz"),
    ] {
        assert_eq!(types.of(name.as_bytes()), expected, "{name}");
    }
    assert!(types.is_compressible(&types.of(b"a.ipynb")) && types.is_compressible(&types.of(b"a.stl")));
    assert!(!types.is_compressible(&types.of(b"a.tgz")));
}

#[test]
fn every_correction_is_a_type() {
    let types = types();
    assert_eq!(types.known.len(), CORRECTIONS.len() + TEXT_EXTENSIONS.len(), "no extension is there twice");
    for (extension, media_type) in
        CORRECTIONS.iter().copied().chain(TEXT_EXTENSIONS.iter().map(|text| (*text, TEXT)))
    {
        let value = types.of(format!("a.{extension}").as_bytes());
        assert_eq!(essence(value.to_str().unwrap()), media_type);
    }
}

#[test]
fn a_sites_own_types_come_first() {
    let own = [
        ("md", "text/html"),
        (".JS", "application/javascript"),
        ("x", "Text/X; Charset=latin1"),
        ("y", "a/b; q=1"),
    ];
    let types = MediaTypes::new(&site(&own, "utf-16", &[])).unwrap();
    let table = [
        ("a.md", "text/html; charset=utf-16"),
        ("a.js", "application/javascript; charset=utf-16"),
        ("a.x", "Text/X; Charset=latin1"),
        ("a.y", "a/b; q=1"),
        ("a.css", "text/css; charset=utf-16"),
        ("a.rs", "text/x-rust; charset=utf-16"),
    ];
    for (path, expected) in table {
        assert_eq!(types.of(path.as_bytes()), expected, "{path}");
    }
}

#[test]
fn without_a_charset_none_is_told() {
    let types = MediaTypes::new(&site(&[], "", &[])).unwrap();
    assert_eq!(types.of(b"a.html"), "text/html");
    assert_eq!(types.of(b"a.rs"), "text/x-rust");
}

#[test]
fn invalid_types_are_refused() {
    for value in ["", "text", "text/", "/html", "te xt/html", "text/html; a=\n", "text/ht\u{e9}ml", "a/b/c"] {
        let refused = MediaTypes::new(&site(&[("x", value)], "utf-8", &[])).unwrap_err();
        assert_eq!(refused, InvalidMediaType { field: "types.x".to_owned(), value: value.to_owned() });
    }
    assert_eq!(MediaTypes::new(&site(&[], "utf 8", &[])).unwrap_err().field, "charset");
    let refused = MediaTypes::new(&site(&[], "utf-8", &["*/*", "text"])).unwrap_err();
    assert_eq!(
        refused.to_string(),
        "compress.types: \"text\" does not name a media type such as \"text/plain\", or a charset"
    );
}

#[test]
fn compressible_types_are_known() {
    let types = MediaTypes::new(&site(&[], "utf-8", &["font/*", "Model/VND.*+zip"])).unwrap();
    let worth = |path: &str| types.is_compressible(&types.of(path.as_bytes()));
    let yes =
        ["a.html", "a.js", "a.json", "a.svg", "a.wasm", "a.geojson", "a.ttf", "a.woff2", "a.usdz", "a.yaml"];
    yes.iter().for_each(|path| assert!(worth(path), "{path}"));
    let no = ["a.png", "a.jpg", "a.mp4", "a.gz", "a.zst", "a.pdf", "a", "a.zip"];
    no.iter().for_each(|path| assert!(!worth(path), "{path}"));
    assert!(!self::types().is_compressible(&types.of(b"a.woff2")));
    assert!(types.is_compressible(&HeaderValue::from_static("TEXT/HTML ;charset=x")));
    assert!(!types.is_compressible(&HeaderValue::from_bytes(b"text/\xff").unwrap()));
}

proptest! {
    #![proptest_config(fathom_cases::property(2000))]

    #[test]
    fn any_path_has_a_type(path: Vec<u8>, extension in proptest::option::of("[a-zA-Z0-9]{1,5}")) {
        let path = extension.map_or(path.clone(), |extension| [&path, &b"x."[..], extension.as_bytes()].concat());
        let value = types().of(&path);
        prop_assert!(is_media_type(essence(value.to_str().unwrap())), "{:?}", value);
    }
}
