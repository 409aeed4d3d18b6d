//! Headless Chromium, which `tools/setup-test.sh` installs: hostile names stay text, the policy is
//! never violated, the map reacts to the pointer and to keys, and the table has its numbers.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};

use crate::report::{data, last_three, objects, page, sums};
use crate::support::commands::stdout_of;
use crate::support::{Tree, selenium_python};

/// Names of directories, and how the page shows them.
const NAMES: [(&[u8], &str); 16] = [
    (b"<img src=x onerror=alert(1)>", "<img src=x onerror=alert(1)>"),
    (b"<", "<"),
    (b"<!--<script>alert(1)", "<!--<script>alert(1)"),
    (b"]]>", "]]>"),
    (b"\"><svg onload=alert(1)>", "\"><svg onload=alert(1)>"),
    (b"' onmouseover='alert(1)", "' onmouseover='alert(1)"),
    (b"javascript:alert(1)", "javascript:alert(1)"),
    (b"${alert(1)}{data}{script}", "${alert(1)}{data}{script}"),
    (b"__proto__", "__proto__"),
    (b"&lt;b&gt;", "&lt;b&gt;"),
    (b"line\xe2\x80\xa8line", "line\\342\\200\\250line"),
    (b"\xe2\x80\xaetxt.exe", "\\342\\200\\256txt.exe"),
    (b"bad\xff\xfe\xe2\x82", "bad\\377\\376\\342\\202"),
    (b"new\nline\x1b[31m", "new\\012line\\033[31m"),
    (b"-rf", "-rf"),
    (&[b'n'; 255], ""),
];

fn shown(place: usize) -> String {
    let (name, text) = NAMES[place];
    if text.is_empty() { String::from_utf8(name.to_vec()).unwrap() } else { text.to_owned() }
}

fn directory(place: usize) -> Vec<u8> {
    [b"s/", NAMES[place].0].concat()
}

/// Returns a tree of directories with hostile names, the largest first, each with three files. One
/// is called like the end of a script.
fn hostile() -> Tree {
    let tree = Tree::new();
    for place in 0..NAMES.len() {
        let size = 20_000 * (NAMES.len() - place);
        for (name, share) in
            [("film.mp4", 3), ("</script><script>alert(1)<", 0), ("photo.jpg", 2), ("main.rs", 1)]
        {
            let name = name.replace('/', "\u{2215}");
            let path = [&directory(place)[..], b"/", name.as_bytes()].concat();
            tree.holding(OsStr::from_bytes(&path), vec![b'x'; size * share + 1]);
        }
    }
    stdout_of(&tree, &["scan", "-o", "i", "s"]);
    tree
}

/// Returns a tree with the inventories `old` and `i`. Version control ignores a part of it.
fn grown() -> Tree {
    let tree = Tree::parse("s/calm/f 100000, s/grows/f 1000, s/.git/, s/calm/new 5000");
    let two_years_ago = SystemTime::now() - Duration::from_secs(2 * 365 * 86_400);
    fs::File::open(tree.at("s/calm/f")).unwrap().set_modified(two_years_ago).unwrap();
    tree.holding("s/.gitignore", "calm\n");
    stdout_of(&tree, &["scan", "-o", "old", "s"]);
    let tree = tree.with("s/grows/more 400000");
    stdout_of(&tree, &["scan", "--also", "ignored", "-o", "i", "s"]);
    tree
}

/// Returns a tree with the page of an import that has apparent sizes alone.
fn imported() -> Tree {
    let tree = Tree::new();
    let small: String = (0..300).map(|at| format!(",{{\"name\":\"a{at}\",\"asize\":1}}")).collect();
    let text = format!("[1,2,{{}},[{{\"name\":\"/t\"}}{small},{{\"name\":\"z.mp4\",\"asize\":9000}}]]");
    tree.holding("ncdu.json", text);
    stdout_of(&tree, &["import", "--from", "ncdu", "-o", "i", "ncdu.json"]);
    stdout_of(&tree, &["report", "-o", "page.html", "i"]);
    tree
}

struct Observed {
    report: Value,
    hostile: Tree,
}

/// Returns the browser's report, or `None` without a browser. The browser is started once for all
/// tests.
fn observed() -> Option<&'static Observed> {
    static OBSERVED: OnceLock<Option<Observed>> = OnceLock::new();
    let observed = OBSERVED.get_or_init(|| {
        let python = selenium_python()?;
        let (hostile, grown, imported) = (hostile(), grown(), imported());
        stdout_of(&hostile, &["report", "-o", "page.html", "i"]);
        // A large directory comes first, so the others have other numbers.
        let hostile = hostile.with("s/0/large 9000000, s/0/more 9000000");
        stdout_of(&hostile, &["scan", "-o", "later", "s"]);
        stdout_of(&hostile, &["report", "-o", "later.html", "later"]);
        fs::remove_dir_all(hostile.at("s/0")).unwrap();
        stdout_of(&grown, &["report", "-o", "page.html", "--since", "old", "i"]);
        let scratch = hostile.at("browser");
        fs::create_dir(&scratch).unwrap();
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/report/browser.py");
        let mut command = Command::new(python);
        command.arg("-B").arg(script).args([
            hostile.at("page.html"),
            hostile.at("later.html"),
            grown.at("page.html"),
            imported.at("page.html"),
            scratch,
        ]);
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(Observed { report: serde_json::from_slice(&output.stdout).unwrap(), hostile })
    });
    if observed.is_none() {
        selenium_python();
    }
    observed.as_ref()
}

#[test]
fn hostile_names_run_nothing_and_violate_no_policy() {
    let Some(Observed { report, .. }) = observed() else { return };
    assert_eq!(report["ran"], json!([]));
    assert_eq!(report["violations"], json!([]));
    assert_eq!(report["console"], json!([]));
    assert_eq!(report["requests"], json!([]));
    assert_eq!(
        report["elements"],
        json!([2, 0, 0, 0, 0, 0, 0, 0]),
        "the data and the script are the only ones"
    );
    assert!(report["noticed"].to_string().contains("img-src"), "{}", report["noticed"]);
}

#[test]
fn the_table_has_every_name_as_text_and_the_numbers_of_top() {
    let Some(Observed { report, hostile }) = observed() else { return };
    let look = &report["look"];
    assert_eq!((&look["heading"], &look["title"]), (&json!("s"), &json!("s - fathom report")));
    let rows = look["rows"].as_array().unwrap();
    let names: Vec<_> = rows.iter().map(|row| row[0].as_str().unwrap().to_owned()).collect();
    assert_eq!(names, (0..NAMES.len()).map(shown).collect::<Vec<_>>());
    // The largest directory is the root itself.
    let top = objects(hostile, &["top", "--json", "-n", "17", "i"]);
    let expected: Vec<_> = top[1..17].iter().map(sums).collect();
    assert_eq!(rows.iter().map(last_three).collect::<Vec<_>>(), expected);
    let visited = report["visit"].as_object().unwrap();
    assert_eq!(visited.len(), NAMES.len());
    for (place, rows) in visited.values().map(|rows| rows.as_array().unwrap()).enumerate() {
        let names: Vec<_> = rows.iter().map(|row| row[0].as_str().unwrap()).collect();
        assert_eq!(
            names,
            ["film.mp4", "photo.jpg", "main.rs", "<\u{2215}script><script>alert(1)<"],
            "{place}"
        );
    }
}

#[test]
fn the_cards_have_the_numbers_of_the_data() {
    let Some(Observed { report, hostile }) = observed() else { return };
    let data = data(&page(hostile));
    for (card, by) in [("by-ext", "ext"), ("by-size", "size")] {
        let shown = report["cards"][card].as_array().unwrap();
        let expected = data["by"][by].as_array().unwrap();
        assert!(!shown.is_empty() && shown.len() == expected.len().min(20), "{card}");
        for (row, expected) in shown.iter().zip(expected) {
            assert_eq!((&row[0], last_three(row)), (&expected[0], last_three(expected)), "{card}");
        }
    }
    let first = &report["cards"]["top-files"][0];
    assert_eq!(
        (first[0].as_str(), first[2].as_u64()),
        (Some("s/<img src=x onerror=alert(1)>/film.mp4"), Some(960_001))
    );
}

#[test]
fn a_pointer_shows_paths_and_opens_directories() {
    let Some(Observed { report, .. }) = observed() else { return };
    let look = &report["look"];
    let hover = look["hover"].as_str().unwrap();
    let (_, below) = hover.split_once("s/").unwrap();
    let name = below.split('/').next().unwrap();
    assert!((0..NAMES.len()).any(|place| shown(place) == name), "{hover}");
    assert!(look["tip"].as_str().unwrap().starts_with(hover), "{look}");
    assert_eq!(look["clicked"], json!(["s", name]));
    assert_eq!(look["inside"].as_array().unwrap().len(), 4);
}

/// Once, they had the numbers of nodes, which belonged to other directories in the next page.
#[test]
fn links_lead_to_the_same_directory_in_a_later_page() {
    let Some(Observed { report, .. }) = observed() else { return };
    let links = &report["links"];
    let found = links["found"].as_array().unwrap();
    assert_eq!(found.len(), NAMES.len());
    for link in found {
        assert!(link[1].as_str().unwrap().starts_with("#dir=s/"), "{link}");
        assert_eq!(link[2], json!(["s", link[0]]), "{link}");
    }
    let gone = "This page has no s/gone/x, and shows the nearest directory above it.";
    assert_eq!(links["gone"], json!([["s"], gone]));
}

#[test]
fn keys_select_open_leave_and_copy() {
    let Some(Observed { report, .. }) = observed() else { return };
    let keyboard = &report["keyboard"];
    assert_eq!(keyboard["focus"], json!("over"));
    let first = format!("s/{}", shown(0));
    assert_eq!(keyboard["first"], json!(first));
    let places: Vec<_> =
        keyboard["places"].as_array().unwrap().iter().map(|place| place.as_str().unwrap()).collect();
    assert!(places[0] != first && places[1] != places[0], "{places:?}");
    assert!(places.iter().all(|place| place.matches('/').count() == 1), "{places:?}");
    let told = keyboard["told"].as_str().unwrap();
    assert!(told.starts_with(&format!("{}, ", places[3])) && told.contains(" %"), "{told}");
    let last = places[3].strip_prefix("s/").unwrap();
    let copied = keyboard["copied"].as_str().unwrap();
    assert!(copied.starts_with("Copied: ") && copied.contains("s/"), "{copied}");
    assert_eq!(keyboard["entered"], json!(["s", last]));
    assert!(keyboard["live"].as_str().unwrap().starts_with(&format!("{last}: ")), "{keyboard}");
    assert_eq!((&keyboard["left"], &keyboard["again"]), (&json!(["s"]), &json!(["s"])));
}

#[test]
fn the_map_is_drawn_in_both_schemes_and_on_a_telephone() {
    let Some(Observed { report, .. }) = observed() else { return };
    let schemes = &report["schemes"];
    // Video, pictures and source, as the style sheet has them.
    for (scheme, colours) in
        [("light", [0xe0705f, 0xe9b04a, 0x58b794]), ("dark", [0xb5564a, 0xa97e2c, 0x35806a])]
    {
        let found = schemes[scheme]["colours"].as_array().unwrap();
        assert!(colours.iter().all(|colour| found.contains(&json!(colour))), "{scheme}: {found:x?}");
    }
    assert_eq!(schemes["width"], json!(375));
    let width = schemes["phone"]["width"].as_u64().unwrap();
    assert!((600..750).contains(&width), "{width} pixels of the device for 375 of the page");
}

#[test]
fn growth_is_a_colour_and_a_table() {
    let Some(Observed { report, .. }) = observed() else { return };
    assert_eq!(report["colours"], json!(["kind", "age", "owner", "ext", "growth", "ignored"]));
    let rows = report["growth"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0][0], &rows[1][0]), (2, &json!("s"), &json!("s/grows")));
    assert!(
        last_three(&rows[1])[1] == 400_000 && report["legend"].as_str().unwrap().contains("did not grow"),
        "{report}"
    );
    assert_eq!(report["grown"], json!(["s", "grows"]));
}

#[test]
fn old_files_are_a_list() {
    let Some(Observed { report, .. }) = observed() else { return };
    let rows = report["old"].as_array().unwrap();
    assert_eq!((rows.len(), &rows[0][0], &rows[0][2]), (1, &json!("s/calm/f"), &json!(100_000)));
}

#[test]
fn names_are_found_tables_sorted_and_copied_and_colours_hidden() {
    let Some(Observed { report, .. }) = observed() else { return };
    let tools = &report["tools"];
    let found = tools["found"].as_array().unwrap();
    assert_eq!(found.len(), NAMES.len());
    assert_eq!(found[0][0], json!(format!("s/{}/photo.jpg", shown(0))));
    assert_eq!(tools["caption"], json!("16 entries of the map with “PHOTO” in the name"));
    assert_eq!((&tools["place"], &tools["left"]), (&json!(["s", shown(0)]), &json!("")));
    assert_eq!(tools["inside"].as_array().unwrap().len(), 4);
    let (by_name, by_size) = (
        ["<\u{2215}script><script>alert(1)<", "film.mp4", "main.rs", "photo.jpg"],
        ["film.mp4", "photo.jpg", "main.rs"],
    );
    let sorts = tools["sorts"].as_array().unwrap();
    assert_eq!(sorts[0], json!([["ascending", null, null, null, null], by_name]));
    let reversed: Vec<_> = by_name.into_iter().rev().collect();
    assert_eq!(sorts[1], json!([["descending", null, null, null, null], reversed]));
    assert_eq!((&sorts[2][0][2], &sorts[3][0][2]), (&json!("descending"), &json!("ascending")));
    assert_eq!(sorts[2][1].as_array().unwrap()[..3], by_size.map(|name| json!(name)));
    let [by_ext, files] = [0, 1].map(|at| tools["csv"][at].as_str().unwrap());
    assert!(by_ext.starts_with("Extension,Disk usage,Size,Entries\r\nmp4,"), "{by_ext}");
    assert!(files.contains("\r\n\"s/\"\"><svg onload=alert(1)>/film.mp4\","), "{files}");
    assert_eq!(tools["told"], json!("Copied: 50 rows"));
    assert_eq!(tools["pressed"], json!(["true", "false", "false", "false"]));
    let has = |colours: &Value, colour: u64| colours.as_array().unwrap().contains(&json!(colour));
    // Video stays, pictures do not.
    for (colours, pictures) in [("all", true), ("only", false), ("again", true)] {
        assert!(has(&tools[colours], 0xe0_705f) && has(&tools[colours], 0xe9_b04a) == pictures, "{colours}");
    }
    let ext = tools["ext"].as_array().unwrap();
    assert!(["mp4", "jpg", "rs"].iter().all(|name| ext.contains(&json!(name))), "{ext:?}");
}

#[test]
fn paper_is_light() {
    let Some(Observed { report, .. }) = observed() else { return };
    let printed = &report["printed"];
    let has = |colours: &str, colour: u64| printed[colours].as_array().unwrap().contains(&json!(colour));
    for (colours, is_light) in [("screen", false), ("beforeprint", true), ("afterprint", false)] {
        assert_eq!((has(colours, 0xe0_705f), has(colours, 0xb5_564a)), (is_light, !is_light), "{colours}");
    }
}

#[test]
fn an_import_without_disk_usage_is_shown_by_apparent_size() {
    let Some(Observed { report, .. }) = observed() else { return };
    let [facts, area, rows, status, colours] = [0, 1, 2, 3, 4].map(|at| &report["apparent"][at]);
    assert!(facts.as_str().unwrap().starts_with("Apparent size9.1 KiB"), "{facts}");
    assert_eq!((area, &rows[0][0], &rows[0][2]), (&json!("apparent"), &json!("z.mp4"), &json!(9000)));
    assert!(status.as_str().unwrap().starts_with("9.1 KiB · 100.0 %"), "{status}");
    assert!(colours.as_array().unwrap().contains(&json!(0xe0_705f)), "{colours}");
}

#[test]
fn what_version_control_ignores_is_a_colour() {
    let Some(Observed { report, .. }) = observed() else { return };
    assert_eq!(report["ignored"], json!("not ignoredignored"));
    let found = report["ignored_pixels"]["colours"].as_array().unwrap();
    assert!([0x64_a2dc, 0xe0_a04f].iter().all(|colour| found.contains(&json!(colour))), "{found:x?}");
}
