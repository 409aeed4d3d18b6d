//! `--by`: groups and their sums.

use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::support::{Tree, du, skip};
use crate::views::{FATHOM, prints};

fn forest() -> Tree {
    Tree::parse(
        "t/a.rs 600, t/b.rs 100, t/c.RS 90, t/d/e.tar.gz 80, t/d/.hidden 70, t/d/f. 60, t/d/g 50, t/h.d/i.rs = t/a.rs,\
         t/l.so -> a.rs, t/p |, t/s %",
    )
}

#[test]
fn extensions_are_what_follows_the_last_dot() {
    let expected = "\
700\t2\t66.4%\trs
180\t5\t17.1%\t(none)
90\t1\t8.5%\tRS
80\t1\t7.6%\tgz
4\t1\t0.4%\tso
0\t3\t0.0%\t(directory)
";
    assert_eq!(prints(&forest(), "--by=ext -b t"), expected);
}

#[test]
fn types_are_distinguished() {
    let expected = "1050\t7\t99.6%\tregular\n4\t1\t0.4%\tsymlink\n0\t3\t0.0%\tdirectory\n0\t1\t0.0%\tfifo\n0\t1\t0.0%\tsocket\n";
    assert_eq!(prints(&forest(), "--by=type -b t"), expected);
    let inodes = "7\t53.8%\tregular\n3\t23.1%\tdirectory\n1\t7.7%\tsymlink\n1\t7.7%\tfifo\n1\t7.7%\tsocket\n13\t100.0%\ttotal\n";
    assert_eq!(prints(&forest(), "--by=type --inodes -c t"), inodes);
}

#[test]
fn owners_have_their_names() {
    let tree = forest();
    for (key, option) in [("user", "-un"), ("group", "-gn")] {
        let Ok(id) = Command::new("id").arg(option).output() else { return skip("no id(1)") };
        let name = String::from_utf8_lossy(&id.stdout).trim().to_string();
        assert_eq!(prints(&tree, &format!("--by={key} -b t")), format!("1054\t13\t100.0%\t{name}\n"));
    }
}

#[test]
fn an_owner_without_a_name_is_a_number() {
    let tree = Tree::parse("t/f 5");
    if std::os::unix::fs::chown(tree.at("t/f"), Some(3_999_999_999), Some(3_999_999_998)).is_err() {
        return skip("needs root");
    }
    assert!(prints(&tree, "--by=user -b t").starts_with("5\t1\t100.0%\t3999999999\n"));
    assert!(prints(&tree, "--by=group -b t").starts_with("5\t1\t100.0%\t3999999998\n"));
}

#[test]
fn ages_go_by_the_time_asked_for() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs().cast_signed();
    let day = 86_400;
    let mut tree = Tree::parse("t/a 1, t/b 2, t/c 4, t/d 8, t/e 16, t/f 32, t/g 64");
    let ages = [("a", -2), ("b", 0), ("c", 3), ("d", 20), ("e", 200), ("f", 900), ("g", 9000)];
    for (name, days) in ages {
        tree = tree.time(format!("t/{name}"), now - days * day - 60);
    }
    let expected = "\
64\t1\t50.4%\tolder
32\t1\t25.2%\tunder 3 years
16\t1\t12.6%\tunder 1 year
8\t1\t6.3%\tunder 30 days
4\t1\t3.1%\tunder 7 days
2\t2\t1.6%\tunder 1 day
1\t1\t0.8%\tin the future
";
    assert_eq!(prints(&tree, "--by=age -b t"), expected);
    tree.times("t/g", (now - 60, 0), (0, 0));
    assert!(prints(&tree, "--by=age --time=atime -b t/g").ends_with("\t1\t100.0%\tunder 1 day\n"));
}

#[test]
fn groups_sum_up_to_the_total() {
    let tree = forest();
    tree.hard_link("u", "t/a.rs");
    for words in ["-B1 t", "-B1 t u", "-B1 -l t u", "-b t/d t", "-B1 -d0 t", "-B1 -S t", "-B1 --inodes t"] {
        let total = prints(&tree, &format!("-c {words}"));
        let total = total.lines().last().unwrap().split('\t').next().unwrap().to_string();
        for key in ["ext", "user", "group", "age", "type"] {
            let text = prints(&tree, &format!("--by={key} {words}"));
            let sizes = text.lines().map(|line| line.split('\t').next().unwrap().parse::<u64>().unwrap());
            assert_eq!(sizes.sum::<u64>().to_string(), total, "--by={key} {words}");
        }
    }
}

#[test]
fn a_threshold_is_for_groups() {
    assert_eq!(prints(&forest(), "--by=ext -bt100 t"), "700\t2\t66.4%\trs\n180\t5\t17.1%\t(none)\n");
}

#[test]
fn a_missing_file_is_reported_and_the_rest_is_counted() {
    let outcome = du(&forest(), "--by=ext -b missing t/a.rs").run(FATHOM);
    outcome.status(1).says("du: cannot access 'missing'");
    assert_eq!(outcome.out(), "600\t1\t100.0%\trs\n");
}
