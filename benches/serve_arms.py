"""The servers of `serve.py`: the command of each, such that all do the same work on one core.

No server writes an access log, compresses, or adds headers that can be turned off.
"""

from dataclasses import dataclass

FATHOM_MODELS = ("sync", "nowait", "pool", "tokio", "sendfile", "uring")
AUTO, AGAIN, EARLIER = "fathom", "fathom (again)", "fathom (earlier)"
NGINX = "nginx"


@dataclass(frozen=True)
class Arm:
    """A server with a set of options."""

    name: str
    group: str  # fathom, again, earlier, fixed (a model), nginx, threads (nginx with some), rival
    # Placeholders: PORT, ROOT (the served directory), SCRATCH (an empty directory), CONF (a file
    # with `configuration`).
    command: tuple
    configuration: str = ""
    note: str = ""

    def argv(self, names):
        """Returns the command, with placeholders replaced according to `names`."""
        return [replaced(word, names) for word in self.command]


def replaced(text, names):
    for name, value in names.items():
        text = text.replace(name, str(value))
    return text


def model(name):
    """Returns the name of the arm of a model."""
    return f"fathom --io {name}"


def all_arms(fathom, rivals, earlier=None):
    """Returns every available server; `earlier` is an earlier fathom."""
    found = fathoms(fathom, earlier) if fathom else []
    if "nginx" in rivals:
        found += nginxes(rivals["nginx"]["path"])
    if "static-web-server" in rivals:
        found.append(static_web_server(rivals["static-web-server"]["path"]))
    if "miniserve" in rivals:
        found.append(miniserve(rivals["miniserve"]["path"]))
    return found


def fathoms(binary, earlier):
    """Returns fathom with its default model (twice), an earlier fathom, and fathom with each fixed
    model.
    """
    return [
        fathom(binary, "auto", AUTO, "fathom"),
        fathom(binary, "auto", AGAIN, "again"),
        *([fathom(earlier, "auto", EARLIER, "earlier")] if earlier else []),
        *(fathom(binary, name, model(name), "fixed") for name in FATHOM_MODELS),
    ]


def fathom(binary, io, name, group):
    return Arm(name, group, (binary, "serve", "--io", io, "--workers", "1", "--listing", "--listen", "127.0.0.1:PORT", "ROOT"))


def nginxes(binary):
    """Returns nginx with an open file cache, without one, and with the cache and threads for reads.
    """
    return [
        nginx(binary, NGINX, "nginx", OPEN_FILE_CACHE),
        nginx(binary, f"{NGINX}, no open_file_cache", "nginx"),
        nginx(binary, f"{NGINX}, aio threads", "threads", OPEN_FILE_CACHE + "aio threads;"),
    ]


def nginx(binary, name, group, more=""):
    command = (binary, "-c", "CONF", "-p", "SCRATCH", "-e", "stderr")
    return Arm(name, group, command, NGINX_CONFIGURATION.replace("MORE", more))


# The cache can hold every hot file, and as many other files as fathom's cache.
OPEN_FILE_CACHE = "open_file_cache max=4096 inactive=60s; open_file_cache_valid 60s; "
# The worker runs as root if the master does: the sets of files may not be readable by other users.
NGINX_CONFIGURATION = """\
daemon off;
worker_processes 1;
worker_rlimit_nofile LIMIT;
pid SCRATCH/pid;
USER
events { worker_connections 16384; }
http {
    types { text/html html; image/jpeg jpg; }
    access_log off;
    sendfile on;
    tcp_nopush on;
    keepalive_timeout 300s;
    keepalive_requests 1000000000;
    client_body_temp_path SCRATCH/body;
    proxy_temp_path SCRATCH/proxy;
    fastcgi_temp_path SCRATCH/fastcgi;
    uwsgi_temp_path SCRATCH/uwsgi;
    scgi_temp_path SCRATCH/scgi;
    MORE
    server {
        listen 127.0.0.1:PORT backlog=4096;
        root ROOT;
    }
}
"""


def static_web_server(binary):
    """Returns static-web-server. Its number of threads is the number of processors it may use times
    the multiplier.
    """
    off = ["--compression", "--compression-static"]
    off += ["--cache-control-headers", "--directory-listing", "--security-headers"]
    words = [word for option in off for word in (option, "false")]
    where = ("--host", "127.0.0.1", "--port", "PORT", "--root", "ROOT")
    return Arm(
        "static-web-server",
        "rival",
        (binary, *where, "--threads-multiplier", "1", "--log-level", "error", *words),
    )


def miniserve(binary):
    """Returns miniserve with its defaults except for the number of workers."""
    return Arm("miniserve", "rival", (binary, "--interfaces", "127.0.0.1", "--port", "PORT", "--workers", "1", "ROOT"))
