//! Start of the server: the addresses that it prints, the precedence of its settings, and its
//! errors.

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use crate::serve::curl::{get, needs_curl};
use crate::serve::server::{ServeDirectory, Server, finish};
use crate::support::program::unprivileged;

#[test]
fn without_arguments_it_serves_the_current_directory_on_port_8080() {
    let home = ServeDirectory::new();
    let result = home.run("--check");
    let expected = format!(
        "Configuration OK\nlisten on 127.0.0.1:8080\ndefault site: '{}'\n",
        home.shown("").trim_end_matches('/')
    );
    assert_eq!(result, (Some(0), expected, String::new()));
}

#[test]
fn the_printed_address_is_served() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("");
    let hint = "No index.html there, so / is answered 404; --listing lists directories\n";
    assert_eq!(server.out(), format!("Serving '{}' on {}/\n{hint}", home.shown("www"), server.url));
    assert_eq!(server.err(), "");
    let listed = home.serve("--listing");
    assert_eq!(listed.out(), format!("Serving '{}' on {}/\n", home.shown("www"), listed.url));
    assert_eq!(server.get("/a.txt"), (200, b"here".to_vec()));
    assert_eq!(server.get("/b.txt").0, 404);
}

#[test]
fn a_variable_of_no_option_is_warned_of() {
    let home = ServeDirectory::with(&[("index.html", b"here")]);
    let warning = "fathom serve: warning: no option has the variable FATHOM_SERVE_LISTN\n";
    let (status, _, errors) = finish(home.command("--check www").env("FATHOM_SERVE_LISTN", "80"));
    assert_eq!((status, &*errors), (Some(0), warning));
    let mut command = home.command("-l 127.0.0.1:0 www");
    assert_eq!(Server::start(&home, command.env("FATHOM_SERVE_LISTN", "80")).err(), warning);
}

/// Once, the working directory was published, under systemd `/`.
#[test]
fn a_configuration_publishes_no_directory_that_it_does_not_name() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let missing = "fathom serve: cannot use 'site.root': missing: the directory to serve\n";
    let in_site = "fathom serve: cannot use 'serve.toml': line 1, column 2: in site.root: missing: the directory to serve\n";
    for (text, missing) in [("", missing), ("workers = 1\n", missing), ("[site]\nlisting = true\n", in_site)]
    {
        std::fs::write(home.at("serve.toml"), text).unwrap();
        for words in ["--config serve.toml", "--check --config serve.toml", "--io-report --config serve.toml"]
        {
            assert_eq!(home.run(words), (Some(1), String::new(), missing.to_owned()), "{words}: {text}");
        }
    }
    std::fs::write(home.at("serve.toml"), "[[host]]\nnames = ['a.example']\n").unwrap();
    assert!(home.run("--check --config serve.toml").2.contains("in host[0].root: missing"));

    let hosts =
        "[[host]]\nnames = ['a.example']\nroot = 'www'\n[[host]]\nnames = ['b.example']\nroot = '.'\n";
    std::fs::write(home.at("serve.toml"), format!("health = '/health'\nmetrics = '/metrics'\n{hosts}"))
        .unwrap();
    let checked = home.run("--check --config serve.toml").1;
    assert!(
        checked.contains("\ndefault site: no directory, so requests for other hosts are refused (421)\n"),
        "{checked}"
    );
    assert!(checked.contains(&format!("\nsite a.example: '{}'\n", home.shown("www"))), "{checked}");
    let server = Server::start(&home, &mut home.command("-l 127.0.0.1:0 --config serve.toml"));
    let expected = format!("Serving '{}' and 1 other site on {}/\n", home.shown("www"), server.url);
    assert_eq!(server.out(), expected);
    for target in ["/a.txt", "/www/a.txt", "/serve.toml", "/"] {
        assert_eq!(server.get(target).0, 421, "{target}");
    }
    assert_eq!([server.get("/health").0, server.get("/metrics").0], [200; 2]);
    std::fs::write(home.at("serve.toml"), "").unwrap();
    let kept = "fathom serve: reload failed, keeping the old configuration\n";
    assert_eq!(server.reload(), format!("{missing}{kept}"));
    assert_eq!(server.get("/a.txt").0, 421);
}

#[test]
fn a_file_is_served_alone() {
    let home = ServeDirectory::with(&[("a b.txt", b"here"), ("other.txt", b"no"), (".hidden", b"named")]);
    let mut command = home.command("-l 127.0.0.1:0");
    let alone = |mut server: Server| {
        server.url = server.url.rsplit_once('/').unwrap().0.to_owned();
        server
    };
    let server = Server::start(&home, command.arg("www/a b.txt"));
    let message = server.out();
    let expected = format!("Serving '{}' on http://127.0.0.1:", home.shown("www/a b.txt"));
    assert!(message.starts_with(&expected), "{message}");
    assert!(message.ends_with("/a%20b.txt\n"), "{message}");
    let server = alone(server);
    assert_eq!(server.get("/a%20b.txt"), (200, b"here".to_vec()));
    for path in ["/other.txt", "/a%20b.txt/", "/.hidden", "/www/a%20b.txt", "/../www/other.txt"] {
        assert_eq!(server.get(path).0, 404, "{path}");
    }
    assert_eq!(server.get("/").0, 307);
    let hidden = alone(Server::start(&home, &mut home.command("-l 127.0.0.1:0 www/.hidden")));
    assert_eq!(hidden.get("/.hidden"), (200, b"named".to_vec()));
}

#[test]
fn several_addresses_are_printed_and_served() {
    if !needs_curl("") {
        return;
    }
    if TcpListener::bind("[::1]:0").is_err() {
        return crate::support::skip("needs IPv6");
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let server = home.serve("-l [::1]:0");
    let message = server.out();
    let urls: Vec<&str> =
        message.lines().next().unwrap().rsplit_once("' on ").unwrap().1.split(", ").collect();
    assert_eq!(urls.len(), 2, "{message}");
    for url in urls {
        let url = url.trim_end_matches('/');
        let other = get(&home, &[&format!("{url}/a.txt")]);
        assert_eq!((other.status, other.body), (200, b"here".to_vec()), "{url}");
    }
}

#[test]
fn options_override_variables_and_variables_the_file() {
    if !needs_curl("") {
        return;
    }
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    let rules = "[[site.headers]]\npath = '*'\nset = { X-From = 'file', X-File = 'yes' }\n";
    fs::write(
        home.at("serve.toml"),
        format!("health = '/file'\nmetrics = '/metrics-file'\n[site]\nlisting = true\n{rules}"),
    )
    .unwrap();
    let mut command = home.command("--health=/flag www");
    command.envs([
        ("FATHOM_SERVE_CONFIG", "serve.toml"),
        ("FATHOM_SERVE_LISTEN", "127.0.0.1:0"),
        ("FATHOM_SERVE_HEALTH", "/variable"),
        ("FATHOM_SERVE_METRICS", "/metrics-variable"),
        ("FATHOM_SERVE_HEADER", "*=X-From:variable"),
    ]);
    let server = Server::start(&home, &mut command);
    for (path, status) in [
        ("/flag", 200),
        ("/variable", 404),
        ("/file", 404),
        ("/metrics-variable", 200),
        ("/metrics-file", 404),
        ("/", 200),
    ] {
        assert_eq!(server.get(path).0, status, "{path}");
    }
    let reply = get(&home, &[&format!("{}/a.txt", server.url)]);
    assert_eq!((reply.header("x-from"), reply.header("x-file")), (Some("variable"), Some("yes")));
}

#[test]
fn errors_have_a_message_and_a_status() {
    let home = ServeDirectory::with(&[("a.txt", b"here")]);
    fs::write(home.at("bad.toml"), "[site]\nroot = 'www'\nlistings = true\n").unwrap();
    fs::write(home.at("not.pem"), "hello\n").unwrap();
    for (words, status, message) in [
        ("nosuch", 1, "cannot open 'nosuch': No such file or directory\n"),
        ("www/a.txt/b", 1, "cannot open 'www/a.txt/b': Not a directory\n"),
        ("/dev/null", 1, "cannot open '/dev/null': Not a directory\n"),
        ("--check nosuch", 1, "cannot open 'nosuch': No such file or directory\n"),
        ("--check --mount /a=nosuch www", 1, "cannot open 'nosuch': No such file or directory\n"),
        (
            "--check --mount a=www www",
            1,
            "cannot use 'site.mounts[0].path': a path begins with '/' and has at least one name\n",
        ),
        (
            "--check --mount /a=www --mount /a/=www www",
            1,
            "cannot use 'site.mounts[1].path': '/a' is also the path of site.mounts[0]\n",
        ),
        (
            "--check --auth anna:hunter2 www",
            1,
            "cannot use 'site.auth.users.anna': neither argon2 nor bcrypt",
        ),
        ("--check --auth-file nosuch www", 1, "cannot use users file 'nosuch': No such file or directory\n"),
        ("--check --tls-cert not.pem --tls-key not.pem www", 1, "cannot use certificate 'not.pem': "),
        (
            "--check --access-log=no/such/log www",
            1,
            "cannot open log 'no/such/log': No such file or directory\n",
        ),
        ("--check --max-streams 0 www", 1, "cannot use 'limits.streams': must be at least 1\n"),
        ("-c nosuch.toml", 1, "cannot read 'nosuch.toml': No such file or directory\n"),
        (
            "-c bad.toml",
            1,
            "cannot use 'bad.toml': line 3, column 1: in site: unknown key 'listings', did you mean 'listing'?\n",
        ),
        (
            "--check -c bad.toml",
            1,
            "cannot use 'bad.toml': line 3, column 1: in site: unknown key 'listings', did you mean 'listing'?\n",
        ),
        ("-l 192.0.2.1:1 www", 1, "cannot listen on '192.0.2.1:1': Cannot assign requested address\n"),
        (
            "-l unix:no/such/socket www",
            1,
            "cannot listen on 'unix:no/such/socket': No such file or directory\n",
        ),
        ("-l systemd www", 1, "systemd passed no sockets"),
        ("--tls-cert not.pem --tls-key not.pem www", 1, "not.pem"),
        ("--tls-cert nosuch.pem --tls-key nosuch.pem www", 1, "'nosuch.pem': No such file or directory\n"),
        ("--tls-cert not.pem www", 2, "--tls-key"),
        ("--auth-file nosuch www", 1, "'nosuch': No such file or directory\n"),
        ("--access-log=no/such/log www", 1, "cannot open log 'no/such/log': No such file or directory\n"),
        ("--io zfs www", 2, "invalid argument 'zfs' for '--io': expected one of sync, pool,"),
        (
            "--nonsense",
            2,
            "unrecognized option '--nonsense'\nTry 'fathom serve --help' for more information.\n",
        ),
        ("www www", 2, "extra operand 'www'\n"),
        ("--port 65536", 2, "invalid argument '65536' for '--port': expected a port, a number up to 65535\n"),
    ] {
        let (ended, out, err) = home.run(words);
        assert_eq!((ended, out.as_str()), (Some(status), ""), "{words}: {err}");
        assert!(err.starts_with("fathom serve: ") && err.contains(message), "{words}: {err}");
    }
}

#[test]
fn a_port_in_use_is_reported() {
    let home = ServeDirectory::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    let result = home.run(&format!("-l {address} www"));
    let expected = format!("fathom serve: cannot listen on '{address}': Address already in use\n");
    assert_eq!(result, (Some(1), String::new(), expected));
    let server = home.serve("");
    let (status, _, err) = home.run(&format!("-l {} www", server.address()));
    assert!(status == Some(1) && err.contains("in use"), "another server of its own is there: {err}");
}

#[test]
fn unreadable_files_are_refused_and_others_are_served() {
    let home = ServeDirectory::with(&[("a.txt", b"here"), ("b.txt", b"secret"), ("c/d.txt", b"secret")]);
    let allow =
        |name: &str, bits| fs::set_permissions(home.at(name), fs::Permissions::from_mode(bits)).unwrap();
    allow("", 0o755);
    allow("www/b.txt", 0o000);
    allow("www/c", 0o000);
    let mut command = unprivileged();
    command.args(["serve", "-l", "127.0.0.1:0", "--listing", "www"]).current_dir(home.at(""));
    let server = Server::start(&home, &mut command);
    for (path, status) in [("/a.txt", 200), ("/b.txt", 403), ("/c/d.txt", 403), ("/c/", 403), ("/", 200)] {
        assert_eq!(server.get(path).0, status, "{path}");
    }
    allow("www/c", 0o755);
}
